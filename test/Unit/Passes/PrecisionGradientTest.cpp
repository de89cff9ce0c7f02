//===- PrecisionGradientTest.cpp - Gradients in bf16 are those of f32, rounded
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each operation in bf16 and its gradient, executed with every value rounded to its type, against the same operation on
// the same values in f64. Inputs are bf16 numbers, so that only roundings of the operation and its derivative count.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Training/Gradients.h"
#include "test/Unit/Passes/StepExecution.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

/// Half the distance between neighbouring bf16 numbers, relative to them, and that of f32.
constexpr double kNarrow = 0x1p-8, kWide = 0x1p-24;

/// `@f` of `text` returns its gradients instead of its result. Its last argument is the seed; those before it that are
/// in `inputs` are differentiated.
struct Differentiated {
  Differentiated(const std::string &text, ArrayRef<unsigned> inputs)
      : module(parseSourceString<ModuleOp>(text, ParserConfig(&context()))) {
    EXPECT_TRUE(module) << text;
    Block &block = body();
    Operation *terminator = block.getTerminator();
    OpBuilder builder(terminator);
    SmallVector<Value> wanted = llvm::map_to_vector(inputs, [&](unsigned i) -> Value { return block.getArgument(i); });
    auto gradients = buildGradients(builder, terminator->getOperand(0), block.getArguments().back(), wanted);
    EXPECT_TRUE(succeeded(gradients));
    for (auto [input, gradient] : llvm::zip_equal(wanted, *gradients))
      EXPECT_EQ(input.getType(), gradient.getType()) << "a gradient has the type of what it is for";
    terminator->setOperands(*gradients);
    auto function = *module->getOps<graph::FuncOp>().begin();
    function.setFunctionType(
        FunctionType::get(&context(), function.getArgumentTypes(), ValueRange(*gradients).getTypes()));
    EXPECT_TRUE(succeeded(verify(*module)));
  }

  Block &body() { return (*module->getOps<graph::FuncOp>().begin()).getBody().front(); }

  OwningOpRef<ModuleOp> module;
};

std::string substitute(std::string text, const std::string &element) {
  for (size_t at = text.find('$'); at != std::string::npos; at = text.find('$'))
    text.replace(at, 1, element);
  return text;
}

double largest(const HostTensor &tensor) {
  double result = 0;
  for (double value : tensor.data)
    result = std::max(result, std::fabs(value));
  return result;
}

/// `text` with element type `$`: in bf16 with roundings it gives, for every input, the gradient of f64 to within
/// `roundings` roundings to bf16 of numbers as large as the gradient's largest, and `wide` roundings to f32.
void check(Random &random, const std::string &text, ArrayRef<unsigned> inputs, double roundings, double wide) {
  SCOPED_TRACE(text);
  Differentiated narrow(substitute(text, "bf16"), inputs), reference(substitute(text, "f64"), inputs);
  ASSERT_FALSE(testing::Test::HasFailure());
  Tensors arguments;
  for (Type type : narrow.body().getArgumentTypes())
    arguments.push_back(drawFor(random, type, 1));
  Tensors got = execute(narrow.body(), arguments, Rounding::ToType);
  Tensors want = execute(reference.body(), arguments, Rounding::None);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].shape, want[i].shape);
    double bound = largest(want[i]) * (roundings * kNarrow + wide * kWide);
    for (size_t k = 0; k < want[i].data.size(); ++k)
      EXPECT_LE(std::fabs(got[i].data[k] - want[i].data[k]), bound)
          << "gradient of input " << inputs[i] << " [" << k << "]: " << got[i].data[k] << ", not " << want[i].data[k];
  }
}

} // namespace

/// Everything up to the last rounding is f32: also the sum over many rows, which in bf16 would stop growing at 256.
TEST(PrecisionGradient, NormsRoundOnce) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int64_t rows : {1, 7, 300})
    for (int64_t width : {2, 5, 33}) {
      auto sized = [&](const char *text) { return llvm::formatv(text, rows, width).str(); };
      // Statistics of rows of [-1, 1] are well-conditioned with this epsilon: a few dozen roundings of f32 at most.
      double wide = 64 * std::sqrt(double(rows * width));
      check(random, sized(R"(
graph.func @f(%x: tensor<{0}x{1}x$>, %s: tensor<{1}x$>, %seed: tensor<{0}x{1}x$>) -> tensor<{0}x{1}x$> {{
  %0 = graph.rms_norm %x, %s eps 1.0e-1 : (tensor<{0}x{1}x$>, tensor<{1}x$>) -> tensor<{0}x{1}x$>
  graph.return %0 : tensor<{0}x{1}x$>
})"),
            {0, 1}, 1, wide);
      check(random, sized(R"(
graph.func @f(%x: tensor<{0}x{1}x$>, %s: tensor<{1}x$>, %b: tensor<{1}x$>, %seed: tensor<{0}x{1}x$>) -> tensor<{0}x{1}x$> {{
  %0 = graph.layer_norm %x, %s, %b eps 1.0e-1 : (tensor<{0}x{1}x$>, tensor<{1}x$>, tensor<{1}x$>) -> tensor<{0}x{1}x$>
  graph.return %0 : tensor<{0}x{1}x$>
})"),
            {0, 1, 2}, 1, wide);
    }
}

/// A rotation by angles in f32 rounds its result only, and so does its transpose.
TEST(PrecisionGradient, RotationsByWideAnglesRoundOnce) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (const char *inverse : {"", "inverse "}) {
    // The tables stay f32 in bf16's program and are f64 in the reference, with the same values.
    std::string text = std::string(R"(
graph.func @f(%x: tensor<2x3x2x6x$>, %c: tensor<3x3x#>, %s: tensor<3x3x#>, %seed: tensor<2x3x2x6x$>) -> tensor<2x3x2x6x$> {
  %0 = graph.rope )") + inverse +
                       R"(%x, %c, %s : (tensor<2x3x2x6x$>, tensor<3x3x#>, tensor<3x3x#>) -> tensor<2x3x2x6x$>
  graph.return %0 : tensor<2x3x2x6x$>
})";
    auto tables = [&](const std::string &element) {
      std::string result = text;
      for (size_t at = result.find('#'); at != std::string::npos; at = result.find('#'))
        result.replace(at, 1, element);
      return result;
    };
    Differentiated narrow(substitute(tables("f32"), "bf16"), {0}), reference(substitute(tables("f64"), "f64"), {0});
    ASSERT_FALSE(HasFailure());
    Tensors arguments;
    for (Type type : narrow.body().getArgumentTypes())
      arguments.push_back(drawFor(random, type, 1));
    Tensors got = execute(narrow.body(), arguments, Rounding::ToType);
    Tensors want = execute(reference.body(), arguments, Rounding::None);
    for (size_t k = 0; k < want[0].data.size(); ++k)
      EXPECT_LE(std::fabs(got[0].data[k] - want[0].data[k]), std::fabs(want[0].data[k]) * (kNarrow + kWide));
  }
}

/// Their derivatives have constants that are no numbers of bf16.
TEST(PrecisionGradient, ActivationsRoundOnce) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (const char *function :
       {"graph.gelu erf %x : tensor<37x$>", "graph.gelu tanh %x : tensor<37x$>", "math.erf %x : tensor<37x$>"})
    check(random,
          llvm::formatv(R"(
graph.func @f(%x: tensor<37x$>, %seed: tensor<37x$>) -> tensor<37x$> {{
  %0 = {0}
  graph.return %0 : tensor<37x$>
})",
                        function)
              .str(),
          {0}, 1, 32);
  // This one has the derivative of a result that was rounded: that rounding counts twice, by t^2 < 1.
  for (const char *cap : {"3.0e-1", "5.0e+1"})
    check(random,
          llvm::formatv(R"(
graph.func @f(%x: tensor<37x$>, %seed: tensor<37x$>) -> tensor<37x$> {{
  %0 = graph.softcap %x cap {0} : tensor<37x$>
  graph.return %0 : tensor<37x$>
})",
                        cap)
              .str(),
          {0}, 3, 32);
}

TEST(PrecisionGradient, ContractionsRoundOnce) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int64_t rows : {1, 6, 300}) {
    check(random,
          llvm::formatv(R"(
graph.func @f(%x: tensor<{0}x5x$>, %w: tensor<7x5x$>, %seed: tensor<{0}x7x$>) -> tensor<{0}x7x$> {{
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<{0}x5x$>, tensor<7x5x$>) -> tensor<{0}x7x$>
  graph.return %0 : tensor<{0}x7x$>
})",
                        rows)
              .str(),
          {0, 1}, 1, 2);
  }
  check(random, R"(
graph.func @f(%x: tensor<2x5x3x$>, %w: tensor<2x3x4x$>, %seed: tensor<2x5x4x$>) -> tensor<2x5x4x$> {
  %0 = graph.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<2x5x3x$>, tensor<2x3x4x$>) -> tensor<2x5x4x$>
  graph.return %0 : tensor<2x5x4x$>
})",
        {0, 1}, 1, 2);
}

/// A sum that is given in f32 has a gradient in f32, which is rounded before it is multiplied with narrow values: once
/// there and once at the end.
TEST(PrecisionGradient, WideResultsOfContractions) {
  Random random;
  SCOPED_TRACE(random.trace());
  const char *narrowText = R"(
graph.func @f(%x: tensor<6x5xbf16>, %w: tensor<7x5xbf16>, %seed: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<6x5xbf16>, tensor<7x5xbf16>) -> tensor<6x7xf32>
  graph.return %0 : tensor<6x7xf32>
})";
  const char *referenceText = R"(
graph.func @f(%x: tensor<6x5xf64>, %w: tensor<7x5xf64>, %seed: tensor<6x7xf64>) -> tensor<6x7xf64> {
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<6x5xf64>, tensor<7x5xf64>) -> tensor<6x7xf64>
  graph.return %0 : tensor<6x7xf64>
})";
  Differentiated narrow(narrowText, {0, 1}), reference(referenceText, {0, 1});
  ASSERT_FALSE(HasFailure());
  Tensors arguments;
  for (Type type : narrow.body().getArgumentTypes())
    arguments.push_back(drawFor(random, type, 1));
  Tensors got = execute(narrow.body(), arguments, Rounding::ToType);
  Tensors want = execute(reference.body(), arguments, Rounding::None);
  // Products of numbers of [-1, 1]: 7 for a gradient of x, 6 for one of w, each with a rounded factor.
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < want[i].data.size(); ++k)
      EXPECT_LE(std::fabs(got[i].data[k] - want[i].data[k]),
                (7 - double(i)) * kNarrow + (std::fabs(want[i].data[k]) + 7 * kNarrow) * (kNarrow + 2 * kWide));
}
