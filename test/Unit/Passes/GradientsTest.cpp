//===- GradientsTest.cpp - Reverse-mode differentiation of a block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Gradients.h"
#include "compiler/Interp/Interpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::HasSubstr;

namespace {

/// `@f` with the gradients of its only result with respect to all arguments but the last, which is the seed.
class Differentiated {
public:
  explicit Differentiated(const std::string &text)
      : module(parseSourceString<ModuleOp>(text, ParserConfig(&context()))),
        function(*module->getOps<graph::FuncOp>().begin()), terminator(function.getBody().front().getTerminator()) {
    Block &block = function.getBody().front();
    OpBuilder builder(terminator);
    ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    gradients = buildGradients(builder, terminator->getOperand(0), block.getArguments().back(),
                               ValueRange(block.getArguments()).drop_back());
  }

  /// The value of the gradient of one argument, whose type is the result's.
  HostTensor evaluate(size_t index, ArrayRef<HostTensor> arguments) {
    terminator->setOperand(0, (*gradients)[index]);
    EXPECT_TRUE(succeeded(verify(*module)));
    Interpreter interpreter(*module);
    auto results = interpreter.run("f", arguments);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? results->front() : HostTensor();
  }

  FailureOr<SmallVector<Value>> gradients;
  std::string message;

private:
  OwningOpRef<ModuleOp> module;
  graph::FuncOp function;
  Operation *terminator;
};

} // namespace

TEST(Gradients, ValueReadSeveralTimesGetsTheSum) {
  Differentiated f(R"(
graph.func @f(%w: tensor<5xf64>, %x: tensor<5xf64>, %seed: tensor<5xf64>) -> tensor<5xf64> {
  %0 = arith.mulf %w, %x : tensor<5xf64>
  %1 = math.sin %w : tensor<5xf64>
  %2 = arith.addf %0, %1 : tensor<5xf64>
  %3 = arith.mulf %2, %w : tensor<5xf64>
  graph.return %3 : tensor<5xf64>
})");
  ASSERT_TRUE(succeeded(f.gradients));
  Random random;
  SCOPED_TRACE(random.trace());
  std::vector<HostTensor> values = {random.reals({5}), random.reals({5}), random.reals({5})};
  auto ofW = tensorOf({5}, [&](const std::vector<int64_t> &i) {
    long double w = at(values[0], i), x = at(values[1], i);
    return at(values[2], i) * (2 * w * x + std::sin(w) + w * std::cos(w));
  });
  auto ofX = tensorOf({5}, [&](const std::vector<int64_t> &i) {
    long double w = at(values[0], i);
    return at(values[2], i) * w * w;
  });
  expectNear(f.evaluate(0, values), ofW);
  expectNear(f.evaluate(1, values), ofX);
}

TEST(Gradients, IndependentInputHasNone) {
  Differentiated f(R"(
graph.func @f(%x: tensor<3xf64>, %y: tensor<3xf64>, %seed: tensor<3xf64>) -> tensor<3xf64> {
  %unused = arith.mulf %x, %y : tensor<3xf64>
  %0 = math.tanh %x : tensor<3xf64>
  graph.return %0 : tensor<3xf64>
})");
  ASSERT_TRUE(succeeded(f.gradients));
  EXPECT_TRUE((*f.gradients)[0]);
  EXPECT_FALSE((*f.gradients)[1]);
}

TEST(Gradients, StopAtIntegers) {
  // The rows are chosen by integers that depend on %y: no gradient goes there, and rounding is no obstacle.
  Differentiated f(R"(
graph.func @f(%x: tensor<3x2xf64>, %y: tensor<3xf64>, %i: tensor<3xi32>, %seed: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %rounded = arith.fptosi %y : tensor<3xf64> to tensor<3xi32>
  %row = arith.addi %rounded, %i : tensor<3xi32>
  %0 = graph.gather %x[%row] : (tensor<3x2xf64>, tensor<3xi32>) -> tensor<3x2xf64>
  graph.return %0 : tensor<3x2xf64>
})");
  ASSERT_TRUE(succeeded(f.gradients)) << f.message;
  EXPECT_TRUE((*f.gradients)[0]);
  EXPECT_FALSE((*f.gradients)[1]);
  EXPECT_FALSE((*f.gradients)[2]);
}

TEST(Gradients, OperationWithoutDerivativeIsDiagnosed) {
  Differentiated f(R"(
graph.func @f(%x: tensor<3xf64>, %seed: tensor<3xf64>) -> tensor<3xf64> {
  %0 = math.tan %x : tensor<3xf64>
  graph.return %0 : tensor<3xf64>
})");
  EXPECT_TRUE(failed(f.gradients));
  EXPECT_THAT(f.message,
              HasSubstr("'math.tan' op is not differentiable, but the loss depends on a parameter through it"));
}

TEST(Gradients, PrecisionChangesEqualCentralDifferences) {
  // The interpreter holds every float in f64, so that a narrower type rounds nothing and differences stay smooth.
  const std::string text = R"(
graph.func @f(%x: tensor<7xf64>, %seed: tensor<7xf64>) -> tensor<7xf64> {
  %narrow = arith.truncf %x : tensor<7xf64> to tensor<7xf32>
  %0 = math.tanh %narrow : tensor<7xf32>
  %wide = arith.extf %0 : tensor<7xf32> to tensor<7xf64>
  %1 = arith.mulf %wide, %x : tensor<7xf64>
  graph.return %1 : tensor<7xf64>
})";
  Differentiated f(text);
  ASSERT_TRUE(succeeded(f.gradients));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  Interpreter forward(*module);
  Random random;
  SCOPED_TRACE(random.trace());
  std::vector<HostTensor> values = {random.reals({7}), random.reals({7})};
  auto shifted = [&](double step) {
    std::vector<HostTensor> moved = values;
    for (double &x : moved[0].data)
      x += step;
    auto results = forward.run("f", moved);
    EXPECT_TRUE(succeeded(results));
    return results->front();
  };
  constexpr double kStep = 1e-5;
  HostTensor above = shifted(kStep), below = shifted(-kStep), gradient = f.evaluate(0, values);
  for (size_t i = 0; i < gradient.data.size(); ++i) {
    double difference = (above.data[i] - below.data[i]) / (2 * kStep) * values[1].data[i];
    EXPECT_NEAR(gradient.data[i], difference, 1e-8) << "element " << i;
  }
}
