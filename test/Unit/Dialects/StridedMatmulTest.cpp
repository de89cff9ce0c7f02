//===- StridedMatmulTest.cpp - Strides visit the elements that a contraction names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/StridedMatmul.h"
#include "mlir/IR/Builders.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::StridedMatmul;

namespace {

constexpr int kContractions = 2000;

using Dims = SmallVector<int64_t>;

struct Contraction {
  Shape lhs, rhs;
  Dims lhsBatch, rhsBatch, lhsContract, rhsContract;
};

/// An operation outside of any function.
class Owned {
public:
  explicit Owned(const Contraction &c) {
    OpBuilder builder(&context());
    builder.setInsertionPointToEnd(&block);
    auto operand = [&](const Shape &shape) {
      return block.addArgument(RankedTensorType::get(shape, builder.getF32Type()), builder.getUnknownLoc());
    };
    Value lhs = operand(c.lhs), rhs = operand(c.rhs);
    op = graph::DotGeneralOp::create(builder, builder.getUnknownLoc(), lhs, rhs, c.lhsBatch, c.rhsBatch, c.lhsContract,
                                     c.rhsContract);
  }

  graph::DotGeneralOp op;

private:
  Block block;
};

/// Dimensions of both sides in random places, the pairs in random order.
Contraction randomContraction(Random &random) {
  Contraction c;
  enum Role { Batch, Contracted, Free };
  struct Dim {
    int64_t size;
    Role role;
  };
  std::vector<Dim> pairs, lhs, rhs;
  for (int64_t i = random.integer(0, 3); i > 0; --i)
    pairs.push_back({random.pick({1, 2, 3}), random.flip() ? Batch : Contracted});
  lhs = rhs = pairs;
  for (std::vector<Dim> *side : {&lhs, &rhs})
    for (int64_t i = random.integer(0, 2); i > 0; --i)
      side->push_back({random.pick({1, 2, 3}), Free});
  auto placed = [&](const std::vector<Dim> &side, Shape &shape) {
    // Often the given order, which can be expressed more often.
    SmallVector<int64_t> places = random.permutation(side.size());
    if (random.flip())
      llvm::sort(places);
    shape.resize(side.size());
    for (auto [dim, place] : llvm::zip_equal(side, places))
      shape[place] = dim.size;
    return places;
  };
  SmallVector<int64_t> lhsPlaces = placed(lhs, c.lhs), rhsPlaces = placed(rhs, c.rhs);
  for (auto [index, pair] : llvm::enumerate(pairs)) {
    (pair.role == Batch ? c.lhsBatch : c.lhsContract).push_back(lhsPlaces[index]);
    (pair.role == Batch ? c.rhsBatch : c.rhsContract).push_back(rhsPlaces[index]);
  }
  return c;
}

/// Offsets of the elements that the dimensions `dims` walk over, the last of them fastest, others at index 0.
std::vector<int64_t> offsets(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  std::vector<int64_t> result{0};
  for (int64_t dim : dims) {
    int64_t step = 1;
    for (int64_t inner : shape.drop_front(dim + 1))
      step *= inner;
    std::vector<int64_t> longer;
    for (int64_t offset : result)
      for (int64_t index = 0; index < shape[dim]; ++index)
        longer.push_back(offset + index * step);
    result = std::move(longer);
  }
  return result;
}

bool isProgression(const std::vector<int64_t> &values) {
  for (size_t i = 2; i < values.size(); ++i)
    if (values[i] - values[i - 1] != values[1] - values[0])
      return false;
  return true;
}

/// Every element of a matrix per batch is where the three strides say.
void expectWalk(const std::array<int64_t, 3> &strides, const std::vector<int64_t> &batches,
                const std::vector<int64_t> &rows, const std::vector<int64_t> &columns) {
  for (size_t b = 0; b < batches.size(); ++b)
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t c = 0; c < columns.size(); ++c)
        ASSERT_EQ(static_cast<int64_t>(b) * strides[0] + static_cast<int64_t>(r) * strides[1] +
                      static_cast<int64_t>(c) * strides[2],
                  batches[b] + rows[r] + columns[c]);
}

/// Whether the contraction can be expressed.
bool check(const Contraction &c) {
  Owned owned(c);
  graph::DotGeneralOp op = owned.op;
  std::vector<int64_t> lhsBatch = offsets(c.lhs, c.lhsBatch), rhsBatch = offsets(c.rhs, c.rhsBatch);
  std::vector<int64_t> lhsFree = offsets(c.lhs, op.getLhsFree()), rhsFree = offsets(c.rhs, op.getRhsFree());
  std::vector<int64_t> lhsContract = offsets(c.lhs, c.lhsContract), rhsContract = offsets(c.rhs, c.rhsContract);
  bool possible = isProgression(lhsBatch) && isProgression(rhsBatch) && isProgression(lhsFree) &&
                  isProgression(rhsFree) && isProgression(lhsContract) && isProgression(rhsContract);

  std::optional<StridedMatmul> matmul = StridedMatmul::of(op);
  EXPECT_EQ(matmul.has_value(), possible);
  if (!matmul || !possible)
    return possible;
  EXPECT_EQ(matmul->batch, static_cast<int64_t>(lhsBatch.size()));
  EXPECT_EQ(matmul->m, static_cast<int64_t>(lhsFree.size()));
  EXPECT_EQ(matmul->n, static_cast<int64_t>(rhsFree.size()));
  EXPECT_EQ(matmul->k, static_cast<int64_t>(lhsContract.size()));
  expectWalk(matmul->aStrides, lhsBatch, lhsFree, lhsContract);
  expectWalk(matmul->bStrides, rhsBatch, rhsContract, rhsFree);

  ArrayRef<int64_t> result = op.getType().getShape();
  auto range = [](size_t begin, size_t count) { return llvm::to_vector(llvm::seq<int64_t>(begin, begin + count)); };
  size_t batch = c.lhsBatch.size(), free = op.getLhsFree().size();
  expectWalk(matmul->cStrides, offsets(result, range(0, batch)), offsets(result, range(batch, free)),
             offsets(result, range(batch + free, op.getRhsFree().size())));
  return possible;
}

} // namespace

TEST(StridedMatmul, RandomContractions) {
  Random random;
  SCOPED_TRACE(random.trace());
  int expressed = 0;
  for (int i = 0; i < kContractions && !testing::Test::HasFailure(); ++i) {
    Contraction c = randomContraction(random);
    expressed += check(c);
    if (HasFailure())
      Owned(c).op.dump();
  }
  // Both answers were put to the test.
  EXPECT_GT(expressed, kContractions / 10);
  EXPECT_LT(expressed, kContractions * 99 / 100);
}

TEST(StridedMatmul, LayersOfTransformers) {
  // A projection of [batch, sequence, model] by [out, model].
  EXPECT_TRUE(check({{2, 5, 3}, {7, 3}, {}, {}, {2}, {1}}));
  // The gradient of its weights: both tokens dimensions are contracted.
  EXPECT_TRUE(check({{2, 5, 3}, {2, 5, 7}, {}, {}, {0, 1}, {0, 1}}));
  // Scores of [batch, sequence, heads, width]: batch and heads have another dimension between them.
  EXPECT_FALSE(check({{2, 5, 3, 4}, {2, 5, 3, 4}, {0, 2}, {0, 2}, {3}, {3}}));
  // One sequence: the dimension between has no step.
  EXPECT_TRUE(check({{1, 5, 3, 4}, {1, 5, 3, 4}, {0, 2}, {0, 2}, {3}, {3}}));
}

TEST(StridedMatmul, ContractedInAnotherOrderThanStored) {
  EXPECT_FALSE(check({{2, 3, 5}, {3, 2, 7}, {}, {}, {1, 0}, {0, 1}}));
  EXPECT_FALSE(check({{2, 3, 5}, {3, 2, 7}, {}, {}, {0, 1}, {1, 0}}));
  EXPECT_TRUE(check({{1, 3, 5}, {3, 1, 7}, {}, {}, {1, 0}, {0, 1}}));
}

TEST(StridedMatmul, FreeDimensionsAroundTheContracted) {
  EXPECT_FALSE(check({{2, 3, 5}, {3}, {}, {}, {1}, {0}}));
  EXPECT_TRUE(check({{2, 3, 1}, {3}, {}, {}, {1}, {0}}));
}

TEST(StridedMatmul, Scalars) { EXPECT_TRUE(check({{}, {}, {}, {}, {}, {}})); }
