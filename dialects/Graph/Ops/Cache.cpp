//===- Cache.cpp - sequence_positions, cache_write, paged_attention
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "types/cache_rows.h"

#include <cstring>
#include <limits>

using namespace mlir;
using namespace bowline;
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
// Formats of rows
//===----------------------------------------------------------------------===//

/// Begins a row that holds numbers which were not rounded.
static constexpr double kUnrounded = 256;

static LogicalResult checkRowFormat(std::optional<Location> loc, RankedTensorType cache,
                                    std::optional<StringRef> format) {
  if (format && std::string_view(*format) != kInt8Rows)
    return emitOptionalError(loc, "there is no format '", *format, "' of rows; use \"", StringRef(kInt8Rows), "\"");
  if (cache.getElementType().isUnsignedInteger(8) != format.has_value())
    return emitOptionalError(loc, "a cache of ui8 has a format of rows, and no other one, got ", cache,
                             format ? " with a format" : " without a format");
  if (format && cache.getRank() == 4 && cache.getDimSize(3) <= kInt8ScaleBytes)
    return emitOptionalError(loc, "a row of format '", *format, "' has ", kInt8ScaleBytes,
                             " bytes of a scale, and elements behind it, got ", cache);
  return success();
}

/// Bytes in front of the elements of a row.
static int64_t scaleBytes(std::optional<StringRef> format) { return format ? kInt8ScaleBytes : 0; }

/// The shape of a cache [N, S, K, D] without the bytes that the format adds to rows.
static SmallVector<int64_t> elementShape(RankedTensorType cache, std::optional<StringRef> format) {
  SmallVector<int64_t> shape(cache.getShape());
  shape.back() -= scaleBytes(format);
  return shape;
}

/// The scale in the first bytes of a row.
static float readScale(const double *row) {
  uint32_t bits = 0;
  for (int64_t byte = 0; byte < kInt8ScaleBytes; ++byte)
    bits |= static_cast<uint32_t>(row[byte]) << (8 * byte);
  float scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return scale;
}

/// A cache [N, S, K, bytes of a row] as numbers [N, S, K, D].
static HostTensor readRows(const HostTensor &cache, const Arithmetic &a) {
  int64_t bytes = cache.shape.back(), width = bytes - kInt8ScaleBytes;
  HostTensor numbers(cache.shape);
  numbers.shape.back() = width;
  numbers.data.resize(numbers.count());
  for (int64_t row = 0; row < cache.count() / bytes; ++row) {
    const double *from = &cache.data[row * bytes];
    bool isUnrounded = from[0] == kUnrounded;
    double scale = isUnrounded ? 1 : a.number(readScale(from));
    for (int64_t d = 0; d < width; ++d) {
      double stored = from[kInt8ScaleBytes + d];
      numbers.data[row * width + d] =
          isUnrounded ? stored : a.multiply(scale, a.number(stored < 128 ? stored : stored - 256));
    }
  }
  return numbers;
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
  std::optional<StringRef> format = adaptor.getFormat();
  if (failed(checkRowFormat(loc, cache, format)))
    return failure();
  if (cache.getRank() != 4 || values.getRank() != 3 ||
      ArrayRef<int64_t>(elementShape(cache, format)).drop_front(2) != values.getShape().drop_front())
    return emitOptionalError(loc, "the cache must have four dimensions, and the values three that end as those, got ",
                             cache, " and ", values);
  if (!format && cache.getElementType() != values.getElementType() && !values.getElementType().isF32())
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
  int64_t heads = cache.shape[2], width = values.shape[2], row = cache.shape[3], begin = row - width;
  return SequenceRows(*this, operands[2], operands[3], values.shape[0])
      .forEach([&](int64_t token, int64_t sequence, int64_t position) -> LogicalResult {
        FailureOr<int64_t> place = tables.find(sequence, position);
        if (failed(place))
          return failure();
        for (int64_t head = 0; head < heads; ++head) {
          auto to = results[0].data.begin() + (*place * heads + head) * row;
          std::fill_n(to, begin, 0.0);
          if (getFormat())
            *to = kUnrounded;
          std::copy_n(values.data.begin() + (token * heads + head) * width, width, to + begin);
        }
        return success();
      });
}

FactorRule CacheWriteOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  ArrayRef<int64_t> shape = tensorType(getCache()).getShape();
  int64_t blocks = rule.add(shape[0], Kind::Blocked), tokens = rule.add(shape[1], Kind::Blocked);
  // A row with a scale stays whole.
  int64_t heads = rule.add(shape[2]), row = rule.add(shape[3], getFormat() ? Kind::Blocked : Kind::Parallel);
  int64_t width = getFormat() ? rule.add(tensorType(getValues()).getDimSize(2), Kind::Blocked) : row;
  int64_t rows = rule.add(tensorType(getValues()).getDimSize(0), Kind::Blocked);
  FactorRule::TensorFactors cache = {{blocks}, {tokens}, {heads}, {row}};
  rule.operands = {cache, {{rows}, {heads}, {width}}};
  llvm::append_range(rule.operands, addSequences(rule, getRows(), getLengths(), getBlocks()));
  rule.results = {cache};
  return rule;
}

double CacheWriteOp::flops() { return 0; }

double CacheWriteOp::bytesRead(unsigned operand) {
  return operand == 0 ? 0 : byteCount(getOperation()->getOperand(operand).getType());
}

/// Counts the written places of the cache alone.
double CacheWriteOp::bytes() {
  RankedTensorType cache = tensorType(getCache());
  int64_t places[] = {tensorType(getValues()).getDimSize(0), cache.getDimSize(2), cache.getDimSize(3)};
  double written = byteCount(cache.clone(places));
  for (unsigned operand = 1; operand < getOperation()->getNumOperands(); ++operand)
    written += bytesRead(operand);
  return written;
}

StringRef CacheWriteOp::kernelName() { return "cache_write"; }

DictionaryAttr CacheWriteOp::kernelConfig(bool) {
  KernelConfig config(getContext());
  if (getFormat())
    config.text("format", *getFormat());
  return config.get();
}

/// The format in a kernel's configuration; null where it has none.
static StringAttr formatOf(Builder &builder, const KernelUse &use) {
  StringRef format = use.text("format");
  return format.empty() ? StringAttr() : builder.getStringAttr(format);
}

LogicalResult CacheWriteOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(CacheWriteOp::create(builder, operands[0], operands[1], operands[2], operands[3], operands[4],
                                         formatOf(builder, use))
                        .getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// PagedAttentionOp
//===----------------------------------------------------------------------===//

LogicalResult PagedAttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                 SmallVectorImpl<Type> &results) {
  RankedTensorType query = tensorType(adaptor.getQuery()), keys = tensorType(adaptor.getKeys());
  std::optional<StringRef> format = adaptor.getFormat();
  if (failed(checkRowFormat(loc, keys, format)))
    return failure();
  if (query.getRank() != 3 || keys.getRank() != 4 || query.getDimSize(2) != keys.getDimSize(3) - scaleBytes(format))
    return emitOptionalError(loc, "the query must have three dimensions, and keys four, with equal last ones, got ",
                             query, " and ", keys);
  if (keys != adaptor.getValues().getType())
    return emitOptionalError(loc, "keys and values must have equal types, got ", keys, " and ",
                             adaptor.getValues().getType());
  if (query.getDimSize(1) % keys.getDimSize(2) != 0)
    return emitOptionalError(loc, "the number of query heads ", query.getDimSize(1),
                             " must be a multiple of the number of key heads ", keys.getDimSize(2));
  if (!format && query.getElementType() != keys.getElementType() && !query.getElementType().isF32())
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
  const HostTensor &query = operands[0];
  HostTensor keys = getFormat() ? readRows(operands[1], a) : operands[1],
             values = getFormat() ? readRows(operands[2], a) : operands[2];
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
  int64_t row = getFormat() ? rule.add(cache[3], Kind::Blocked) : width;
  FactorRule::TensorFactors keys = {{blocks}, {tokens}, {keyHeads}, {row}};
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
  if (getFormat())
    config.text("format", *getFormat());
  return config.get();
}

LogicalResult PagedAttentionOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use,
                                                ValueRange operands, SmallVectorImpl<Value> &results) {
  results.push_back(PagedAttentionOp::create(builder, operands[0], operands[1], operands[2], operands[3], operands[4],
                                             operands[5], use.real("scale"), use.integer("window"),
                                             formatOf(builder, use))
                        .getResult());
  return success();
}
