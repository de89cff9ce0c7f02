#include "kernels/cpu/half.h"
#include "kernels/cpu/quantized/quantized.h"
#include "kernels/cpu/quantized/quantized_blocks.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

BOWLINE_ALWAYS_INLINE void StoreAs(float* p, Vec v) { Store(p, v); }
BOWLINE_ALWAYS_INLINE void StoreAs(Bf16* p, Vec v) {
  const Bits<kLanes> bits = __builtin_bit_cast(Bits<kLanes>, v);
  const Bits<kLanes> rounded = (bits + (0x7fffu + ((bits >> 16) & 1u))) >> 16;
  const Bits<kLanes> nan = (bits >> 16) | 0x40u;
  const Halves<kLanes> halves =
      __builtin_convertvector((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded, Halves<kLanes>);
  __builtin_memcpy(p, &halves, sizeof(halves));
}

template <typename Format, typename T>
void DecodeTo(const uint8_t* bytes, int64_t blocks, T* out) {
  const ChunkBlocks<Format> full(kChunkBlocks<Format>), last((blocks - 1) % kChunkBlocks<Format> + 1);
  ChunkScales<Format> scales;
  for (int64_t first = 0; first < blocks; first += kChunkBlocks<Format>) {
    const int64_t count = blocks - first < kChunkBlocks<Format> ? blocks - first : kChunkBlocks<Format>;
    LoadScales<Format>(bytes, count < kChunkBlocks<Format> ? last : full, scales);
    for (int64_t b = 0; b < count; ++b, bytes += Format::kBytes, out += Format::kElements) {
#pragma clang loop unroll(full)
      for (int run = 0; run < Format::kRuns; ++run) {
        Vec values[kRunVecs];
        DecodeRun<Format>(bytes, b, run, scales, values);
#pragma clang loop unroll(full)
        for (int j = 0; j < kRunVecs; ++j) StoreAs(out + run * kRunElements + j * kLanes, values[j]);
      }
    }
  }
}

void Decode(ElementType format, const uint8_t* bytes, int64_t blocks, ElementType to, void* out) {
  VisitBlockFormat(format, [&](auto type) {
    using Format = decltype(type);
    if (to == ElementType::kF32) {
      DecodeTo<Format>(bytes, blocks, static_cast<float*>(out));
    } else {
      DecodeTo<Format>(bytes, blocks, static_cast<Bf16*>(out));
    }
  });
}

void WidenBf16(const uint16_t* values, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = Bf16ToF32(values[i]);
}

void StoreOne(const QuantizedMatmulShape& shape, void* out, int64_t m, int64_t n, float value) {
  const int64_t at = m * shape.weights.rows + n;
  if (shape.out == ElementType::kF32) {
    static_cast<float*>(out)[at] = value;
  } else {
    static_cast<Bf16*>(out)[at] = Narrow<Bf16>(value);
  }
}

// How a row of weights is divided into chunks.
template <typename Format>
struct RowChunks {
  explicit RowChunks(const QuantizedMatmulShape& shape)
      : blocks(shape.weights.columns / Format::kElements),
        full(kChunkBlocks<Format>),
        last((blocks - 1) % kChunkBlocks<Format> + 1) {}
  int64_t blocks;
  ChunkBlocks<Format> full, last;
};

// Columns n to n + kColumns of out in kRows rows, of which shape.m are there: the others are computed from the last one
// and left.
template <typename Format, int kRows, int kColumns>
BOWLINE_ALWAYS_INLINE void MultiplyBlocks(const QuantizedMatmulShape& shape, const RowChunks<Format>& chunks,
                                          const float* x, const uint8_t* weights, int64_t n, void* out) {
  const int64_t k = shape.weights.columns, row_bytes = shape.weights.row_bytes;
  const uint8_t* block = weights + n * row_bytes;
  const float* at[kRows];
  for (int i = 0; i < kRows; ++i) at[i] = x + (i < shape.m ? i : shape.m - 1) * k;
  Vec sums[kColumns][kRows] = {};
  ChunkScales<Format> scales[kColumns];
  int64_t k0 = 0;
  for (int64_t first = 0; first < chunks.blocks; first += kChunkBlocks<Format>) {
    const bool is_full = chunks.blocks - first >= kChunkBlocks<Format>;
    const int64_t count = is_full ? kChunkBlocks<Format> : chunks.blocks - first;
#pragma clang loop unroll(full)
    for (int c = 0; c < kColumns; ++c) {
      LoadScales<Format>(block + c * row_bytes, is_full ? chunks.full : chunks.last, scales[c]);
    }
    for (int64_t b = 0; b < count; ++b, k0 += Format::kElements, block += Format::kBytes) {
#pragma clang loop unroll(full)
      for (int run = 0; run < Format::kRuns; ++run) {
        Vec w[kColumns][kRunVecs];
#pragma clang loop unroll(full)
        for (int c = 0; c < kColumns; ++c) DecodeRun<Format>(block + c * row_bytes, b, run, scales[c], w[c]);
#pragma clang loop unroll(full)
        for (int j = 0; j < kRunVecs; ++j) {
#pragma clang loop unroll(full)
          for (int i = 0; i < kRows; ++i) {
            const Vec values = Load(at[i] + k0 + run * kRunElements + j * kLanes);
#pragma clang loop unroll(full)
            for (int c = 0; c < kColumns; ++c) sums[c][i] = MulAdd(w[c][j], values, sums[c][i]);
          }
        }
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) {
    if (i >= shape.m) break;
#pragma clang loop unroll(full)
    for (int c = 0; c < kColumns; ++c) StoreOne(shape, out, i, n + c, ReduceAdd(sums[c][i]));
  }
}

template <typename Format, int kRows, int kColumns>
void MultiplyColumns(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin,
                     int64_t end, void* out) {
  const RowChunks<Format> chunks(shape);
  int64_t n = begin;
  for (; n + kColumns <= end; n += kColumns) {
    MultiplyBlocks<Format, kRows, kColumns>(shape, chunks, x, weights, n, out);
  }
  for (; n < end; ++n) MultiplyBlocks<Format, kRows, 1>(shape, chunks, x, weights, n, out);
}

void Few(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin, int64_t end,
         void* out) {
  // As many sums as there are registers for.
  constexpr int kMost = kLanes == 16 ? 4 : 2;
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Format = decltype(type);
    if (shape.m == 1) return MultiplyColumns<Format, 1, 4>(shape, x, weights, begin, end, out);
    if (shape.m == 2) return MultiplyColumns<Format, 2, 4>(shape, x, weights, begin, end, out);
    if (shape.m <= 4) return MultiplyColumns<Format, 4, kMost>(shape, x, weights, begin, end, out);
    MultiplyColumns<Format, 8, kMost / 2>(shape, x, weights, begin, end, out);
  });
}

}  // namespace

extern const QuantizedTable kQuantized = {&Decode, &WidenBf16, &Few};

}  // namespace bowline::kernels::BOWLINE_ISA
