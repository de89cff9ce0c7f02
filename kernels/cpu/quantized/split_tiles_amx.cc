#include "kernels/cpu/isa/amx_registers.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/quantized/quantized_blocks.h"
#include "kernels/cpu/quantized/split_tiles.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

using Sizes = SplitTileSizes;
using Ints = Bits<kLanes>;
static_assert(kLanes == 16 && kRunVecs == 1 && Sizes::kExtent == kLanes && Sizes::kSteps == 2 * kRunElements);

constexpr int64_t kRegisterBytes = 64, kTileSums = Sizes::kExtent * Sizes::kExtent;

constexpr uint32_t kHalf = 0x8000u, kUpper = 0xffff0000u;

// A plane of 32 elements, `low` the first 16, as pairs of bf16 of one of each: what is nearest, ties away from zero, or
// what is nearest to the rest. NaN has to be one whose rounding is NaN.
template <int kPlane>
BOWLINE_ALWAYS_INLINE Ints PlaneOf(Vec low, Vec high) {
  const Ints a = __builtin_bit_cast(Ints, low) + kHalf, b = (__builtin_bit_cast(Ints, high) + kHalf) & kUpper;
  if constexpr (kPlane == 0) return (a >> 16) | b;
  const Ints rest_a = __builtin_bit_cast(Ints, low - __builtin_bit_cast(Vec, a & kUpper)),
             rest_b = __builtin_bit_cast(Ints, high - __builtin_bit_cast(Vec, b));
  return ((rest_a + kHalf) >> 16) | ((rest_b + kHalf) & kUpper);
}

// Whether 32 elements are all zero, or the largest |x| is in [2^-100, 2^64): of others products or planes may be beyond
// what f32 holds.
BOWLINE_ALWAYS_INLINE bool IsInRange(Vec low, Vec high) {
  using Lanes = int __attribute__((__vector_size__(64)));
  constexpr int32_t kLeast = (127 - 100) << 23, kBeyond = (127 + 64) << 23;
  const IntVec largest = __builtin_elementwise_max(__builtin_bit_cast(IntVec, low) & 0x7fffffff,
                                                   __builtin_bit_cast(IntVec, high) & 0x7fffffff);
  const auto any = [&](int32_t least) __attribute__((always_inline)) {
    constexpr int kNotLess = 5;
    return __builtin_ia32_cmpd512_mask((Lanes)largest, (Lanes)IntVec(least), kNotLess, 0xffff) != 0;
  };
  return !any(kBeyond) && (any(kLeast) || !any(1));
}

// Elements of k that are multiplied at a time: equal blocks rather than full ones and a remainder.
template <typename Format>
int64_t ChunkOf(int64_t k) {
  return RoundUp(CeilDiv(k, CeilDiv(k, Sizes::kChunk)), Format::kElements);
}

template <int kPlane>
BOWLINE_ALWAYS_INLINE void StorePlane(const float* const (&rows)[kLanes], int64_t s, uint8_t* group) {
  Words<kLanes> words[kLanes];
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; ++i) {
    words[i] = __builtin_bit_cast(Words<kLanes>, PlaneOf<kPlane>(Load(rows[i] + s), Load(rows[i] + s + kLanes)));
  }
  Transpose<kLanes>(words);
  float* const plane = reinterpret_cast<float*>(group + kPlane * Sizes::kPlaneBytes);
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; ++i) Store(plane + i * kLanes, words[i]);
}

// Words of a register of B are pairs of a row of x: registers are transposed. In place of rows that are not there
// stands the last one.
void SplitRows(const QuantizedMatmulShape& shape, const float* x, int64_t begin, int64_t end, uint8_t* planes,
               uint8_t* split_rows) {
  const int64_t k = shape.weights.columns, blocks = CeilDiv(shape.m, Sizes::kExtent);
  const int64_t chunk = VisitBlockFormat(shape.weights.format, [&](auto type) { return ChunkOf<decltype(type)>(k); });
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first_row = block * Sizes::kExtent;
    const float* rows[kLanes];
    uint32_t beyond = 0;
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = x + Smaller(first_row + i, shape.m - 1) * k;
    for (int64_t s = 0; s < k; s += Sizes::kSteps) {
      const int64_t first = s / chunk * chunk, groups = Smaller(k - first, chunk) / Sizes::kSteps,
                    group = first / Sizes::kSteps * blocks + block * groups + (s - first) / Sizes::kSteps;
#pragma clang loop unroll(full)
      for (int i = 0; i < kLanes; ++i) {
        beyond |= uint32_t{!IsInRange(Load(rows[i] + s), Load(rows[i] + s + kLanes))} << i;
      }
      StorePlane<0>(rows, s, planes + group * Sizes::kGroupBytes);
      StorePlane<1>(rows, s, planes + group * Sizes::kGroupBytes);
    }
    for (int64_t i = 0; i < Smaller(shape.m - first_row, kLanes); ++i) split_rows[first_row + i] = !(beyond >> i & 1);
  }
}

// As ScaleOf, with NaN whose rounding is NaN. Halves come by way of an integer: where compilers load them into a
// vector's first element, a block waits for the one before.
template <typename Format>
BOWLINE_ALWAYS_INLINE GroupScale OrdinaryScale(const uint8_t* block, int group) {
  const auto half = [](uint16_t bits) __attribute__((always_inline)) {
    const uint32_t ordinary = (bits & 0x7fffu) > 0x7c00u ? 0x7e00u : bits;
    return WidenF16<8>(__builtin_bit_cast(Halves<8>, Bits<4>{ordinary, 0, 0, 0}))[0];
  };
  GroupScale result = {Format::Scale(block, group, half), 0.0f};
  if constexpr (Format::kHasOffset) result.offset = Format::Offset(block, group, half);
  return result;
}

// A row of weights, `blocks` of it, to a row of groups.
template <typename Format>
void SplitWeights(const uint8_t* bytes, int64_t blocks, uint8_t* to) {
  for (int64_t b = 0; b < blocks; ++b, bytes += Format::kBytes) {
#pragma clang loop unroll(full)
    for (int run = 0; run < Format::kRuns; run += 2, to += Sizes::kGroupBytes) {
      Vec low[1], high[1];
      const GroupScale scale = OrdinaryScale<Format>(bytes, run / Format::kRunsOfGroup);
      DecodeRun<Format>(bytes, run, scale, low);
      DecodeRun<Format>(
          bytes, run + 1,
          Format::kRunsOfGroup == 2 ? scale : OrdinaryScale<Format>(bytes, (run + 1) / Format::kRunsOfGroup), high);
      const Ints first = PlaneOf<0>(low[0], high[0]), second = PlaneOf<1>(low[0], high[0]);
      __builtin_memcpy(to, &first, sizeof(first));
      __builtin_memcpy(to + Sizes::kPlaneBytes, &second, sizeof(second));
    }
  }
}

// Groups of a block of rows of weights, of the next such block and of blocks of x.
struct Operands {
  const uint8_t *a, *x;
  int64_t next_a, next_x, groups;
};

// Sums of two blocks of weights, or columns of out, with one or two blocks of x: four registers, column by column.
// Registers 0 to 3 are sums, 4 and 5 weights, 6 and 7 x. Blocks of x stay in the first-level cache; weights come by
// loads that do not put them there.
template <bool kTwo>
void MultiplyGroups(const Operands& o, float* sums, bool accumulate) {
  constexpr int64_t kPlane = Sizes::kPlaneBytes;
  if (accumulate) {
    __builtin_ia32_tileloadd64(0, sums, kRegisterBytes);
    if constexpr (kTwo) __builtin_ia32_tileloadd64(1, sums + kTileSums, kRegisterBytes);
    __builtin_ia32_tileloadd64(2, sums + 2 * kTileSums, kRegisterBytes);
    if constexpr (kTwo) __builtin_ia32_tileloadd64(3, sums + 3 * kTileSums, kRegisterBytes);
  } else {
    __builtin_ia32_tilezero(0);
    __builtin_ia32_tilezero(1);
    __builtin_ia32_tilezero(2);
    __builtin_ia32_tilezero(3);
  }
  // Copies, which the compiler keeps in registers.
  const uint8_t *a = o.a, *x = o.x;
  const int64_t next_a = o.next_a, next_x = o.next_x, groups = o.groups;
  const auto multiply = []() __attribute__((always_inline)) {
    __builtin_ia32_tdpbf16ps(0, 4, 6);
    __builtin_ia32_tdpbf16ps(2, 5, 6);
    if constexpr (kTwo) __builtin_ia32_tdpbf16ps(1, 4, 7);
    if constexpr (kTwo) __builtin_ia32_tdpbf16ps(3, 5, 7);
  };
  for (int64_t g = 0; g < groups; ++g, a += Sizes::kGroupBytes, x += Sizes::kGroupBytes) {
    __builtin_ia32_tileloaddt164(4, a, kRegisterBytes);
    __builtin_ia32_tileloadd64(6, x + kPlane, kRegisterBytes);
    __builtin_ia32_tileloaddt164(5, a + next_a, kRegisterBytes);
    if constexpr (kTwo) __builtin_ia32_tileloadd64(7, x + next_x + kPlane, kRegisterBytes);
    multiply();
    __builtin_ia32_tileloadd64(6, x, kRegisterBytes);
    if constexpr (kTwo) __builtin_ia32_tileloadd64(7, x + next_x, kRegisterBytes);
    multiply();
    __builtin_ia32_tileloaddt164(4, a + kPlane, kRegisterBytes);
    __builtin_ia32_tileloaddt164(5, a + next_a + kPlane, kRegisterBytes);
    multiply();
  }
  __builtin_ia32_tilestored64(0, sums, kRegisterBytes);
  if constexpr (kTwo) __builtin_ia32_tilestored64(1, sums + kTileSums, kRegisterBytes);
  __builtin_ia32_tilestored64(2, sums + 2 * kTileSums, kRegisterBytes);
  if constexpr (kTwo) __builtin_ia32_tilestored64(3, sums + 3 * kTileSums, kRegisterBytes);
}

// Sums of a register, of columns of out, to its rows.
void StoreTransposed(const float* sums, int64_t rows, int64_t columns, float* out, int64_t row_words) {
  Words<kLanes> words[kLanes];
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; ++i) words[i] = Load(sums + i * kLanes);
  Transpose<kLanes>(words);
  alignas(64) float all[kLanes][kLanes];
#pragma clang loop unroll(full)
  for (int i = 0; i < kLanes; ++i) Store(all[i], words[i]);
  for (int64_t i = 0; i < Smaller(rows, kLanes); ++i) {
    if (columns >= kLanes) {
      Store(out + i * row_words, Load(all[i]));
    } else {
      for (int64_t c = 0; c < columns; ++c) out[i * row_words + c] = all[i][c];
    }
  }
}

// A strip: columns [begin, end) of out.
template <typename Format>
class Strip {
 public:
  Strip(const QuantizedMatmulShape& shape, const uint8_t* planes, const uint8_t* weights, int64_t begin, int64_t end,
        uint8_t* scratch, float* out)
      : shape_(shape),
        planes_(planes),
        weights_(weights),
        begin_(begin),
        columns_(end - begin),
        pairs_(CeilDiv(columns_, 2 * Sizes::kExtent)),
        packed_(scratch),
        sums_(reinterpret_cast<float*>(scratch + Sizes::kStripBytes)),
        out_(out) {}

  void Multiply() {
    const int64_t k = shape_.weights.columns, chunk = ChunkOf<Format>(k);
    for (int64_t m = 0; m < shape_.m; m += Sizes::kSpan) {
      for (int64_t k0 = 0; k0 < k; k0 += chunk) MultiplyChunk(m, k0, Smaller(k - k0, chunk));
    }
  }

 private:
  static constexpr int64_t kPairSums = 4 * kTileSums;

  void MultiplyChunk(int64_t m, int64_t k0, int64_t steps) {
    const int64_t groups = steps / Sizes::kSteps, block_bytes = groups * Sizes::kGroupBytes;
    for (int64_t r = 0; r < pairs_ * 2 * Sizes::kExtent; ++r) {
      // The last row in place of those that are not there.
      const int64_t row = begin_ + Smaller(r, columns_ - 1);
      SplitWeights<Format>(weights_ + row * shape_.weights.row_bytes + k0 / Format::kElements * Format::kBytes,
                           steps / Format::kElements,
                           packed_ + r / Sizes::kExtent * block_bytes + r % Sizes::kExtent * kRegisterBytes);
    }
    const int64_t all_blocks = CeilDiv(shape_.m, Sizes::kExtent), first = m / Sizes::kExtent,
                  last = CeilDiv(Smaller(shape_.m, m + Sizes::kSpan), Sizes::kExtent);
    const uint8_t* const x = planes_ + all_blocks * (k0 / Sizes::kSteps) * Sizes::kGroupBytes;
    float* sums = sums_;
    for (int64_t j = first; j < last; j += 2, sums += pairs_ * kPairSums) {
      for (int64_t i = 0; i < pairs_; ++i) {
        const Operands operands = {packed_ + 2 * i * block_bytes, x + j * block_bytes, block_bytes, block_bytes,
                                   groups};
        j + 1 < last ? MultiplyGroups<true>(operands, sums + i * kPairSums, k0 > 0)
                     : MultiplyGroups<false>(operands, sums + i * kPairSums, k0 > 0);
      }
      if (k0 + steps < shape_.weights.columns) continue;
      for (int64_t row = j; row < Smaller(j + 2, last); ++row) StoreRows(row, sums + (row - j) * kTileSums);
    }
  }

  // A block of rows of out.
  void StoreRows(int64_t block, const float* sums) {
    const int64_t row = block * Sizes::kExtent, n = shape_.weights.rows;
    for (int64_t c = 0; c < columns_; c += Sizes::kExtent, sums += 2 * kTileSums) {
      StoreTransposed(sums, shape_.m - row, columns_ - c, out_ + row * n + begin_ + c, n);
    }
  }

  const QuantizedMatmulShape& shape_;
  const uint8_t *const planes_, *const weights_;
  const int64_t begin_, columns_, pairs_;  // of blocks of columns
  uint8_t* const packed_;
  float *const sums_, *const out_;
};

void Multiply(const QuantizedMatmulShape& shape, const uint8_t* planes, const uint8_t* weights, int64_t begin,
              int64_t end, uint8_t* scratch, float* out) {
  const AmxRegisters registers;
  VisitBlockFormat(shape.weights.format, [&](auto type) {
    Strip<decltype(type)>(shape, planes, weights, begin, end, scratch, out).Multiply();
  });
}

}  // namespace

extern const SplitTilesTable kSplitTiles = {&SplitRows, &Multiply};

}  // namespace bowline::kernels::BOWLINE_ISA
