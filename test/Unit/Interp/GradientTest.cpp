//===- GradientTest.cpp - Gradients of every differentiable operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each vector-Jacobian product, executed by the reference interpreter, against central differences of the interpreted
// operation.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

static constexpr int kRounds = 6;

/// An operation whose result has the type of its operands.
template <typename OpTy> static Operation *buildSame(ImplicitLocOpBuilder &b, ValueRange operands) {
  OperationState state(b.getLoc(), OpTy::getOperationName());
  state.addOperands(operands);
  state.addTypes(operands.back().getType());
  return static_cast<OpBuilder &>(b).create(state);
}

//===----------------------------------------------------------------------===//
// arith and math
//===----------------------------------------------------------------------===//

namespace {
struct Elementwise {
  const char *name;
  int operands;
  double low, high;
  BuildOp build;
};

class ElementwiseGradient : public testing::TestWithParam<Elementwise> {};
} // namespace

TEST_P(ElementwiseGradient, EqualsDifferences) {
  Random random;
  const Elementwise &test = GetParam();
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(0, 3));
    std::vector<Operand> operands;
    for (int i = 0; i < test.operands; ++i)
      operands.push_back({random.reals(shape, test.low, test.high)});
    expectGradients(random, operands, test.build);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ElementwiseGradient,
                         testing::Values(Elementwise{"addf", 2, -2, 2, buildSame<arith::AddFOp>},
                                         Elementwise{"subf", 2, -2, 2, buildSame<arith::SubFOp>},
                                         Elementwise{"mulf", 2, -2, 2, buildSame<arith::MulFOp>},
                                         Elementwise{"divf", 2, 0.5, 2, buildSame<arith::DivFOp>},
                                         Elementwise{"negf", 1, -2, 2, buildSame<arith::NegFOp>},
                                         Elementwise{"cos", 1, -4, 4, buildSame<math::CosOp>},
                                         Elementwise{"sin", 1, -4, 4, buildSame<math::SinOp>},
                                         Elementwise{"erf", 1, -3, 3, buildSame<math::ErfOp>},
                                         Elementwise{"exp", 1, -2, 2, buildSame<math::ExpOp>},
                                         Elementwise{"log", 1, 0.5, 3, buildSame<math::LogOp>},
                                         Elementwise{"powf", 2, 0.5, 2, buildSame<math::PowFOp>},
                                         Elementwise{"rsqrt", 1, 0.5, 3, buildSame<math::RsqrtOp>},
                                         Elementwise{"sqrt", 1, 0.5, 3, buildSame<math::SqrtOp>},
                                         Elementwise{"tanh", 1, -2, 2, buildSame<math::TanhOp>},
                                         Elementwise{"logistic", 1, -4, 4, buildSame<LogisticOp>},
                                         Elementwise{"silu", 1, -4, 4, buildSame<SiluOp>}),
                         [](const testing::TestParamInfo<Elementwise> &info) { return std::string(info.param.name); });

/// Two tensors without equal elements, so that differences do not cross a tie.
static std::vector<Operand> withoutTies(Random &random) {
  Shape shape = random.shape(random.integer(0, 3));
  Shape both = shape;
  both.insert(both.begin(), 2);
  HostTensor values = random.distinct(both), lhs(shape), rhs(shape);
  std::copy_n(values.data.begin(), lhs.count(), lhs.data.begin());
  std::copy_n(values.data.begin() + lhs.count(), lhs.count(), rhs.data.begin());
  return {{lhs}, {rhs}};
}

TEST(Gradient, MaximumAndMinimum) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    expectGradients(random, withoutTies(random), buildSame<arith::MaximumFOp>);
    expectGradients(random, withoutTies(random), buildSame<arith::MinimumFOp>);
  }
}

TEST(Gradient, Abs) {
  Random random;
  for (int round = 0; round < kRounds; ++round)
    expectGradients(random, {{random.distinct(random.shape(2))}}, buildSame<math::AbsFOp>);
}

TEST(Gradient, Select) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(2);
    HostTensor condition = random.integers(shape, 0, 1);
    expectGradients(random, {{condition, ElementKind::I1}, {random.reals(shape)}, {random.reals(shape)}},
                    buildSame<arith::SelectOp>);
  }
}

TEST(Gradient, PrecisionChanges) {
  // There and back: the interpreter holds every float in f64.
  Random random;
  auto f32 = [](Value value) { return cast<RankedTensorType>(value.getType()).clone(Float32Type::get(&context())); };
  Shape shape = random.shape(2);
  for (bool narrows : {true, false}) {
    OpHarness harness({{random.reals(shape)}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      Value narrow = arith::TruncFOp::create(b, f32(x[0]), x[0]);
      return narrows ? narrow.getDefiningOp() : arith::ExtFOp::create(b, x[0].getType(), narrow).getOperation();
    });
    Operation *op = harness.operation();
    OpBuilder builder(op);
    SmallVector<Value> grads(1);
    ASSERT_TRUE(succeeded(cast<Differentiable>(op).buildVjp(builder, op->getResults(), grads)));
    ASSERT_TRUE(grads[0]);
    EXPECT_EQ(grads[0].getType(), op->getOperand(0).getType());
  }
}

//===----------------------------------------------------------------------===//
// Contraction, reduction and shape
//===----------------------------------------------------------------------===//

TEST(Gradient, DotGeneral) {
  Random random;
  for (int round = 0; round < 40; ++round) {
    // Dimensions of each side in a logical order (batch, contracted, free), then scattered over the operand.
    int64_t batch = random.integer(0, 2), contracted = random.integer(0, 2);
    Shape shared = random.shape(batch + contracted);
    auto makeSide = [&](SmallVector<int64_t> &batchDims, SmallVector<int64_t> &contractDims) {
      Shape logical = shared;
      int64_t free = random.integer(0, 2);
      for (int64_t i = 0; i < free; ++i)
        logical.push_back(random.pick({1, 2, 3}));
      SmallVector<int64_t> position = random.permutation(logical.size());
      Shape shape(logical.size());
      for (size_t i = 0; i < logical.size(); ++i)
        shape[position[i]] = logical[i];
      batchDims.assign(position.begin(), position.begin() + batch);
      contractDims.assign(position.begin() + batch, position.begin() + batch + contracted);
      return random.reals(shape);
    };
    for (int64_t &size : shared)
      size = random.pick({1, 2, 3});
    SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
    HostTensor lhs = makeSide(lhsBatch, lhsContract), rhs = makeSide(rhsBatch, rhsContract);
    expectGradients(random, {{lhs}, {rhs}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return DotGeneralOp::create(b, x[0], x[1], lhsBatch, rhsBatch, lhsContract, rhsContract);
    });
  }
}

TEST(Gradient, Reduce) {
  Random random;
  for (int round = 0; round < 2 * kRounds; ++round) {
    HostTensor input = random.distinct(random.shape(random.integer(0, 3)));
    SmallVector<int64_t> dims = random.selection(input.rank());
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max})
      expectGradients(random, {{input}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return ReduceOp::create(b, kind, x[0], dims);
      });
  }
}

TEST(Gradient, ReduceMaxGivesEveryMaximumTheGradient) {
  HostTensor input({3}), cotangent((Shape()));
  input.data = {2, 1, 2};
  cotangent.data = {5};
  OpHarness harness({{input}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return ReduceOp::create(b, ReduceKind::Max, x[0], ArrayRef<int64_t>{0});
  });
  auto gradients = harness.gradients({cotangent});
  ASSERT_TRUE(gradients.operands[0]);
  EXPECT_EQ(gradients.operands[0]->data, (std::vector<double>{5, 0, 5}));
}

TEST(Gradient, Broadcast) {
  Random random;
  for (int round = 0; round < 2 * kRounds; ++round) {
    Shape resultShape = random.shape(random.integer(0, 3)), inputShape;
    SmallVector<int64_t> dims = random.selection(resultShape.size());
    for (int64_t dim : dims)
      inputShape.push_back(resultShape[dim]);
    expectGradients(random, {{random.reals(inputShape)}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return BroadcastOp::create(b, RankedTensorType::get(resultShape, b.getF64Type()), x[0], dims);
    });
  }
}

TEST(Gradient, Transpose) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    int64_t rank = random.integer(0, 4);
    SmallVector<int64_t> perm = random.permutation(rank);
    expectGradients(
        random, {{random.reals(random.shape(rank))}},
        [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return TransposeOp::create(b, x[0], perm); });
  }
}

TEST(Gradient, Reshape) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(3);
    Shape merged{shape[2], shape[0] * shape[1]};
    expectGradients(random, {{random.reals(shape)}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return ReshapeOp::create(b, RankedTensorType::get(merged, b.getF64Type()), x[0]);
    });
  }
}

TEST(Gradient, SliceAndPad) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(0, 3));
    SmallVector<int64_t> offsets, sizes, low, high;
    for (int64_t size : shape) {
      offsets.push_back(random.integer(0, size - 1));
      sizes.push_back(random.integer(1, size - offsets.back()));
      low.push_back(random.integer(0, 2));
      high.push_back(random.integer(0, 2));
    }
    HostTensor input = random.reals(shape);
    expectGradients(random, {{input}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return SliceOp::create(b, x[0], offsets, sizes);
    });
    expectGradients(random, {{input}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return PadOp::create(b, x[0], low, high);
    });
  }
}

TEST(Gradient, Concat) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    int64_t rank = random.integer(1, 3), dim = random.integer(0, rank - 1);
    Shape shape = random.shape(rank);
    std::vector<Operand> inputs;
    for (int64_t count = random.integer(1, 3); count > 0; --count) {
      shape[dim] = random.size();
      inputs.push_back({random.reals(shape)});
    }
    expectGradients(random, inputs,
                    [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ConcatOp::create(b, x, dim); });
  }
}

TEST(Gradient, GatherWithRepeatedIndices) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    HostTensor table = random.reals(random.shape(random.integer(1, 3)));
    HostTensor indices = random.integers(random.shape(random.integer(0, 2)), 0, table.shape[0] - 1);
    expectGradients(
        random, {{table}, {indices, ElementKind::I32}},
        [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); });
  }
}
