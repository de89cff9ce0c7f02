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
  for (int64_t b = 0; b < blocks; ++b, bytes += Format::kBytes, out += Format::kElements) {
#pragma clang loop unroll(full)
    for (int run = 0; run < Format::kRuns; ++run) {
      Vec values[kRunVecs];
      DecodeRun<Format>(bytes, run, ScaleOf<Format>(bytes, run / Format::kRunsOfGroup), values);
#pragma clang loop unroll(full)
      for (int j = 0; j < kRunVecs; ++j) StoreAs(out + run * kRunElements + j * kLanes, values[j]);
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

// Columns n to n + kColumns of out in kRows rows, of which `rows` are there: the others are computed from the last one
// and left.
template <typename Format, int kRows, int kColumns, typename Out>
BOWLINE_ALWAYS_INLINE void MultiplyBlocks(const QuantizedMatmulShape& shape, const float* x, int64_t rows,
                                          const uint8_t* weights, int64_t n, Out* out) {
  const int64_t k = shape.weights.columns, row_bytes = shape.weights.row_bytes;
  const uint8_t* block = weights + n * row_bytes;
  const float* at[kRows];
  for (int i = 0; i < kRows; ++i) at[i] = x + (i < rows ? i : rows - 1) * k;
  Vec sums[kColumns][kRows] = {};
  for (int64_t k0 = 0; k0 < k; k0 += Format::kElements, block += Format::kBytes) {
#pragma clang loop unroll(full)
    for (int run = 0; run < Format::kRuns; ++run) {
      Vec w[kColumns][kRunVecs];
#pragma clang loop unroll(full)
      for (int c = 0; c < kColumns; ++c) {
        const uint8_t* b = block + c * row_bytes;
        DecodeRun<Format>(b, run, ScaleOf<Format>(b, run / Format::kRunsOfGroup), w[c]);
      }
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
  for (int i = 0; i < kRows; ++i) {
    if (i >= rows) break;
    for (int c = 0; c < kColumns; ++c) out[i * shape.weights.rows + n + c] = Narrow<Out>(ReduceAdd(sums[c][i]));
  }
}

template <typename Format, int kRows, int kColumns, typename Out>
void MultiplyColumns(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin,
                     int64_t end, Out* out) {
  int64_t n = begin;
  for (; n + kColumns <= end; n += kColumns) {
    MultiplyBlocks<Format, kRows, kColumns>(shape, x, shape.m, weights, n, out);
  }
  for (; n < end; ++n) MultiplyBlocks<Format, kRows, 1>(shape, x, shape.m, weights, n, out);
}

void Few(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin, int64_t end,
         void* out) {
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    using Format = decltype(type);
    const auto multiply = [&](auto* to) {
      if (shape.m == 1) return MultiplyColumns<Format, 1, 4>(shape, x, weights, begin, end, to);
      if (shape.m == 2) return MultiplyColumns<Format, 2, 4>(shape, x, weights, begin, end, to);
      if (shape.m <= 4) return MultiplyColumns<Format, 4, 2>(shape, x, weights, begin, end, to);
      MultiplyColumns<Format, 8, 1>(shape, x, weights, begin, end, to);
    };
    if (shape.out == ElementType::kF32) {
      multiply(static_cast<float*>(out));
    } else {
      multiply(static_cast<Bf16*>(out));
    }
  });
}

}  // namespace

extern const QuantizedTable kQuantized = {&Decode, &WidenBf16, &Few};

}  // namespace bowline::kernels::BOWLINE_ISA
