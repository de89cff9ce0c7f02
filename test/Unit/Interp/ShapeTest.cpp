//===- ShapeTest.cpp - Reference semantics of contraction, reduction, shape and indexing
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

static constexpr int kRounds = 12;

static HostTensor runOne(Random &random, std::vector<Operand> operands, const BuildOp &build) {
  return OpHarness(std::move(operands), build).forward().front();
}

TEST(Shape, DotGeneralIsAnEinsum) {
  Random random;
  SCOPED_TRACE(random.trace());
  // Labels of dimensions, as in einsum: shared ones are batch (kept) or contracted (summed).
  for (int round = 0; round < 3 * kRounds; ++round) {
    int64_t batch = random.integer(0, 2), contracted = random.integer(0, 2), lhsFree = random.integer(0, 2),
            rhsFree = random.integer(0, 2);
    int64_t labels = batch + contracted + lhsFree + rhsFree;
    Shape sizes;
    for (int64_t i = 0; i < labels; ++i)
      sizes.push_back(random.pick({1, 2, 3, 5}));
    auto range = [](int64_t begin, int64_t count) { return llvm::to_vector(llvm::seq<int64_t>(begin, begin + count)); };
    auto shuffled = [&](SmallVector<int64_t> own) {
      SmallVector<int64_t> side;
      for (int64_t i : random.permutation(own.size()))
        side.push_back(own[i]);
      return side;
    };
    SmallVector<int64_t> lhsOwn = range(0, batch + contracted), rhsOwn = lhsOwn;
    llvm::append_range(lhsOwn, range(batch + contracted, lhsFree));
    llvm::append_range(rhsOwn, range(batch + contracted + lhsFree, rhsFree));
    SmallVector<int64_t> lhsLabels = shuffled(lhsOwn), rhsLabels = shuffled(rhsOwn), outLabels = range(0, batch);
    auto shapeOf = [&](ArrayRef<int64_t> side) {
      Shape shape;
      for (int64_t label : side)
        shape.push_back(sizes[label]);
      return shape;
    };
    auto positions = [](ArrayRef<int64_t> side, int64_t begin, int64_t count) {
      SmallVector<int64_t> result;
      for (int64_t label = begin; label < begin + count; ++label)
        result.push_back(llvm::find(side, label) - side.begin());
      return result;
    };
    for (ArrayRef<int64_t> side : {ArrayRef<int64_t>(lhsLabels), ArrayRef<int64_t>(rhsLabels)})
      for (int64_t label : side)
        if (label >= batch + contracted)
          outLabels.push_back(label);

    HostTensor lhs = random.reals(shapeOf(lhsLabels)), rhs = random.reals(shapeOf(rhsLabels));
    HostTensor actual = runOne(random, {{lhs}, {rhs}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return DotGeneralOp::create(b, x[0], x[1], positions(lhsLabels, 0, batch), positions(rhsLabels, 0, batch),
                                  positions(lhsLabels, batch, contracted), positions(rhsLabels, batch, contracted));
    });
    std::map<std::vector<int64_t>, long double> sums;
    auto pick = [](ArrayRef<int64_t> side, const std::vector<int64_t> &all) {
      std::vector<int64_t> index;
      for (int64_t label : side)
        index.push_back(all[label]);
      return index;
    };
    tensorOf(sizes, [&](const std::vector<int64_t> &all) {
      sums[pick(outLabels, all)] +=
          static_cast<long double>(at(lhs, pick(lhsLabels, all))) * at(rhs, pick(rhsLabels, all));
      return 0;
    });
    expectNear(actual, tensorOf(shapeOf(outLabels), [&](const std::vector<int64_t> &index) { return sums.at(index); }));
  }
}

TEST(Shape, Reduce) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    HostTensor input = random.reals(random.shape(random.integer(0, 4)));
    SmallVector<int64_t> dims = random.selection(input.rank());
    auto keptOf = [&](ArrayRef<int64_t> index) {
      std::vector<int64_t> kept;
      for (int64_t dim = 0; dim < input.rank(); ++dim)
        if (!llvm::is_contained(dims, dim))
          kept.push_back(index[dim]);
      return kept;
    };
    std::map<std::vector<int64_t>, std::vector<long double>> groups;
    tensorOf(input.shape, [&](const std::vector<int64_t> &index) {
      groups[keptOf(index)].push_back(at(input, index));
      return 0;
    });
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max}) {
      HostTensor actual = runOne(random, {{input}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return ReduceOp::create(b, kind, x[0], dims);
      });
      expectNear(actual, tensorOf(keptOf(input.shape), [&](const std::vector<int64_t> &index) {
                   const auto &group = groups.at(index);
                   return kind == ReduceKind::Sum ? std::accumulate(group.begin(), group.end(), 0.0L)
                                                  : *std::max_element(group.begin(), group.end());
                 }));
    }
  }
}

TEST(Shape, ReduceMaxKeepsNaN) {
  Random random;
  for (int64_t where : {0, 1, 2}) {
    HostTensor input = random.reals({3});
    input.data[where] = std::numeric_limits<double>::quiet_NaN();
    HostTensor result = runOne(random, {{input}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return ReduceOp::create(b, ReduceKind::Max, x[0], ArrayRef<int64_t>{0});
    });
    EXPECT_TRUE(std::isnan(result.data[0]));
  }
}

TEST(Shape, BroadcastTransposeReshape) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(0, 4)), part;
    SmallVector<int64_t> dims = random.selection(shape.size());
    for (int64_t dim : dims)
      part.push_back(shape[dim]);
    HostTensor small = random.reals(part);
    expectNear(runOne(random, {{small}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return BroadcastOp::create(b, RankedTensorType::get(shape, b.getF64Type()), x[0], dims);
                      }),
               tensorOf(shape, [&](const std::vector<int64_t> &index) {
                 std::vector<int64_t> from;
                 for (int64_t dim : dims)
                   from.push_back(index[dim]);
                 return at(small, from);
               }));

    HostTensor input = random.reals(shape);
    SmallVector<int64_t> perm = random.permutation(shape.size());
    Shape permuted;
    for (int64_t dim : perm)
      permuted.push_back(shape[dim]);
    expectNear(runOne(random, {{input}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return TransposeOp::create(b, x[0], perm);
                      }),
               tensorOf(permuted, [&](const std::vector<int64_t> &index) {
                 std::vector<int64_t> from(index.size());
                 for (size_t i = 0; i < index.size(); ++i)
                   from[perm[i]] = index[i];
                 return at(input, from);
               }));

    HostTensor flat = runOne(random, {{input}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return ReshapeOp::create(b, RankedTensorType::get({input.count()}, b.getF64Type()), x[0]);
    });
    EXPECT_EQ(flat.shape, Shape{input.count()});
    EXPECT_EQ(flat.data, input.data);
  }
}

TEST(Shape, SlicePadConcat) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(random.integer(1, 3)), padded;
    SmallVector<int64_t> offsets, sizes, low, high;
    for (int64_t size : shape) {
      offsets.push_back(random.integer(0, size - 1));
      sizes.push_back(random.integer(1, size - offsets.back()));
      low.push_back(random.integer(0, 2));
      high.push_back(random.integer(0, 2));
      padded.push_back(low.back() + size + high.back());
    }
    HostTensor input = random.reals(shape);
    expectNear(runOne(random, {{input}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return SliceOp::create(b, x[0], offsets, sizes);
                      }),
               tensorOf(Shape(sizes.begin(), sizes.end()), [&](std::vector<int64_t> index) {
                 for (size_t i = 0; i < index.size(); ++i)
                   index[i] += offsets[i];
                 return at(input, index);
               }));
    expectNear(
        runOne(random, {{input}},
               [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return PadOp::create(b, x[0], low, high); }),
        tensorOf(padded, [&](std::vector<int64_t> index) {
          for (size_t i = 0; i < index.size(); ++i)
            if (index[i] -= low[i]; index[i] < 0 || index[i] >= shape[i])
              return 0.0;
          return at(input, index);
        }));

    int64_t dim = random.integer(0, shape.size() - 1);
    Shape otherShape = shape, joined = shape;
    otherShape[dim] = random.size();
    joined[dim] += otherShape[dim];
    HostTensor other = random.reals(otherShape);
    expectNear(
        runOne(random, {{input}, {other}},
               [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ConcatOp::create(b, x, dim); }),
        tensorOf(joined, [&](std::vector<int64_t> index) {
          if (index[dim] < shape[dim])
            return at(input, index);
          index[dim] -= shape[dim];
          return at(other, index);
        }));
  }
}

TEST(Shape, GatherScatterIota) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    HostTensor table = random.reals(random.shape(random.integer(1, 3)));
    HostTensor indices = random.integers(random.shape(random.integer(0, 2)), 0, table.shape[0] - 1);
    Shape rows = indices.shape;
    rows.insert(rows.end(), table.shape.begin() + 1, table.shape.end());
    auto split = [&](const std::vector<int64_t> &index) {
      std::vector<int64_t> which(index.begin(), index.begin() + indices.rank());
      std::vector<int64_t> row{static_cast<int64_t>(at(indices, which))};
      row.insert(row.end(), index.begin() + indices.rank(), index.end());
      return row;
    };
    expectNear(
        runOne(random, {{table}, {indices, ElementKind::I32}},
               [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); }),
        tensorOf(rows, [&](const std::vector<int64_t> &index) { return at(table, split(index)); }));

    HostTensor updates = random.reals(rows);
    std::map<std::vector<int64_t>, long double> sums;
    tensorOf(rows, [&](const std::vector<int64_t> &index) {
      sums[split(index)] += at(updates, index);
      return 0;
    });
    expectNear(runOne(random, {{updates}, {indices, ElementKind::I32}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return ScatterAddOp::create(b, RankedTensorType::get(table.shape, b.getF64Type()), x[0], x[1]);
                      }),
               tensorOf(table.shape, [&](const std::vector<int64_t> &index) { return sums[index]; }));

    int64_t dim = random.integer(0, table.rank() - 1);
    expectNear(runOne(random, {},
                      [&](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
                        return IotaOp::create(b, RankedTensorType::get(table.shape, b.getI32Type()), dim);
                      }),
               tensorOf(table.shape, [&](const std::vector<int64_t> &index) { return index[dim]; }));
  }
}
