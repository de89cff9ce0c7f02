//===- LibraryEpilogueTest.cpp - Products with epilogues of a library compute what their parts did
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/LibraryEpilogue.h"
#include "compiler/Interp/KernelInterpreter.h"
#include "kernels/registry/product_epilogue.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fusion/Epilogues/ProductSum.h"
#include "passes/Fusion/Passes.h"
#include "test/Unit/Passes/StepExecution.h"
#include "test/Unit/Passes/TypeText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <map>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr int kPrograms = 150;
// Of f32 inside of kernels, where the order of a sum differs.
constexpr double kTolerance = 1e-12;

/// `@f`: a product of random layout with the epilogue of that name.
class ProgramWriter {
public:
  ProgramWriter(Random &random, const kernels::ProductEpilogue &epilogue) : random(random), epilogue(epilogue) {
    rows = random.shape(random.integer(1, 2));
    columns = random.shape(random.integer(1, 2));
    if (epilogue.keeps || epilogue.gradient)
      columns.back() *= 8;
    inner = random.shape(random.integer(1, 2));
    shape = rows;
    shape.insert(shape.end(), columns.begin(), columns.end());
    bool bf16 = epilogue.gelu || epilogue.gradient || random.flip();
    element = bf16 ? "bf16" : "f32";
    product = epilogue.sums || (epilogue.gradient && random.flip()) ? "f32" : element;
  }

  std::string text() {
    writeProduct();
    if (epilogue.sums)
      writeSum();
    else if (epilogue.gradient)
      writeGradient();
    else
      writeForward();
    return formatv("module attributes {{plan.target = #plan.target<device = \"cuda\", arch = \"nvptx64\", cpu = "
                   "\"sm_90a\", threads = 1>} {{\ngraph.func @f({0}) -> ({1}) {{\n",
                   llvm::join(arguments, ", "), llvm::join(types, ", "))
               .str() +
           body + "graph.return " + llvm::join(results, ", ") + " : " + llvm::join(types, ", ") + "\n}\n}\n";
  }

private:
  void writeProduct() {
    lhsInnerFirst = random.flip(), rhsInnerFirst = random.flip();
    lhs = joined(rows, lhsInnerFirst), rhs = joined(columns, rhsInnerFirst);
    argument(lhs, element), argument(rhs, element);
    body += formatv("%p = graph.dot_general %a0, %a1 contract {0} x {1} : ({2}, {3}) -> {4}\n",
                    innerDims(rows, lhsInnerFirst), innerDims(columns, rhsInnerFirst), tensorText(lhs, element),
                    tensorText(rhs, element), tensorText(shape, product));
  }
  Shape joined(Shape free, bool innerFirst) const {
    free.insert(innerFirst ? free.begin() : free.end(), inner.begin(), inner.end());
    return free;
  }
  std::string innerDims(const Shape &free, bool innerFirst) const {
    auto begin = static_cast<int64_t>(innerFirst ? 0 : free.size());
    return dimsText(begin, begin + static_cast<int64_t>(inner.size()));
  }

  void writeForward() {
    std::string last = "%p", tile = tensorText(shape, element);
    if (epilogue.bias) {
      // In its own type, or rounded before or after it is repeated.
      bool isWide = element == "bf16" && random.flip(), isRoundedFirst = random.flip();
      std::string given = isWide ? "f32" : element, repeated = isWide && !isRoundedFirst ? "f32" : element;
      std::string vector = argument(columns, given);
      if (isWide && isRoundedFirst) {
        body += formatv("%c = arith.truncf {0} : {1} to {2}\n", vector, tensorText(columns, given),
                        tensorText(columns, element));
        vector = "%c";
      }
      body += formatv("%r = graph.broadcast {0} dims {1} : ({2}) -> {3}\n", vector,
                      dimsText(static_cast<int64_t>(rows.size()), static_cast<int64_t>(shape.size())),
                      tensorText(columns, repeated), tensorText(shape, repeated));
      std::string bias = "%r";
      if (repeated != element) {
        body += formatv("%b = arith.truncf %r : {0} to {1}\n", tensorText(shape, repeated), tile);
        bias = "%b";
      }
      bool swap = random.flip();
      body += formatv("%x = arith.addf {0}, {1} : {2}\n", swap ? bias : last, swap ? last : bias, tile);
      last = "%x";
    }
    if (epilogue.gelu)
      body += formatv("%y = graph.gelu tanh {0} : {1}\n", last, tile);
    results = {epilogue.gelu ? "%y" : last};
    if (epilogue.keeps)
      results.insert(random.flip() ? results.begin() : results.end(), last);
    types.assign(results.size(), tile);
  }

  void writeGradient() {
    std::string wide = tensorText(shape, "f32"), x = argument(shape, element);
    auto emit = [&](StringRef name, const std::string &operation) { body += formatv("{0} = {1}\n", name, operation); };
    auto constant = [&](StringRef name, StringRef value) {
      emit(name, formatv("arith.constant dense<{0}> : {1}", value, wide));
    };
    auto binary = [&](StringRef name, StringRef op, StringRef left, StringRef right) {
      bool swap = op != "subf" && random.flip();
      emit(name, formatv("arith.{0} {1}, {2} : {3}", op, swap ? right : left, swap ? left : right, wide));
    };
    constant("%scale", "0.797884583"), constant("%cubic", "4.471500e-02"), constant("%one", "1.0");
    constant("%cubic3", "1.341450e-01"), constant("%half", "0.5");
    emit("%x", formatv("arith.extf {0} : {1} to {2}", x, tensorText(shape, element), wide));
    std::string gradient = "%p";
    if (product != "f32") {
      emit("%g", formatv("arith.extf %p : {0} to {1}", tensorText(shape, product), wide));
      gradient = "%g";
    }
    binary("%sq", "mulf", "%x", "%x"), binary("%sx", "mulf", "%scale", "%x"), binary("%cs", "mulf", "%cubic", "%sq");
    binary("%in", "addf", "%one", "%cs"), binary("%u", "mulf", "%sx", "%in");
    emit("%t", formatv("math.tanh %u : {0}", wide));
    binary("%c3", "mulf", "%cubic3", "%sq"), binary("%c31", "addf", "%one", "%c3");
    binary("%du", "mulf", "%scale", "%c31"), binary("%tt", "mulf", "%t", "%t"), binary("%dt", "subf", "%one", "%tt");
    binary("%t1", "addf", "%one", "%t"), binary("%dd", "mulf", "%dt", "%du"), binary("%xd", "mulf", "%x", "%dd");
    binary("%all", "addf", "%t1", "%xd"), binary("%slope", "mulf", "%half", "%all");
    binary("%wide", "mulf", gradient, "%slope");
    emit("%y", formatv("arith.truncf %wide : {0} to {1}", wide, tensorText(shape, element)));
    results = {"%y"}, types = {tensorText(shape, element)};
  }

  void writeSum() {
    bool ofLhs = epilogue.sums == 'a';
    const Shape &summed = ofLhs ? lhs : rhs, &left = ofLhs ? rows : columns;
    std::string value = ofLhs ? "%a0" : "%a1";
    if (element != "f32") {
      body +=
          formatv("%w = arith.extf {0} : {1} to {2}\n", value, tensorText(summed, element), tensorText(summed, "f32"));
      value = "%w";
    }
    body += formatv("%s = graph.reduce sum {0} dims {1} : ({2}) -> {3}\n", value,
                    innerDims(left, ofLhs ? lhsInnerFirst : rhsInnerFirst), tensorText(summed, "f32"),
                    tensorText(left, "f32"));
    results = {"%p", "%s"}, types = {tensorText(shape, "f32"), tensorText(left, "f32")};
  }

  std::string argument(const Shape &argumentShape, const std::string &argumentElement) {
    std::string name = "%a" + std::to_string(arguments.size());
    arguments.push_back(name + ": " + tensorText(argumentShape, argumentElement));
    return name;
  }

  Random &random;
  const kernels::ProductEpilogue &epilogue;
  Shape rows, columns, inner, shape, lhs, rhs;
  bool lhsInnerFirst = false, rhsInnerFirst = false;
  std::string element, product, body;
  std::vector<std::string> arguments, results, types;
};

Block &bodyOf(ModuleOp module) { return (*module.getOps<graph::FuncOp>().begin()).getBody().front(); }

void run(ModuleOp module, std::unique_ptr<Pass> pass) {
  PassManager manager(&context());
  manager.addPass(std::move(pass));
  ASSERT_TRUE(succeeded(manager.run(module)));
}

void expectNearby(ArrayRef<HostTensor> got, ArrayRef<HostTensor> want) {
  ASSERT_EQ(got.size(), want.size());
  for (auto [left, right] : llvm::zip_equal(got, want)) {
    ASSERT_EQ(left.data.size(), right.data.size());
    for (auto [x, y] : llvm::zip_equal(left.data, right.data))
      ASSERT_NEAR(x, y, kTolerance * std::max(1.0, std::abs(y)));
  }
}

/// Compares the results of the kernel that is selected for the product on `inputs`.
void checkKernel(ModuleOp module, ArrayRef<HostTensor> inputs, ArrayRef<HostTensor> want) {
  run(module, createSelectKernels());
  for (auto call : bodyOf(module).getOps<plan::CallOp>()) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(call, call.getKernelAttr());
    ASSERT_TRUE(kernel);
    if (!kernel.getRegistered())
      continue;
    KernelInterpreter interpreter(graph::Arithmetic::reals());
    auto got = interpreter.run(call, kernel, {}, inputs);
    ASSERT_TRUE(succeeded(got));
    return expectNearby(*got, want);
  }
  FAIL() << "no kernel of the registry";
}

} // namespace

TEST(LibraryEpilogue, RandomProductsComputeTheSame) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::map<std::string, int> seen;
  for (int i = 0; i < kPrograms; ++i) {
    const kernels::ProductEpilogue &epilogue = kernels::kProductEpilogues[i % kernels::kProductEpilogues.size()];
    std::string text = ProgramWriter(random, epilogue).text();
    SCOPED_TRACE(text);
    OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> after = before->clone();
    run(*after, createLibrarySums());
    run(*after, createGroupFusions());
    run(*after, createLibraryEpilogues());
    ASSERT_TRUE(succeeded(verify(*after)));

    graph::FusionOp fused;
    for (auto fusion : bodyOf(*after).getOps<graph::FusionOp>())
      if (fusion.getEpilogue())
        fused = fusion;
    // A layout that no single call of a library reads.
    if (!fused)
      continue;
    ASSERT_EQ(*fused.getEpilogue(), StringRef(epilogue.name));
    ++seen[std::string(epilogue.name)];
    Tensors arguments;
    for (Type argument : bodyOf(*before).getArgumentTypes())
      arguments.push_back(drawFor(random, argument, 1));
    expectNearby(execute(bodyOf(*after), arguments, Rounding::None),
                 execute(bodyOf(*before), arguments, Rounding::None));

    Tensors inputs;
    for (Type input : fused.getInputs().getTypes())
      inputs.push_back(drawFor(random, input, 1));
    Tensors want = execute(fused.getBody().front(), inputs, Rounding::None);
    checkKernel(*after, inputs, want);
    ASSERT_FALSE(HasFailure());
  }
  for (const kernels::ProductEpilogue &epilogue : kernels::kProductEpilogues)
    EXPECT_GT(seen[std::string(epilogue.name)], 3) << std::string(epilogue.name);
}
