#include "kernels/cpu/half.h"
#include "kernels/cpu/quantized/integer_blocks.h"
#include "kernels/cpu/quantized/integer_products.h"
#include "kernels/cpu/quantized/integer_rows.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// Of each row one, the sum of its four lanes.
BOWLINE_ALWAYS_INLINE Quad AddLanes(Vec v) {
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return __builtin_shufflevector(v, v, 0, 4, 8, 12);
}

// Blocks of four rows of weights with a block of kRows rows of x.
template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void AddBlock(const BlockRows& rows, const uint8_t* records, Vec (&sums)[kRows],
                                    Vec (&offsets)[kRows]) {
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
    const Vec scale = Spread(scales.scale[group]);
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const uint8_t* record = records + (group * kRows + i) * Record::kBytes;
      IntVec products = Format::kBias == 0 ? IntVec(0) : LoadForRows(record + Record::kSums);
#pragma clang loop unroll(full)
      for (int s = 0; s < kSteps; ++s) products = AddPairs(products, weights[s], LoadForRows(record + 16 * s));
      const Vec values = __builtin_convertvector(products, Vec) * LoadFrom<float>(record + Record::kScale);
      sums[i] = MulAdd(values, scale, sums[i]);
      if constexpr (Format::kHasOffset) {
        offsets[i] = MulAdd(__builtin_bit_cast(Vec, LoadForRows(record + Record::kSums)), Spread(scales.offset[group]),
                            offsets[i]);
      }
    }
  }
}

// Four columns of out. The weights of the next four are asked for in the order of memory: four rows that are read at
// once are more streams than processors foresee.
template <typename Format, int kRows>
BOWLINE_ALWAYS_INLINE void MultiplyFour(int64_t blocks, BlockRows rows, const uint8_t* next, const uint8_t* records,
                                        Quad (&out)[kRows]) {
  constexpr int kBytes = kBlockRows * Format::kBytes, kLine = 64;
  Vec sums[kRows] = {}, offsets[kRows] = {};
  for (int64_t b = 0; b < blocks; ++b) {
#pragma clang loop unroll(full)
    for (int line = 0; line < kBytes; line += kLine) __builtin_prefetch(next + line, 0, 3);
    next += kBytes;
    AddBlock<Format, kRows>(rows, records, sums, offsets);
    for (const uint8_t*& row : rows.row) row += Format::kBytes;
    records += RowScales<Format>::kGroups * kRows * IntegerRecord<Format>::kBytes;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) out[i] = AddLanes(Format::kHasOffset ? sums[i] + offsets[i] : sums[i]);
}

template <typename Format, int kRows>
void MultiplyColumns(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                     int64_t end, void* out) {
  const int64_t row_bytes = shape.weights.row_bytes, blocks = shape.weights.columns / Format::kElements;
  for (int64_t n = begin; n < end; n += kBlockRows) {
    const int64_t columns = end - n < kBlockRows ? end - n : kBlockRows;
    BlockRows rows;
    for (int64_t c = 0; c < kBlockRows; ++c) rows.row[c] = weights + (n + (c < columns ? c : 0)) * row_bytes;
    Quad result[kRows];
    // No rows follow the last ones; prefetching these again costs little.
    const int64_t next = n + 2 * kBlockRows <= end ? n + kBlockRows : n;
    MultiplyFour<Format, kRows>(blocks, rows, weights + next * row_bytes, records, result);
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t at = i * shape.weights.rows + n;
      for (int64_t c = 0; c < columns; ++c) {
        if (shape.out == ElementType::kF32) {
          static_cast<float*>(out)[at + c] = result[i][c];
        } else {
          static_cast<Bf16*>(out)[at + c] = Narrow<Bf16>(result[i][c]);
        }
      }
    }
  }
}

void FewIntegers(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                 int64_t end, void* out) {
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Format = decltype(type);
    switch (shape.m) {
      case 1:
        return MultiplyColumns<Format, 1>(shape, records, weights, begin, end, out);
      case 2:
        return MultiplyColumns<Format, 2>(shape, records, weights, begin, end, out);
      case 3:
        return MultiplyColumns<Format, 3>(shape, records, weights, begin, end, out);
      case 4:
        return MultiplyColumns<Format, 4>(shape, records, weights, begin, end, out);
      case 5:
        return MultiplyColumns<Format, 5>(shape, records, weights, begin, end, out);
      case 6:
        return MultiplyColumns<Format, 6>(shape, records, weights, begin, end, out);
      case 7:
        return MultiplyColumns<Format, 7>(shape, records, weights, begin, end, out);
      default:
        return MultiplyColumns<Format, 8>(shape, records, weights, begin, end, out);
    }
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
