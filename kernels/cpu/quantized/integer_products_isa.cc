#include "kernels/cpu/half.h"
#include "kernels/cpu/quantized/integer_blocks.h"
#include "kernels/cpu/quantized/integer_products.h"
#include "kernels/cpu/quantized/integer_rows.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// Whether offsets get sums of their own, whose chains of additions run beside those of products.
constexpr bool kHasSpareRegisters = kLanes == kWideLanes;

// Of each row one, the sum of its four lanes.
BOWLINE_ALWAYS_INLINE Quad AddLanes(Wide v) {
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return __builtin_shufflevector(v, v, 0, 4, 8, 12);
}

// Blocks of four rows of weights with a block of kRows rows of x, of which a group has records of `stride` rows.
template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void AddBlock(const BlockRows& rows, const uint8_t* records, int64_t stride, Wide (&sums)[kRows],
                                    Wide (&offsets)[kRows]) {
  using Record = IntegerRecord<Format>;
  constexpr int kSteps = 2 * Format::kRunsOfGroup;
  RowScales<Format> scales;
  LoadScales(rows, scales);
#pragma clang loop unroll(full)
  for (int group = 0; group < RowScales<Format>::kGroups; ++group) {
    Shorts weights[kSteps];
#pragma clang loop unroll(full)
    for (int j = 0; j < Format::kRunsOfGroup; ++j) {
      DecodeRows<Format>(rows, group * Format::kRunsOfGroup + j, weights[2 * j], weights[2 * j + 1]);
    }
    const Wide scale = Spread(scales.scale[group]);
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const uint8_t* record = records + (group * stride + i) * Record::kBytes;
      WideInts products = Format::kBias == 0 ? WideInts(0) : LoadForRows(record + Record::kSums);
#pragma clang loop unroll(full)
      for (int s = 0; s < kSteps; ++s) products = AddPairs(products, weights[s], LoadForRows(record + 16 * s));
      const Wide values = __builtin_convertvector(products, Wide) * LoadFrom<float>(record + Record::kScale);
      sums[i] = WideMulAdd(values, scale, sums[i]);
      if constexpr (Format::kHasOffset) {
        Wide& to = kHasSpareRegisters ? offsets[i] : sums[i];
        to =
            WideMulAdd(__builtin_bit_cast(Wide, LoadForRows(record + Record::kSums)), Spread(scales.offset[group]), to);
      }
    }
  }
}

// Four columns of out. The weights of the next four are asked for in the order of memory: four rows that are read at
// once are more streams than processors foresee.
template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void MultiplyFour(int64_t blocks, BlockRows rows, const uint8_t* next, const uint8_t* records,
                                        int64_t stride, Quad (&out)[kRows]) {
  constexpr int kBytes = kBlockRows * Format::kBytes, kLine = 64;
  Wide sums[kRows] = {}, offsets[kRows] = {};
  for (int64_t b = 0; b < blocks; ++b) {
#pragma clang loop unroll(full)
    for (int line = 0; line < kBytes; line += kLine) __builtin_prefetch(next + line, 0, 3);
    next += kBytes;
    AddBlock<Format, kRows>(rows, records, stride, sums, offsets);
    for (const uint8_t*& row : rows.row) row += Format::kBytes;
    records += RowScales<Format>::kGroups * stride * IntegerRecord<Format>::kBytes;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i)
    out[i] = AddLanes(Format::kHasOffset && kHasSpareRegisters ? sums[i] + offsets[i] : sums[i]);
}

// Columns [begin, end) of out, of `m` rows: kRows of them at a time, and the rest one by one.
template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void MultiplyColumns(const QuantizedMatmulShape& shape, int64_t m, const uint8_t* records,
                                           const uint8_t* weights, int64_t begin, int64_t end, void* out) {
  const int64_t row_bytes = shape.weights.row_bytes, blocks = shape.weights.columns / Format::kElements;
  for (int64_t n = begin; n < end; n += kBlockRows) {
    const int64_t columns = end - n < kBlockRows ? end - n : kBlockRows;
    BlockRows rows;
    for (int64_t c = 0; c < kBlockRows; ++c) rows.row[c] = weights + (n + (c < columns ? c : 0)) * row_bytes;
    // No rows follow the last ones; prefetching these again costs little.
    const uint8_t* next = weights + (n + 2 * kBlockRows <= end ? n + kBlockRows : n) * row_bytes;
    const auto store = [&](const Quad& result, int64_t row) __attribute__((always_inline)) {
      const int64_t at = row * shape.weights.rows + n;
      for (int64_t c = 0; c < columns; ++c) {
        if (shape.out == ElementType::kF32) {
          static_cast<float*>(out)[at + c] = result[c];
        } else {
          static_cast<Bf16*>(out)[at + c] = Narrow<Bf16>(result[c]);
        }
      }
    };
    int64_t first = 0;
    for (; first + kRows <= m; first += kRows) {
      Quad result[kRows];
      MultiplyFour<Format, kRows>(blocks, rows, next, records + first * IntegerRecord<Format>::kBytes, m, result);
      for (int64_t i = 0; i < kRows; ++i) store(result[i], first + i);
    }
    for (; first < m; ++first) {
      Quad result[1];
      MultiplyFour<Format, 1>(blocks, rows, next, records + first * IntegerRecord<Format>::kBytes, m, result);
      store(result[0], first);
    }
  }
}

void FewIntegers(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                 int64_t end, void* out) {
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Format = decltype(type);
#if defined(__AVX512F__)
    switch (shape.m) {
      case 1:
        return MultiplyColumns<Format, 1>(shape, 1, records, weights, begin, end, out);
      case 2:
        return MultiplyColumns<Format, 2>(shape, 2, records, weights, begin, end, out);
      case 3:
        return MultiplyColumns<Format, 3>(shape, 3, records, weights, begin, end, out);
      case 4:
        return MultiplyColumns<Format, 4>(shape, 4, records, weights, begin, end, out);
      case 5:
        return MultiplyColumns<Format, 5>(shape, 5, records, weights, begin, end, out);
      case 6:
        return MultiplyColumns<Format, 6>(shape, 6, records, weights, begin, end, out);
      case 7:
        return MultiplyColumns<Format, 7>(shape, 7, records, weights, begin, end, out);
      default:
        return MultiplyColumns<Format, 8>(shape, 8, records, weights, begin, end, out);
    }
#else
    // Registers hold the sums of two rows. Weights are decoded again for the next two, from the first-level cache.
    MultiplyColumns<Format, 2>(shape, shape.m, records, weights, begin, end, out);
#endif
  });
}

void RoundRows(const QuantizedMatmulShape& shape, const float* x, int64_t begin, int64_t end, uint8_t* records,
               uint8_t* rounded) {
  const int64_t k = shape.weights.columns;
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Record = IntegerRecord<decltype(type)>;
    for (int64_t i = begin; i < end; ++i) {
      rounded[i] = static_cast<uint8_t>(
          RoundRow<decltype(type)>(x + i * k, k, shape.m * Record::kBytes, records + i * Record::kBytes));
    }
  });
}

}  // namespace

extern const IntegerTable kIntegerProducts = {&RoundRows, &FewIntegers};

}  // namespace bowline::kernels::BOWLINE_ISA
