//===- LayerGradientTest.cpp - Gradients of norms, attention and loss
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Diagnostics.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

static constexpr int kRounds = 8;

TEST(LayerGradient, Gelu) {
  Random random;
  for (int round = 0; round < kRounds; ++round)
    for (GeluKind kind : {GeluKind::Erf, GeluKind::Tanh})
      expectGradients(random, {{random.reals(random.shape(2), -4, 4)}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return GeluOp::create(b, x[0].getType(), kind, x[0]);
                      });
}

TEST(LayerGradient, Softcap) {
  Random random;
  for (int round = 0; round < kRounds; ++round)
    expectGradients(random, {{random.reals(random.shape(2), -4, 4)}},
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      return SoftcapOp::create(b, x[0].getType(), x[0], APFloat(1.5));
                    });
}

TEST(LayerGradient, ValidRows) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(1, 3));
    expectGradients(
        random, {{random.reals(shape)}, {random.integers({2}, -1, shape[0] + 1), ElementKind::I32}},
        [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ValidRowsOp::create(b, x[0], x[1]); });
  }
}

/// Sorted offsets for all but perhaps a few of the groups.
static Operand drawOffsets(Random &random, int64_t rows, int64_t groups) {
  HostTensor offsets = random.integers({random.integer(2, groups + 1)}, 0, rows);
  llvm::sort(offsets.data);
  return {offsets, ElementKind::I32};
}

TEST(LayerGradient, GroupedDotAndOuter) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    int64_t rows = random.size(), groups = random.size(), k = random.size(), columns = random.size();
    bool transposed = random.flip();
    Operand offsets = drawOffsets(random, rows, groups);
    HostTensor matrices = random.reals(transposed ? Shape{groups, columns, k} : Shape{groups, k, columns});
    expectGradients(random, {{random.reals({rows, k})}, {matrices}, offsets},
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      return GroupedDotOp::create(b, x[0], x[1], x[2], transposed);
                    });
    expectGradients(random, {{random.reals({rows, k})}, {random.reals({rows, columns})}, offsets},
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      Type type = RankedTensorType::get({groups, k, columns}, b.getF64Type());
                      return GroupedOuterOp::create(b, type, x[0], x[1], x[2]);
                    });
  }
}

TEST(LayerGradient, RmsNorm) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(1, 3));
    // An eps of the size of the squares, so that its place in the formula matters.
    FloatAttr eps = Builder(&context()).getF64FloatAttr(random.real(0.1, 1));
    expectGradients(
        random, {{random.reals(shape)}, {random.reals({shape.back()})}},
        [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return RmsNormOp::create(b, x[0], x[1], eps); });
  }
}

TEST(LayerGradient, LayerNorm) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(1, 3));
    FloatAttr eps = Builder(&context()).getF64FloatAttr(random.real(0.1, 1));
    expectGradients(random, {{random.reals(shape)}, {random.reals({shape.back()})}, {random.reals({shape.back()})}},
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      return LayerNormOp::create(b, x[0], x[1], x[2], eps);
                    });
  }
}

TEST(LayerGradient, Rope) {
  Random random;
  for (int round = 0; round < kRounds; ++round)
    for (bool inverse : {false, true}) {
      Shape shape = random.shape(4);
      shape[3] = 2 * random.integer(1, 3);
      Shape table{shape[1], shape[3] / 2};
      expectGradients(random, {{random.reals(shape)}, {random.reals(table)}, {random.reals(table)}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return RopeOp::create(b, x[0], x[1], x[2], inverse);
                      },
                      /*results=*/{}, /*constants=*/{1, 2});
    }
}

TEST(LayerGradient, Attention) {
  Random random;
  for (int round = 0; round < 4 * kRounds; ++round) {
    bool causal = random.flip();
    int64_t batch = random.integer(1, 2), queries = random.integer(1, 5), width = random.integer(1, 5);
    int64_t keyHeads = random.integer(1, 3), heads = keyHeads * random.integer(1, 3);
    int64_t keys = causal ? queries + random.integer(0, 3) : random.integer(1, 5);
    int64_t window = causal && random.flip() ? random.integer(1, keys + 1) : 0;
    APFloat scale(random.real(0.2, 1.5));
    Shape keyShape{batch, keys, keyHeads, width};
    expectGradients(
        random, {{random.reals({batch, queries, heads, width})}, {random.reals(keyShape)}, {random.reals(keyShape)}},
        [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
          return AttentionOp::create(b, x[0], x[1], x[2], scale, causal, window);
        },
        /*results=*/{true, false});
  }
}

TEST(LayerGradient, SoftmaxCrossEntropy) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(1, 3));
    // Labels of -1 are absent; one past the classes, elsewhere.
    HostTensor labels = random.integers(Shape(shape.begin(), shape.end() - 1), -1, shape.back());
    expectGradients(random, {{random.reals(shape, -4, 4)}, {labels, ElementKind::I32}},
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      return SoftmaxCrossEntropyOp::create(b, x[0], x[1]);
                    },
                    /*results=*/{true, false});
  }
}

//===----------------------------------------------------------------------===//
// Results that the backward pass uses and the loss must not
//===----------------------------------------------------------------------===//

/// Calls buildVjp with a gradient for the second result only.
static void expectSecondResultRefused(OpHarness &harness, StringRef expected) {
  Operation *op = harness.operation();
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  OpBuilder builder(op);
  SmallVector<Value> resultGrads{Value(), op->getResult(1)}, operandGrads(op->getNumOperands());
  EXPECT_TRUE(failed(cast<Differentiable>(op).buildVjp(builder, resultGrads, operandGrads)));
  EXPECT_EQ(message, expected);
}

static void expectNoGradients(OpHarness &harness) {
  for (const std::optional<HostTensor> &gradient : harness.gradients({std::nullopt, std::nullopt}).operands)
    EXPECT_FALSE(gradient);
}

TEST(LayerGradient, LogsumexpIsNotDifferentiable) {
  Random random;
  HostTensor x = random.reals({1, 2, 1, 3});
  OpHarness attention({{x}, {x}, {x}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return AttentionOp::create(b, x[0], x[1], x[2], APFloat(1.0), true);
  });
  expectSecondResultRefused(attention, "'graph.attention' op the logsumexp is not differentiable; use only the first "
                                       "result in the loss");
  expectNoGradients(attention);

  OpHarness loss({{random.reals({2, 3})}, {random.integers({2}, 0, 2), ElementKind::I32}},
                 [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                   return SoftmaxCrossEntropyOp::create(b, x[0], x[1]);
                 });
  expectSecondResultRefused(loss, "'graph.softmax_cross_entropy' op the logsumexp is not differentiable; use only the "
                                  "first result in the loss");
  expectNoGradients(loss);
}
