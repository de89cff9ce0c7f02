//===- LossTilingTest.cpp - Tiles of positions compute what the whole loss does
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Loss/LossTiling.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Passes/StepExecution.h"
#include "test/Unit/Passes/TypeText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr int kPrograms = 200;

/// A linear layer with a loss behind it, and the backward pass of both, in a random form.
struct Program {
  Shape positions;
  int64_t hidden, classes;
  std::string element;
  bool classesFirst; // the weight is [V, H]
  bool gradient, toHidden, toWeight, weightGradientWide;
  bool returnsLogSum;

  explicit Program(Random &random)
      : positions(random.shape(random.integer(0, 3))), hidden(random.size()), classes(random.pick({1, 2, 5, 8, 13})),
        element(random.integer(0, 2) == 0 ? "f64"
                : random.flip()           ? "f32"
                                          : "bf16"),
        classesFirst(random.flip()), gradient(random.integer(0, 3) > 0), toHidden(random.flip()),
        toWeight(random.flip()), weightGradientWide(random.flip()), returnsLogSum(random.flip()) {}

  int64_t positionCount() const { return HostTensor(positions).count(); }

  /// Results: the loss, then the drawn ones of: logsumexp, gradient of the hidden values, of the weight.
  std::string text() const {
    const int64_t rank = static_cast<int64_t>(positions.size());
    const std::string stat = element == "f64" ? "f64" : "f32";
    const std::string x = tensorText(positions, element, {hidden}), y = tensorText(positions, element, {classes}),
                      w = classesFirst ? tensorText({classes, hidden}, element)
                                       : tensorText({hidden, classes}, element),
                      l = tensorText(positions, "i32"), s = tensorText(positions, stat);
    std::vector<std::string> results = {"%loss"}, types = {s};
    std::string body =
        formatv("%y = graph.dot_general %x, %w contract [{0}] x [{1}] : ({2}, {3}) -> {4}\n", rank, int(classesFirst),
                x, w, y)
            .str() +
        formatv("%loss, %lse = graph.softmax_cross_entropy %y, %l : ({0}, {1}) -> ({2}, {2})\n", y, l, s).str();
    if (returnsLogSum)
      results.push_back("%lse"), types.push_back(s);
    if (gradient)
      body +=
          formatv("%g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s : ({0}, {1}, {2}, {2}) -> {0}\n", y, l, s);
    if (gradient && toHidden) {
      body += formatv("%dx = graph.dot_general %g, %w contract [{0}] x [{1}] : ({2}, {3}) -> {4}\n", rank,
                      int(!classesFirst), y, w, x);
      results.push_back("%dx"), types.push_back(x);
    }
    if (gradient && toWeight) {
      std::string wide = weightGradientWide && element == "bf16" ? "f32" : element;
      std::string dw = classesFirst ? tensorText({classes, hidden}, wide) : tensorText({hidden, classes}, wide);
      std::string lhs = classesFirst ? "%g" : "%x", rhs = classesFirst ? "%x" : "%g";
      body += formatv("%dw = graph.dot_general {0}, {1} contract {2} x {2} : ({3}, {4}) -> {5}\n", lhs, rhs,
                      dimsText(0, rank), classesFirst ? y : x, classesFirst ? x : y, dw);
      results.push_back("%dw"), types.push_back(dw);
    }
    return formatv("graph.func @f(%x: {0}, %w: {1}, %l: {2}, %s: {3}) -> ({4}) {{\n", x, w, l, s,
                   llvm::join(types, ", "))
               .str() +
           body + "graph.return " + llvm::join(results, ", ") + " : " + llvm::join(types, ", ") + "\n}\n";
  }
};

graph::SoftmaxCrossEntropyOp lossOf(ModuleOp module) {
  graph::SoftmaxCrossEntropyOp found;
  module.walk([&](graph::SoftmaxCrossEntropyOp loss) { found = loss; });
  return found;
}

Block &bodyOf(ModuleOp module) { return (*module.getOps<graph::FuncOp>().begin()).getBody().front(); }

void expectWithin(const HostTensor &got, const HostTensor &want, double relative, double absolute) {
  ASSERT_EQ(got.shape, want.shape);
  for (size_t i = 0; i < want.data.size(); ++i)
    ASSERT_LE(std::fabs(got.data[i] - want.data[i]), relative * std::fabs(want.data[i]) + absolute)
        << "[" << i << "]: " << got.data[i] << ", not " << want.data[i];
}

/// Everything per position is the same arithmetic; the gradient of the weight is added in another order.
void compare(const Program &program, ModuleOp before, ModuleOp after, ArrayRef<HostTensor> arguments,
             Rounding rounding) {
  Tensors want = execute(bodyOf(before), arguments, rounding), got = execute(bodyOf(after), arguments, rounding);
  ASSERT_EQ(got.size(), want.size());
  bool hasWeight = program.gradient && program.toWeight;
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    if (!hasWeight || i + 1 < want.size()) {
      expectWithin(got[i], want[i], 0, 0);
      continue;
    }
    // At most `positions` sums of products of values of [-1, 1], rounded to f32 or not at all; then to the result's
    // type, where two values beside a tie end one unit in the last place of bf16 apart.
    bool rounds = rounding == Rounding::ToType && program.element != "f64";
    double count = program.positionCount(), step = rounds ? 0x1p-24 : 0x1p-53;
    bool narrow = rounds && program.element == "bf16" && !program.weightGradientWide;
    expectWithin(got[i], want[i], narrow ? 0x1p-7 : 0, count * (count + 1) * step);
  }
}

} // namespace

TEST(LossTiling, TilesComputeWhatTheWholeDoes) {
  Random random;
  SCOPED_TRACE(random.trace());
  int smallerLast = 0, narrow = 0;
  for (int i = 0; i < kPrograms; ++i) {
    Program program(random);
    SCOPED_TRACE(program.text());
    OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(program.text(), ParserConfig(&context()));
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> after = before->clone();
    std::optional<LossTiling> tiling = LossTiling::match(lossOf(*after));
    ASSERT_TRUE(tiling);
    EXPECT_EQ(tiling->positions(), program.positionCount());
    EXPECT_EQ(tiling->bytesPerPosition(), program.classes * (program.element == "f64"   ? 8
                                                             : program.element == "f32" ? 4
                                                                                        : 2));

    // More tiles than positions too: then each position is one.
    int64_t tiles = random.integer(1, tiling->positions() + 2);
    int64_t size = (tiling->positions() + tiles - 1) / tiles;
    SCOPED_TRACE("tiles: " + std::to_string(tiles));
    tiling->tile(tiles);
    ASSERT_TRUE(succeeded(verify(*after)));
    int64_t losses = 0, largest = 0;
    after->walk([&](graph::SoftmaxCrossEntropyOp loss) {
      ++losses;
      largest = std::max(largest, loss.getLogits().getType().getShape().front());
    });
    EXPECT_EQ(losses, (program.positionCount() + size - 1) / size);
    EXPECT_EQ(largest, size);
    smallerLast += program.positionCount() % size != 0;
    narrow += program.element == "bf16" && losses > 1;

    Tensors arguments;
    for (Type argument : bodyOf(*before).getArgumentTypes())
      arguments.push_back(drawFor(random, argument, program.classes));
    for (Rounding rounding : {Rounding::None, Rounding::ToType})
      compare(program, *before, *after, arguments, rounding);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(smallerLast, 0);
  EXPECT_GT(narrow, 0);
}

/// A second gradient of the same logits, with another seed.
TEST(LossTiling, TwoGradientsDoNotMatch) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
graph.func @f(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>, %l: tensor<4xi32>, %s: tensor<4xf32>, %t: tensor<4xf32>)
    -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s : (tensor<4x5xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x5xf32>
  %h = graph.softmax_cross_entropy_grad %y, %l, %lse, %t : (tensor<4x5xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x5xf32>
  %a = graph.dot_general %g, %w contract [1] x [0] : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %b = graph.dot_general %h, %w contract [1] x [0] : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  graph.return %a, %b : tensor<4x3xf32>, tensor<4x3xf32>
})",
                                                             ParserConfig(&context()));
  ASSERT_TRUE(module);
  EXPECT_FALSE(LossTiling::match(lossOf(*module)));
}

TEST(LossTiling, LogitsFromAnArgumentDoNotMatch) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
graph.func @f(%y: tensor<4x5xf32>, %l: tensor<4xi32>) -> tensor<4xf32> {
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  graph.return %loss : tensor<4xf32>
})",
                                                             ParserConfig(&context()));
  ASSERT_TRUE(module);
  EXPECT_FALSE(LossTiling::match(lossOf(*module)));
}
