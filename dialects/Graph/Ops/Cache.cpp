//===- Cache.cpp - sequence_positions, cache_write, paged_attention
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

#include <limits>

using namespace mlir;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// Sequences side by side
//===----------------------------------------------------------------------===//

/// Shapes of rows [R + 1], lengths [R] and blocks [R, M].
static LogicalResult checkSequences(std::optional<Location> loc, Type rowsType, Type lengthsType, Type blocksType) {
  RankedTensorType rows = tensorType(rowsType), lengths = tensorType(lengthsType), blocks = tensorType(blocksType);
  if (rows.getRank() != 1 || lengths.getRank() != 1 || rows.getDimSize(0) != lengths.getDimSize(0) + 1)
    return emitOptionalError(loc, "rows and lengths must have one dimension, and rows one element more, got ", rows,
                             " and ", lengths);
  if (blocks.getRank() != 2 || blocks.getDimSize(0) != lengths.getDimSize(0))
    return emitOptionalError(loc, "blocks must have two dimensions, the first as long as lengths, got ", blocks);
  return success();
}

namespace {
/// The rows of a step, each with its sequence and its position in that.
class SequenceRows {
public:
  SequenceRows(Operation *op, const HostTensor &rows, const HostTensor &lengths, int64_t count)
      : op(op), rows(rows), lengths(lengths), count(count) {}

  /// Calls body(row, sequence, position). Fails where the numbers are not those of `count` rows.
  LogicalResult forEach(function_ref<LogicalResult(int64_t, int64_t, int64_t)> body) const {
    for (int64_t sequence = 0; sequence < lengths.count(); ++sequence) {
      auto begin = static_cast<int64_t>(rows.data[sequence]), end = static_cast<int64_t>(rows.data[sequence + 1]);
      auto length = static_cast<int64_t>(lengths.data[sequence]);
      if (begin < 0 || begin > end || end > count)
        return op->emitOpError("rows ") << begin << " and " << end << " of sequence " << sequence
                                        << " do not ascend within the " << count << " rows";
      if (length < end - begin)
        return op->emitOpError("sequence ")
               << sequence << " has " << end - begin << " rows, but a length of " << length;
      for (int64_t row = begin; row < end; ++row)
        if (failed(body(row, sequence, length - end + row)))
          return failure();
    }
    return success();
  }

private:
  Operation *op;
  const HostTensor &rows, &lengths;
  int64_t count;
};

/// Where a cache [N, S, K, D] holds the positions of sequences.
class BlockTables {
public:
  BlockTables(Operation *op, const HostTensor &blocks, const HostTensor &cache)
      : op(op), blocks(blocks), count(cache.shape[0]), tokens(cache.shape[1]) {}

  /// The number of the place, counted in positions, as block * S + offset.
  FailureOr<int64_t> find(int64_t sequence, int64_t position) const {
    int64_t listed = blocks.shape[1], number = position / tokens;
    if (number >= listed)
      return op->emitOpError("position ")
             << position << " of sequence " << sequence << " is in no block of the " << listed << " that its table has";
    auto block = static_cast<int64_t>(blocks.data[sequence * listed + number]);
    if (block < 1 || block >= count)
      return op->emitOpError("position ") << position << " of sequence " << sequence << " is in block " << block
                                          << "; blocks are 1 to " << count - 1;
    return block * tokens + position % tokens;
  }

private:
  Operation *op;
  const HostTensor &blocks;
  int64_t count, tokens;
};
} // namespace

/// Factors of rows, lengths and blocks, which stay whole.
static SmallVector<FactorRule::TensorFactors> addSequences(FactorRule &rule, Value rows, Value lengths, Value blocks) {
  using Kind = FactorRule::Kind;
  int64_t begins = rule.add(tensorType(rows).getDimSize(0), Kind::Blocked);
  int64_t sequences = rule.add(tensorType(lengths).getDimSize(0), Kind::Blocked);
  SmallVector<FactorRule::TensorFactors> factors = {{{begins}}, {{sequences}}};
  if (blocks)
    factors.push_back({{sequences}, {rule.add(tensorType(blocks).getDimSize(1), Kind::Blocked)}});
  return factors;
}

//===----------------------------------------------------------------------===//
// SequencePositionsOp
//===----------------------------------------------------------------------===//

LogicalResult SequencePositionsOp::verify() {
  RankedTensorType rows = tensorType(getRows()), lengths = tensorType(getLengths());
  if (rows.getRank() != 1 || lengths.getRank() != 1 || rows.getDimSize(0) != lengths.getDimSize(0) + 1)
    return emitOpError("rows and lengths must have one dimension, and rows one element more, got ")
           << rows << " and " << lengths;
  if (tensorType(getPositions()).getRank() != 1)
    return emitOpError("positions must have one dimension, got ") << getPositions().getType();
  return success();
}

LogicalResult SequencePositionsOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                             const Arithmetic &) {
  llvm::fill(results[0].data, 0.0);
  return SequenceRows(*this, operands[0], operands[1], results[0].count())
      .forEach([&](int64_t row, int64_t, int64_t position) {
        results[0].data[row] = static_cast<double>(position);
        return success();
      });
}

FactorRule SequencePositionsOp::factorRule() {
  FactorRule rule;
  rule.operands = addSequences(rule, getRows(), getLengths(), {});
  rule.results = {{{rule.add(tensorType(getPositions()).getDimSize(0), FactorRule::Kind::Blocked)}}};
  return rule;
}

double SequencePositionsOp::flops() { return static_cast<double>(tensorType(getPositions()).getNumElements()); }

StringRef SequencePositionsOp::kernelName() { return "sequence_positions"; }

DictionaryAttr SequencePositionsOp::kernelConfig(bool) { return KernelConfig(getContext()).get(); }

LogicalResult SequencePositionsOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use,
                                                   ValueRange operands, SmallVectorImpl<Value> &results) {
  results.push_back(SequencePositionsOp::create(builder, use.results[0], operands[0], operands[1]));
  return success();
}

//===----------------------------------------------------------------------===//
// CacheWriteOp
//===----------------------------------------------------------------------===//

LogicalResult CacheWriteOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &results) {
  RankedTensorType cache = tensorType(adaptor.getCache()), values = tensorType(adaptor.getValues());
  if (cache.getRank() != 4 || values.getRank() != 3 || cache.getShape().drop_front(2) != values.getShape().drop_front())
    return emitOptionalError(loc, "the cache must have four dimensions, and the values three that end as those, got ",
                             cache, " and ", values);
  if (cache.getElementType() != values.getElementType() && !values.getElementType().isF32())
    return emitOptionalError(loc, "element types must agree, or the values be f32");
  if (failed(checkSequences(loc, adaptor.getRows().getType(), adaptor.getLengths().getType(),
                            adaptor.getBlocks().getType())))
    return failure();
  results.push_back(cache);
  return success();
}

OpOperand &CacheWriteOp::getUpdated() { return getCacheMutable(); }

LogicalResult CacheWriteOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const Arithmetic &) {
  const HostTensor &cache = operands[0], &values = operands[1];
  results[0].data = cache.data;
  BlockTables tables(*this, operands[4], cache);
  int64_t width = cache.shape[2] * cache.shape[3];
  return SequenceRows(*this, operands[2], operands[3], values.shape[0])
      .forEach([&](int64_t row, int64_t sequence, int64_t position) -> LogicalResult {
        FailureOr<int64_t> place = tables.find(sequence, position);
        if (failed(place))
          return failure();
        std::copy_n(values.data.begin() + row * width, width, results[0].data.begin() + *place * width);
        return success();
      });
}

FactorRule CacheWriteOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  ArrayRef<int64_t> shape = tensorType(getCache()).getShape();
  int64_t blocks = rule.add(shape[0], Kind::Blocked), tokens = rule.add(shape[1], Kind::Blocked);
  int64_t heads = rule.add(shape[2]), width = rule.add(shape[3]);
  int64_t rows = rule.add(tensorType(getValues()).getDimSize(0), Kind::Blocked);
  FactorRule::TensorFactors cache = {{blocks}, {tokens}, {heads}, {width}};
  rule.operands = {cache, {{rows}, {heads}, {width}}};
  llvm::append_range(rule.operands, addSequences(rule, getRows(), getLengths(), getBlocks()));
  rule.results = {cache};
  return rule;
}

double CacheWriteOp::flops() { return 0; }

double CacheWriteOp::bytesRead(unsigned operand) {
  return operand == 0 ? 0 : byteCount(getOperation()->getOperand(operand).getType());
}

/// Of the cache, the places that are written alone.
double CacheWriteOp::bytes() {
  RankedTensorType values = tensorType(getValues());
  double written = byteCount(values.clone(tensorType(getCache()).getElementType()));
  for (unsigned operand = 1; operand < getOperation()->getNumOperands(); ++operand)
    written += bytesRead(operand);
  return written;
}

StringRef CacheWriteOp::kernelName() { return "cache_write"; }

DictionaryAttr CacheWriteOp::kernelConfig(bool) { return KernelConfig(getContext()).get(); }

LogicalResult CacheWriteOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(
      CacheWriteOp::create(builder, operands[0], operands[1], operands[2], operands[3], operands[4]).getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// PagedAttentionOp
//===----------------------------------------------------------------------===//

LogicalResult PagedAttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                 SmallVectorImpl<Type> &results) {
  RankedTensorType query = tensorType(adaptor.getQuery()), keys = tensorType(adaptor.getKeys());
  if (query.getRank() != 3 || keys.getRank() != 4 || query.getDimSize(2) != keys.getDimSize(3))
    return emitOptionalError(loc, "the query must have three dimensions, and keys four, with equal last ones, got ",
                             query, " and ", keys);
  if (keys != adaptor.getValues().getType())
    return emitOptionalError(loc, "keys and values must have equal types, got ", keys, " and ",
                             adaptor.getValues().getType());
  if (query.getDimSize(1) % keys.getDimSize(2) != 0)
    return emitOptionalError(loc, "the number of query heads ", query.getDimSize(1),
                             " must be a multiple of the number of key heads ", keys.getDimSize(2));
  if (query.getElementType() != keys.getElementType() && !query.getElementType().isF32())
    return emitOptionalError(loc, "element types must agree, or the query be f32");
  if (auto window = static_cast<int64_t>(adaptor.getWindow()); window < 0)
    return emitOptionalError(loc, "a window must have at least one key, got ", window);
  if (failed(checkSequences(loc, adaptor.getRows().getType(), adaptor.getLengths().getType(),
                            adaptor.getBlocks().getType())))
    return failure();
  results.push_back(query);
  return success();
}

LogicalResult PagedAttentionOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                          const Arithmetic &a) {
  const HostTensor &query = operands[0], &keys = operands[1], &values = operands[2];
  int64_t heads = query.shape[1], width = query.shape[2], keyHeads = keys.shape[2];
  double scale = a.number(getScale().convertToDouble());
  SmallVector<int64_t> along = llvm::to_vector(llvm::seq<int64_t>(0, width));
  llvm::fill(results[0].data, 0.0);
  BlockTables tables(*this, operands[5], keys);
  auto attend = [&](int64_t row, int64_t head, ArrayRef<int64_t> places) {
    int64_t own = (row * heads + head) * width;
    SmallVector<double> scores;
    SmallVector<int64_t> begins;
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t place : places) {
      begins.push_back((place * keyHeads + head / (heads / keyHeads)) * width);
      scores.push_back(a.multiply(scale, a.sumOfProducts(&query.data[own], along, &keys.data[begins.back()], along)));
      maximum = a.maximum(maximum, scores.back());
    }
    for (double score : scores)
      sum = a.add(sum, a.exp(a.subtract(score, maximum)));
    double logsumexp = a.add(maximum, a.log(sum));
    for (auto [score, begin] : llvm::zip_equal(scores, begins)) {
      double weight = a.exp(a.subtract(score, logsumexp));
      for (int64_t d = 0; d < width; ++d)
        results[0].data[own + d] = a.add(results[0].data[own + d], a.multiply(weight, values.data[begin + d]));
    }
  };
  return SequenceRows(*this, operands[3], operands[4], query.shape[0])
      .forEach([&](int64_t row, int64_t sequence, int64_t position) -> LogicalResult {
        SmallVector<int64_t> places;
        int64_t first = getWindow() > 0 ? position + 1 - static_cast<int64_t>(getWindow()) : 0;
        for (int64_t seen = std::max<int64_t>(first, 0); seen <= position; ++seen) {
          FailureOr<int64_t> place = tables.find(sequence, seen);
          if (failed(place))
            return failure();
          places.push_back(*place);
        }
        for (int64_t head = 0; head < heads; ++head)
          attend(row, head, places);
        return success();
      });
}

FactorRule PagedAttentionOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  ArrayRef<int64_t> shape = tensorType(getQuery()).getShape(), cache = tensorType(getKeys()).getShape();
  int64_t rows = rule.add(shape[0], Kind::Blocked), keyHeads = rule.add(cache[2]),
          group = rule.add(shape[1] / cache[2]);
  int64_t width = rule.add(shape[2], Kind::Blocked);
  int64_t blocks = rule.add(cache[0], Kind::Blocked), tokens = rule.add(cache[1], Kind::Blocked);
  FactorRule::TensorFactors query = {{rows}, {keyHeads, group}, {width}};
  FactorRule::TensorFactors keys = {{blocks}, {tokens}, {keyHeads}, {width}};
  rule.operands = {query, keys, keys};
  llvm::append_range(rule.operands, addSequences(rule, getRows(), getLengths(), getBlocks()));
  rule.results = {query};
  return rule;
}

/// Each row sees one key at least. How many more the data say.
double PagedAttentionOp::flops() { return 4.0 * static_cast<double>(tensorType(getQuery()).getNumElements()); }

double PagedAttentionOp::bytesRead(unsigned operand) {
  RankedTensorType type = tensorType(getOperation()->getOperand(operand));
  if (operand != 1 && operand != 2)
    return byteCount(type);
  int64_t seen[] = {tensorType(getQuery()).getDimSize(0), type.getDimSize(2), type.getDimSize(3)};
  return std::min(byteCount(type), byteCount(type.clone(seen)));
}

StringRef PagedAttentionOp::kernelName() { return "paged_attention"; }

DictionaryAttr PagedAttentionOp::kernelConfig(bool) {
  KernelConfig config(getContext());
  config.real("scale", getScale().convertToDouble());
  if (getWindow() != 0)
    config.integer("window", getWindow());
  return config.get();
}

LogicalResult PagedAttentionOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use,
                                                ValueRange operands, SmallVectorImpl<Value> &results) {
  results.push_back(PagedAttentionOp::create(builder, operands[0], operands[1], operands[2], operands[3], operands[4],
                                             operands[5], use.real("scale"), use.integer("window"))
                        .getResult());
  return success();
}
