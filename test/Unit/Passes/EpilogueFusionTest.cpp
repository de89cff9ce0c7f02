//===- EpilogueFusionTest.cpp - Contractions with epilogues compute what their parts did
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/EpilogueFusion.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fusion/Epilogues/EpilogueBody.h"
#include "passes/Fusion/Passes.h"
#include "test/Unit/Passes/StepExecution.h"
#include "test/Unit/Passes/TypeText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr int kPrograms = 150;

/// `@f`: a matrix product, whose rows and columns have one or two dimensions, and random elementwise work on it.
class ProgramWriter {
public:
  explicit ProgramWriter(Random &random) : random(random) {
    rows = random.shape(random.integer(1, 2));
    columns = random.shape(random.integer(1, 2));
    shape = rows;
    shape.insert(shape.end(), columns.begin(), columns.end());
    writeProduct();
    for (int64_t i = random.integer(1, 8); i > 0; --i)
      writeStep();
  }

  /// With the last value, and the product too on request. `norm`: the norm of its rows, which is no epilogue, as well.
  std::string text(bool returnsProduct, bool norm) {
    std::vector<std::string> results = {last}, types = {tensorText(shape, element)};
    if (norm) {
      std::string scale = argument({shape.back()}, element);
      body += formatv("%norm = graph.rms_norm {0}, {1} eps 1.0e-2 : ({2}, {3}) -> {2}\n", last, scale,
                      tensorText(shape, element), tensorText({shape.back()}, element));
      results.push_back("%norm"), types.push_back(tensorText(shape, element));
    }
    if (returnsProduct)
      results.push_back("%p"), types.push_back(tensorText(shape, productElement));
    return formatv("graph.func @f({0}) -> ({1}) {{\n", llvm::join(arguments, ", "), llvm::join(types, ", ")).str() +
           body + "graph.return " + llvm::join(results, ", ") + " : " + llvm::join(types, ", ") + "\n}\n";
  }

  int64_t rowCount() const { return HostTensor(rows).count(); }
  int64_t columnCount() const { return HostTensor(columns).count(); }
  int64_t productBytes() const { return rowCount() * columnCount() * (productElement == "f32" ? 4 : 2); }

private:
  void writeProduct() {
    std::string operands = random.flip() ? "bf16" : "f32";
    element = productElement = operands == "bf16" && random.flip() ? "bf16" : "f32";
    int64_t inner = random.size();
    bool lhsInnerFirst = random.flip(), rhsInnerFirst = random.flip();
    Shape lhs = withInner(rows, inner, lhsInnerFirst), rhs = withInner(columns, inner, rhsInnerFirst);
    std::string x = argument(lhs, operands), w = argument(rhs, operands);
    body += formatv("%p = graph.dot_general {0}, {1} contract [{2}] x [{3}] : ({4}, {5}) -> {6}\n", x, w,
                    lhsInnerFirst ? 0 : rows.size(), rhsInnerFirst ? 0 : columns.size(), tensorText(lhs, operands),
                    tensorText(rhs, operands), tensorText(shape, productElement));
    last = "%p";
  }

  static Shape withInner(Shape free, int64_t inner, bool first) {
    free.insert(first ? free.begin() : free.end(), inner);
    return free;
  }

  std::string argument(const Shape &argumentShape, const std::string &argumentElement) {
    std::string name = "%a" + std::to_string(arguments.size());
    arguments.push_back(name + ": " + tensorText(argumentShape, argumentElement));
    return name;
  }

  std::string emit(const std::string &operation) {
    std::string name = "%v" + std::to_string(next++);
    body += name + " = " + operation + "\n";
    return name;
  }

  void writeStep() {
    std::string tile = tensorText(shape, element);
    switch (random.integer(0, 3)) {
    case 0: {
      static const char *const kUnary[] = {"math.tanh", "graph.silu", "arith.negf", "graph.gelu tanh"};
      last = emit(formatv("{0} {1} : {2}", kUnary[random.integer(0, 3)], last, tile));
      break;
    }
    case 1:
      if (element == "f32")
        last = emit(formatv("arith.truncf {0} : {1} to {2}", last, tile, tensorText(shape, "bf16")));
      else
        last = emit(formatv("arith.extf {0} : {1} to {2}", last, tile, tensorText(shape, "f32")));
      element = element == "f32" ? "bf16" : "f32";
      break;
    default: {
      static const char *const kBinary[] = {"addf", "subf", "mulf", "maximumf"};
      std::string other = operand();
      bool swap = random.flip();
      last = emit(formatv("arith.{0} {1}, {2} : {3}", kBinary[random.integer(0, 3)], swap ? other : last,
                          swap ? last : other, tile));
    }
    }
  }

  /// A full tile, something repeated, a constant, or the value itself.
  std::string operand() {
    int64_t rank = shape.size(), rowDims = rows.size();
    auto repeated = [&](const Shape &of, const std::string &to) {
      std::string value = argument(of, element);
      return emit(formatv("graph.broadcast {0} dims {1} : ({2}) -> {3}", value, to, tensorText(of, element),
                          tensorText(shape, element)));
    };
    switch (random.integer(0, 5)) {
    case 0:
      return argument(shape, element);
    case 1:
      return repeated({}, "[]");
    case 2:
      return repeated(rows, dimsText(0, rowDims));
    case 3:
      return repeated(columns, dimsText(rowDims, rank));
    case 4:
      return emit(formatv("arith.constant dense<{0}> : {1}", random.real(-1, 1), tensorText(shape, element)));
    default:
      return last;
    }
  }

  Random &random;
  Shape rows, columns, shape;
  std::string element, productElement, last, body;
  std::vector<std::string> arguments;
  int64_t next = 0;
};

Block &bodyOf(ModuleOp module) { return (*module.getOps<graph::FuncOp>().begin()).getBody().front(); }

void group(ModuleOp module) {
  PassManager manager(&context());
  manager.addPass(createGroupFusions());
  ASSERT_TRUE(succeeded(manager.run(module)));
}

SmallVector<graph::FusionOp> groupsOf(ModuleOp module) {
  return llvm::to_vector(bodyOf(module).getOps<graph::FusionOp>());
}

void expectSame(ArrayRef<HostTensor> got, ArrayRef<HostTensor> want) {
  ASSERT_EQ(got.size(), want.size());
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(got, want))) {
    EXPECT_EQ(std::get<0>(pair).shape, std::get<1>(pair).shape) << "result " << index;
    EXPECT_EQ(std::get<0>(pair).data, std::get<1>(pair).data) << "result " << index;
  }
}

Tensors drawArguments(Random &random, Block &block) {
  Tensors arguments;
  for (Type argument : block.getArgumentTypes())
    arguments.push_back(drawFor(random, argument, 1));
  return arguments;
}

/// The fusion's body by way of its function: the contraction, then the epilogue on a matrix of f32.
void checkBody(Random &random, graph::FusionOp fused, int64_t rows, int64_t columns) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  OpBuilder builder(module->getBodyRegion());
  func::FuncOp function = buildEpilogueBody(builder, "epilogue", fused);
  ASSERT_TRUE(succeeded(verify(*module)));
  ASSERT_EQ(function.getArgument(0).getType(), RankedTensorType::get({rows, columns}, builder.getF32Type()));
  for (Type output : function.getResultTypes())
    EXPECT_EQ(cast<RankedTensorType>(output).getShape(), ArrayRef<int64_t>({rows, columns}));

  Block &body = fused.getBody().front();
  Tensors arguments = drawArguments(random, body);
  auto dot = cast<graph::DotGeneralOp>(fused.getContraction());
  for (Rounding rounding : {Rounding::None, Rounding::ToType}) {
    Tensors product(1, HostTensor(dot.getType().getShape().vec()));
    ASSERT_TRUE(succeeded(dot.interpret({arguments[0], arguments[1]}, product, graph::Arithmetic::reals())));
    product[0].shape = {rows, columns};
    Tensors flat = {product[0]};
    for (auto [index, input] : llvm::enumerate(function.getArgumentTypes().drop_front())) {
      flat.push_back(arguments[index + 2]);
      flat.back().shape = cast<RankedTensorType>(input).getShape().vec();
      ASSERT_EQ(flat.back().count(), static_cast<int64_t>(flat.back().data.size()));
    }
    Tensors want = execute(body, arguments, rounding), got = execute(function.getBody().front(), flat, rounding);
    for (HostTensor &tensor : want)
      tensor.shape = {rows, columns};
    expectSame(got, want);
  }
}

void expectSameProgram(Random &random, ModuleOp before, ModuleOp after) {
  Tensors arguments = drawArguments(random, bodyOf(before));
  for (Rounding rounding : {Rounding::None, Rounding::ToType})
    expectSame(execute(bodyOf(after), arguments, rounding), execute(bodyOf(before), arguments, rounding));
}

} // namespace

TEST(EpilogueFusion, RandomEpiloguesComputeTheSame) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kPrograms; ++i) {
    ProgramWriter writer(random);
    bool keepsProduct = random.flip();
    std::string text = writer.text(keepsProduct, /*norm=*/false);
    SCOPED_TRACE(text);
    OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> after = before->clone();
    group(*after);
    SmallVector<graph::FusionOp> groups = groupsOf(*after);
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_FALSE(groups[0].getContraction());

    auto epilogue = EpilogueFusion::match(groups[0]);
    ASSERT_TRUE(epilogue);
    EXPECT_EQ(epilogue->savedBytes(), writer.productBytes() * (keepsProduct ? 1 : 2));
    graph::FusionOp fused = epilogue->fuse();
    ASSERT_TRUE(succeeded(verify(*after)));
    EXPECT_TRUE(fused.getContraction());
    EXPECT_TRUE(bodyOf(*after).getOps<graph::DotGeneralOp>().empty());
    expectSameProgram(random, *before, *after);
    checkBody(random, fused, writer.rowCount(), writer.columnCount());
    ASSERT_FALSE(HasFailure());
  }
}

TEST(EpilogueFusion, PeeledEpiloguesComputeTheSame) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kPrograms; ++i) {
    ProgramWriter writer(random);
    std::string text = writer.text(/*returnsProduct=*/false, /*norm=*/true);
    SCOPED_TRACE(text);
    OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> after = before->clone();
    group(*after);
    ASSERT_EQ(groupsOf(*after).size(), 1u);
    EXPECT_FALSE(EpilogueFusion::match(groupsOf(*after).front()));
    graph::FusionOp peeled = EpilogueFusion::peel(groupsOf(*after).front());
    ASSERT_TRUE(peeled);
    ASSERT_TRUE(succeeded(verify(*after)));
    ASSERT_EQ(groupsOf(*after).size(), 2u);
    EXPECT_EQ(groupsOf(*after).front(), peeled);
    // The norm is left, without the operations before it.
    Block &rest = groupsOf(*after).back().getBody().front();
    EXPECT_EQ(std::distance(rest.begin(), rest.end()), 2);
    expectSameProgram(random, *before, *after);

    auto epilogue = EpilogueFusion::match(peeled);
    ASSERT_TRUE(epilogue);
    graph::FusionOp fused = epilogue->fuse();
    ASSERT_TRUE(succeeded(verify(*after)));
    expectSameProgram(random, *before, *after);
    checkBody(random, fused, writer.rowCount(), writer.columnCount());
    ASSERT_FALSE(HasFailure());
  }
}

/// Both sides of the contraction are one value, which the epilogue reads as well.
TEST(EpilogueFusion, OneValueInEveryRole) {
  OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(R"(
graph.func @f(%x: tensor<3x3xf32>, %b: tensor<3xf32>) -> tensor<3x3xf32> {
  %p = graph.dot_general %x, %x contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %0 = arith.addf %p, %x : tensor<3x3xf32>
  %1 = arith.mulf %0, %p : tensor<3x3xf32>
  %rows = graph.broadcast %b dims [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %columns = graph.broadcast %b dims [1] : (tensor<3xf32>) -> tensor<3x3xf32>
  %2 = arith.addf %1, %rows : tensor<3x3xf32>
  %3 = arith.mulf %2, %columns : tensor<3x3xf32>
  graph.return %3 : tensor<3x3xf32>
})",
                                                             ParserConfig(&context()));
  ASSERT_TRUE(before);
  OwningOpRef<ModuleOp> after = before->clone();
  group(*after);
  auto epilogue = EpilogueFusion::match(groupsOf(*after).front());
  ASSERT_TRUE(epilogue);
  graph::FusionOp fused = epilogue->fuse();
  ASSERT_TRUE(succeeded(verify(*after)));
  Random random;
  SCOPED_TRACE(random.trace());
  expectSameProgram(random, *before, *after);
  checkBody(random, fused, 3, 3);
}
