//===- FactorRuleCases.cpp - Operations and operands that rules are tried on
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

static Shape join(Shape first, const Shape &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

static RankedTensorType f64Type(const Shape &shape) {
  return RankedTensorType::get(shape, Float64Type::get(&context()));
}

static FloatAttr f64(double value) { return Builder(&context()).getF64FloatAttr(value); }

//===----------------------------------------------------------------------===//
// Contraction, reduction and shape
//===----------------------------------------------------------------------===//

/// Up to one dimension of each kind more than once, each side in an order of its own.
static Example drawDotGeneral(Random &random) {
  Shape batch = random.shape(random.integer(0, 2)), contract = random.shape(random.integer(1, 2));
  auto side = [&](SmallVector<int64_t> &batchDims, SmallVector<int64_t> &contractDims) {
    Shape grouped = join(join(batch, contract), random.shape(random.integer(0, 2)));
    SmallVector<int64_t> order = random.permutation(grouped.size());
    Shape shape(grouped.size());
    for (auto [size, place] : llvm::zip_equal(grouped, order))
      shape[place] = size;
    batchDims.assign(order.begin(), order.begin() + batch.size());
    contractDims.assign(order.begin() + batch.size(), order.begin() + batch.size() + contract.size());
    return random.reals(shape);
  };
  SmallVector<int64_t> lb, lc, rb, rc;
  HostTensor lhs = side(lb, lc), rhs = side(rb, rc);
  return {{{lhs}, {rhs}}, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return DotGeneralOp::create(b, x[0], x[1], lb, rb, lc, rc);
          }};
}

/// Offsets that ascend within the rows, for `groups` or fewer.
static HostTensor drawOffsets(Random &random, int64_t rows, int64_t groups) {
  HostTensor offsets = random.integers({random.integer(2, groups + 1)}, 0, rows);
  llvm::sort(offsets.data);
  return offsets;
}

static Example drawGroupedDot(Random &random) {
  int64_t rows = random.size(), groups = random.size(), k = random.size(), columns = random.size();
  bool transposed = random.flip();
  Shape matrices = transposed ? Shape{groups, columns, k} : Shape{groups, k, columns};
  return {{{random.reals({rows, k})}, {random.reals(matrices)}, {drawOffsets(random, rows, groups), ElementKind::I32}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return GroupedDotOp::create(b, x[0], x[1], x[2], transposed);
          }};
}

static Example drawGroupedOuter(Random &random) {
  int64_t rows = random.size(), groups = random.size(), m = random.size(), n = random.size();
  return {{{random.reals({rows, m})}, {random.reals({rows, n})}, {drawOffsets(random, rows, groups), ElementKind::I32}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return GroupedOuterOp::create(b, f64Type({groups, m, n}), x[0], x[1], x[2]);
          }};
}

static Example drawValidRows(Random &random) {
  Shape rows = random.shape(random.integer(1, 3));
  // Also none, all, and counts that mean the same.
  return {{{random.reals(rows)}, {random.integers({random.integer(1, 3)}, -2, rows[0] + 2), ElementKind::I32}},
          [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ValidRowsOp::create(b, x[0], x[1]); }};
}

static Example drawReduce(Random &random) {
  Shape shape = random.shape(3);
  SmallVector<int64_t> dims = random.selection(3);
  ReduceKind kind = random.flip() ? ReduceKind::Sum : ReduceKind::Max;
  return {{{random.reals(shape)}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ReduceOp::create(b, kind, x[0], dims); }};
}

static Example drawBroadcast(Random &random) {
  Shape result = random.shape(3), input;
  SmallVector<int64_t> dims = random.selection(3);
  for (int64_t dim : dims)
    input.push_back(result[dim]);
  return {{{random.reals(input)}}, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return BroadcastOp::create(b, f64Type(result), x[0], dims);
          }};
}

static Example drawTranspose(Random &random) {
  SmallVector<int64_t> perm = random.permutation(3);
  return {{{random.reals(random.shape(3))}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return TransposeOp::create(b, x[0], perm); }};
}

/// Both shapes group the same small numbers, with ones between them.
static Example drawReshape(Random &random) {
  Shape numbers = random.shape(4);
  auto grouped = [&] {
    Shape shape = {1};
    for (int64_t number : numbers) {
      if (random.flip())
        shape.push_back(1);
      shape.back() *= number;
    }
    return shape;
  };
  Shape from = grouped(), to = grouped();
  return {{{random.reals(from)}}, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return ReshapeOp::create(b, f64Type(to), x[0]);
          }};
}

static Example drawSlice(Random &random) {
  Shape shape = random.shape(3);
  SmallVector<int64_t> offsets(3, 0), sizes(shape.begin(), shape.end());
  for (int64_t dim : random.selection(3)) {
    sizes[dim] = random.integer(1, shape[dim]);
    offsets[dim] = random.integer(0, shape[dim] - sizes[dim]);
  }
  return {{{random.reals(shape)}}, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return SliceOp::create(b, x[0], offsets, sizes);
          }};
}

static Example drawPad(Random &random) {
  SmallVector<int64_t> low(3, 0), high(3, 0);
  for (int64_t dim : random.selection(3)) {
    low[dim] = random.integer(0, 2);
    high[dim] = random.integer(0, 2);
  }
  return {{{random.reals(random.shape(3))}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return PadOp::create(b, x[0], low, high); }};
}

static Example drawConcat(Random &random) {
  Shape shape = random.shape(3);
  int64_t dim = random.integer(0, 2);
  Example example;
  for (int64_t count = random.integer(1, 3); count > 0; --count) {
    shape[dim] = random.size();
    example.operands.push_back({random.reals(shape)});
  }
  example.build = [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return ConcatOp::create(b, x, dim); };
  return example;
}

//===----------------------------------------------------------------------===//
// Indexing and generation
//===----------------------------------------------------------------------===//

static Example drawGather(Random &random) {
  Shape table = random.shape(random.integer(1, 3));
  HostTensor indices = random.integers(random.shape(random.integer(0, 2)), 0, table[0] - 1);
  return {{{random.reals(table)}, {indices, ElementKind::I32}},
          [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); }};
}

static Example drawScatterAdd(Random &random) {
  Shape row = random.shape(random.integer(0, 2)), table = join({random.size()}, row);
  HostTensor indices = random.integers(random.shape(random.integer(0, 2)), 0, table[0] - 1);
  return {{{random.reals(join(indices.shape, row))}, {indices, ElementKind::I32}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return ScatterAddOp::create(b, f64Type(table), x[0], x[1]);
          }};
}

static Example drawIota(Random &random) {
  Shape shape = random.shape(2);
  int64_t dim = random.integer(0, 1);
  return {{}, [=](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
            return IotaOp::create(b, RankedTensorType::get(shape, b.getI32Type()), dim);
          }};
}

static Example drawRandom(Random &random) {
  Shape shape = random.shape(3);
  int64_t seed = random.integer(-9, 9), stream = random.integer(0, 9);
  return {{}, [=](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
            return RandomOp::create(b, f64Type(shape), f64(0.5), b.getI64IntegerAttr(seed),
                                    b.getI64IntegerAttr(stream));
          }};
}

static Example drawConstant(Random &random) {
  HostTensor values = random.reals(random.shape(random.integer(0, 3)));
  if (random.flip())
    std::fill(values.data.begin(), values.data.end(), 0.5);
  return {{}, [=](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
            return arith::ConstantOp::create(
                b, DenseElementsAttr::get(f64Type(values.shape), ArrayRef<double>(values.data)));
          }};
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

template <typename Norm> static Example drawNorm(Random &random) {
  Shape shape = random.shape(random.integer(1, 3));
  Example example{{{random.reals(shape)}, {random.reals({shape.back()})}}, {}};
  if constexpr (std::is_same_v<Norm, LayerNormOp>) {
    example.operands.push_back({random.reals({shape.back()})});
    example.build = [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return Norm::create(b, x[0], x[1], x[2], f64(0.1));
    };
  } else {
    example.build = [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return Norm::create(b, x[0], x[1], f64(0.1));
    };
  }
  return example;
}

static Example drawRopeAngles(Random &random) {
  int64_t length = random.size(), half = random.size();
  return {{{random.integers({length}, 0, 99), ElementKind::I32}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            Type type = f64Type({length, half});
            return RopeAnglesOp::create(b, type, type, x[0], f64(100), RopeScalingAttr());
          }};
}

static Example drawRope(Random &random) {
  Shape shape = random.shape(4);
  Shape angles = {shape[1], shape[3]};
  shape[3] *= 2;
  bool inverse = random.flip();
  return {{{random.reals(shape)}, {random.reals(angles)}, {random.reals(angles)}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return RopeOp::create(b, x[0], x[1], x[2], inverse);
          }};
}

/// Query, key and value, small enough that sums of exponentials lose nothing to cancellation.
static std::vector<Operand> drawHeads(Random &random, bool causal) {
  int64_t batch = random.size(), queries = random.size(), width = random.size(), heads = random.integer(1, 4);
  int64_t keys = causal ? queries + random.integer(0, 2) : random.size(), group = random.integer(1, 4);
  return {{random.reals({batch, queries, heads * group, width}, -1, 1)},
          {random.reals({batch, keys, heads, width}, -1, 1)},
          {random.reals({batch, keys, heads, width}, -1, 1)}};
}

/// How many keys a causal query sees; 0 for all.
static int64_t drawWindow(Random &random, bool causal) { return causal && random.flip() ? random.integer(1, 3) : 0; }

static Example drawAttention(Random &random) {
  bool causal = random.flip();
  int64_t window = drawWindow(random, causal);
  return {drawHeads(random, causal), [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return AttentionOp::create(b, x[0], x[1], x[2], APFloat(0.5), causal, window);
          }};
}

/// On any values: the rule does not depend on whether result and logsumexp belong to the query.
static Example drawAttentionGrad(Random &random) {
  bool causal = random.flip();
  int64_t window = drawWindow(random, causal);
  std::vector<Operand> operands = drawHeads(random, causal);
  const Shape query = operands[0].value.shape;
  operands.push_back({random.reals(query, -1, 1)});
  operands.push_back({random.reals({query[0], query[2], query[1]}, 3, 5)});
  operands.push_back({random.reals(query, -1, 1)});
  return {operands, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return AttentionGradOp::create(b, x[0], x[1], x[2], x[3], x[4], x[5], APFloat(0.5), causal, window);
          }};
}

static Example drawLoss(Random &random) {
  Shape rows = random.shape(random.integer(0, 2));
  int64_t classes = random.size();
  return {{{random.reals(join(rows, {classes}))}, {random.integers(rows, -1, classes - 1), ElementKind::I32}},
          [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return SoftmaxCrossEntropyOp::create(b, x[0], x[1]);
          }};
}

static Example drawLossGrad(Random &random) {
  Example example = drawLoss(random);
  const Shape rows = example.operands[1].value.shape;
  example.operands.push_back({random.reals(rows, 1, 3)});
  example.operands.push_back({random.reals(rows)});
  example.build = [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return SoftmaxCrossEntropyGradOp::create(b, x[0], x[1], x[2], x[3]);
  };
  return example;
}

//===----------------------------------------------------------------------===//
// Sequences in a cache of blocks
//===----------------------------------------------------------------------===//

namespace {
/// Operations on `step` rows of sequences, some of them empty, each of which has blocks of its own in any order.
struct DrawnSequences {
  explicit DrawnSequences(Random &random)
      : step(random.size()), blockTokens(random.integer(1, 4)), keyHeads(random.integer(1, 4)), width(random.size()) {
    int64_t count = random.size(), listed = random.integer(1, 3), begin = 0;
    blockCount = 1 + count * listed + random.integer(0, 2);
    format = random.integer(0, 1) ? "int8" : "";
    rows = HostTensor(Shape{count + 1});
    lengths = HostTensor(Shape{count});
    blocks = HostTensor(Shape{count, listed});
    SmallVector<int64_t> order = random.permutation(blockCount - 1);
    for (int64_t i = 0; i < count; ++i) {
      int64_t most = listed * blockTokens, own = random.integer(0, std::min(step - begin, most));
      rows.data[i] = static_cast<double>(begin);
      begin += own;
      lengths.data[i] = static_cast<double>(own + random.integer(0, most - own));
    }
    rows.data[count] = static_cast<double>(begin);
    for (int64_t i = 0; i < count * listed; ++i)
      blocks.data[i] = static_cast<double>(1 + order[i]);
  }

  /// With a format, rows of int8 whose scales are numbers.
  Operand cache(Random &random) const {
    if (format.empty())
      return {random.reals({blockCount, blockTokens, keyHeads, width})};
    return {random.integers({blockCount, blockTokens, keyHeads, 4 + width}, 0, 63), ElementKind::U8};
  }
  StringAttr formatAttr(Builder &b) const { return format.empty() ? StringAttr() : b.getStringAttr(format); }
  std::vector<Operand> joined(std::vector<Operand> operands) const {
    for (const HostTensor &numbers : {rows, lengths, blocks})
      operands.push_back({numbers, ElementKind::I32});
    return operands;
  }

  int64_t step, blockTokens, keyHeads, width, blockCount;
  std::string format;
  HostTensor rows, lengths, blocks;
};
} // namespace

static Example drawSequencePositions(Random &random) {
  DrawnSequences drawn(random);
  auto type = RankedTensorType::get({drawn.step}, IntegerType::get(&context(), 32));
  return {{{drawn.rows, ElementKind::I32}, {drawn.lengths, ElementKind::I32}},
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return SequencePositionsOp::create(b, type, x[0], x[1]);
          }};
}

static Example drawCacheWrite(Random &random) {
  DrawnSequences drawn(random);
  Operand values{random.reals({drawn.step, drawn.keyHeads, drawn.width})};
  return {drawn.joined({drawn.cache(random), values}), [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return CacheWriteOp::create(b, x[0], x[1], x[2], x[3], x[4], drawn.formatAttr(b));
          }};
}

static Example drawPagedAttention(Random &random) {
  DrawnSequences drawn(random);
  Operand query{random.reals({drawn.step, drawn.keyHeads * random.integer(1, 3), drawn.width})};
  APFloat scale(random.real(0.1, 2));
  uint64_t window = random.pick({0, 0, 1, 2, 5});
  return {drawn.joined({query, drawn.cache(random), drawn.cache(random)}),
          [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return PagedAttentionOp::create(b, x[0], x[1], x[2], x[3], x[4], x[5], scale, window, drawn.formatAttr(b));
          }};
}

static Example drawSampleTokens(Random &random) {
  int64_t rows = random.size(), vocabulary = random.integer(1, 30), likely = random.integer(1, 5);
  auto integers = [&](const Shape &shape, int64_t low, int64_t high) {
    return Operand{random.integers(shape, low, high), ElementKind::I32};
  };
  std::vector<Operand> operands = {{random.reals({rows, vocabulary})},
                                   {random.reals({rows}, 0, 2)},
                                   integers({rows}, 0, vocabulary),
                                   {random.reals({rows}, 0, 1.5)},
                                   integers({rows, 2}, INT32_MIN, INT32_MAX),
                                   integers({rows}, 0, 100),
                                   integers({rows}, 0, likely + 1)};
  return {operands, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            Type token = b.getI32Type();
            SmallVector<Type> types = {RankedTensorType::get({rows}, token), f64Type({rows}),
                                       RankedTensorType::get({rows, likely}, token), f64Type({rows, likely})};
            return SampleTokensOp::create(b, types, x);
          }};
}

//===----------------------------------------------------------------------===//
// Weights in blocks of bits
//===----------------------------------------------------------------------===//

/// A matrix of blocks of q4_1, whose scales are numbers.
static Operand drawBlocks(Random &random, int64_t rows, int64_t blocks) {
  return {random.integers({rows, blocks, 20}, 0, 59), ElementKind::U8};
}

static Example drawQuantizedDot(Random &random) {
  int64_t blocks = random.integer(1, 3);
  Shape shape = random.shape(random.integer(0, 2));
  shape.push_back(blocks * 32);
  return {{{random.reals(shape)}, drawBlocks(random, random.size(), blocks)},
          [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return QuantizedDotOp::create(b, x[0], x[1], "q4_1");
          }};
}

static Example drawQuantizedGather(Random &random) {
  int64_t rows = random.size(), blocks = random.integer(1, 3);
  Shape shape = random.shape(random.integer(1, 2));
  Operand indices = {random.integers(shape, 0, rows - 1), ElementKind::I32};
  shape.push_back(blocks * 32);
  return {{drawBlocks(random, rows, blocks), indices}, [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return QuantizedGatherOp::create(b, f64Type(shape), x[0], x[1], "q4_1");
          }};
}

//===----------------------------------------------------------------------===//
// Between stages
//===----------------------------------------------------------------------===//

static Example drawTransfer(Random &random) {
  return {{{random.reals(random.shape(3))}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return stage::TransferOp::create(b, x[0], 0, 1);
          }};
}

static Example drawStageSum(Random &random) {
  return {{{random.reals({})}, {random.reals({})}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
            return stage::SumOp::create(b, x[0].getType(), x, ArrayRef<int64_t>{0, 1});
          }};
}

static Example drawStageBroadcast(Random &random) {
  return {{{random.reals({})}},
          [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return stage::BroadcastOp::create(b, x[0], 1); }};
}

std::vector<RuleCase> bowline::test::ruleCases() {
  std::vector<RuleCase> cases = {
      {"arith.constant", drawConstant},
      {"graph.attention", drawAttention},
      {"graph.attention_grad", drawAttentionGrad},
      {"graph.broadcast", drawBroadcast},
      {"graph.cache_write", drawCacheWrite},
      {"graph.concat", drawConcat},
      {"graph.dot_general", drawDotGeneral},
      {"graph.gather", drawGather},
      {"graph.grouped_dot", drawGroupedDot},
      {"graph.grouped_outer", drawGroupedOuter},
      {"graph.iota", drawIota},
      {"graph.layer_norm", drawNorm<LayerNormOp>},
      {"graph.pad", drawPad},
      {"graph.paged_attention", drawPagedAttention},
      {"graph.quantized_dot", drawQuantizedDot},
      {"graph.quantized_gather", drawQuantizedGather},
      {"graph.random", drawRandom},
      {"graph.reduce", drawReduce},
      {"graph.reshape", drawReshape},
      {"graph.rms_norm", drawNorm<RmsNormOp>},
      {"graph.rope", drawRope},
      {"graph.rope_angles", drawRopeAngles},
      {"graph.sample_tokens", drawSampleTokens},
      {"graph.scatter_add", drawScatterAdd},
      {"graph.sequence_positions", drawSequencePositions},
      {"graph.slice", drawSlice},
      {"graph.softmax_cross_entropy", drawLoss},
      {"graph.softmax_cross_entropy_grad", drawLossGrad},
      {"graph.transpose", drawTranspose},
      {"graph.valid_rows", drawValidRows},
      {"stage.broadcast", drawStageBroadcast},
      {"stage.sum", drawStageSum},
      {"stage.transfer", drawTransfer},
  };
  addElementwiseCases(cases);
  return cases;
}
