#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_

// Blocks of weights decoded to vectors, by types/block_layouts.h. Only for *_isa.cc files.

#include "kernels/cpu/isa/half_vectors.h"
#include "kernels/cpu/isa/simd.h"
#include "types/block_layouts.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kRunVecs = kRunElements / kLanes;

using LaneBytes = int8_t __attribute__((ext_vector_type(kLanes)));
using RunBytes = uint8_t __attribute__((ext_vector_type(kRunElements)));
using RunParts = LaneBytes[kRunVecs];

BOWLINE_ALWAYS_INLINE RunBytes LoadRun(const uint8_t* p) {
  RunBytes bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return bytes;
}

// The scales of a row are computed for a chunk of blocks at once: one instruction converts all their halves, and the
// vectors of each group load its scale from memory, which costs no other instruction.
template <typename Format>
inline constexpr int kChunkBlocks = Format::kElements < 256 ? 16 : 1;
template <typename Format>
inline constexpr int kChunkGroups = kChunkBlocks<Format> * Format::kRuns / Format::kRunsOfGroup;

template <typename Format>
struct ChunkScales {
  float scale[kChunkGroups<Format>];
  float offset[Format::kHasOffset ? kChunkGroups<Format> : 1];
};

// Where the blocks of a chunk begin: of one that is not full, those that are not there are its last one.
template <typename Format>
struct ChunkBlocks {
  explicit ChunkBlocks(int64_t blocks) {
    for (int i = 0; i < kChunkBlocks<Format>; ++i) at[i] = (i < blocks ? i : blocks - 1) * Format::kBytes;
  }
  int64_t at[kChunkBlocks<Format>];
};

// to[i]: the half at byte `at` of block i.
template <typename Format>
BOWLINE_ALWAYS_INLINE void LoadHalvesOf(const uint8_t* first, const ChunkBlocks<Format>& blocks, int at, float* to) {
  constexpr int kCount = kChunkBlocks<Format>;
  Halves<kCount> halves;
#pragma clang loop unroll(full)
  for (int i = 0; i < kCount; ++i) {
    uint16_t half;
    __builtin_memcpy(&half, first + blocks.at[i] + at, sizeof(half));
    halves[i] = half;
  }
  Store(to, WidenF16<kCount>(halves));
}

template <int kN>
BOWLINE_ALWAYS_INLINE void Scale(const uint8_t (&factors)[kN], float by, float* to) {
  using Factors = uint8_t __attribute__((ext_vector_type(kN)));
  Store(to, __builtin_convertvector(__builtin_bit_cast(Factors, factors), Words<kN>) * by);
}

BOWLINE_ALWAYS_INLINE float LoadHalf(const uint8_t* p) {
  uint16_t half;
  __builtin_memcpy(&half, p, sizeof(half));
  return WidenF16(half);
}

template <typename Format>
BOWLINE_ALWAYS_INLINE void LoadScales(const uint8_t* block, const ChunkBlocks<Format>& blocks,
                                      ChunkScales<Format>& scales) {
  if constexpr (Format::kFactors == BlockFactors::kNone) {
    LoadHalvesOf<Format>(block, blocks, Format::kScaleAt, scales.scale);
    if constexpr (Format::kHasOffset) LoadHalvesOf<Format>(block, blocks, Format::kOffsetAt, scales.offset);
  } else if constexpr (Format::kFactors == BlockFactors::kSixBits) {
    uint8_t of_scale[8], of_offset[8];
    SixBitFactors(block + Format::kFactorsAt, of_scale, of_offset);
    Scale(of_scale, LoadHalf(block + Format::kScaleAt), scales.scale);
    Scale(of_offset, -LoadHalf(block + Format::kOffsetAt), scales.offset);
  } else {
    using Factors = int8_t __attribute__((ext_vector_type(kRunElements)));
    const auto factors = __builtin_bit_cast(Factors, LoadRun(block + Format::kFactorsAt));
    Store(scales.scale,
          __builtin_convertvector(factors, Words<kRunElements>) * LoadHalf(block + Format::kScaleAt));
  }
}

// The 16 elements of a run of the chunk's block `index`.
template <typename Format>
BOWLINE_ALWAYS_INLINE void DecodeRun(const uint8_t* block, int64_t index, int run, const ChunkScales<Format>& scales,
                                     Vec (&out)[kRunVecs]) {
  RunBytes bytes = (LoadRun(block + Format::Low(run)) >> static_cast<uint8_t>(Format::LowShift(run))) &
                   static_cast<uint8_t>(Format::kMask);
  if constexpr (Format::kHasHigh) {
    const RunBytes high = LoadRun(block + Format::High(run)) >> static_cast<uint8_t>(Format::HighShift(run));
    bytes |= (high & uint8_t{3}) << uint8_t{4};
  }
  bytes -= static_cast<uint8_t>(Format::kBias);
  RunParts parts;
  __builtin_memcpy(&parts, &bytes, sizeof(parts));
  const int64_t group = index * (Format::kRuns / Format::kRunsOfGroup) + run / Format::kRunsOfGroup;
#pragma clang loop unroll(full)
  for (int j = 0; j < kRunVecs; ++j) {
    const Vec q = __builtin_convertvector(parts[j], Vec);
    if constexpr (Format::kHasOffset) {
      out[j] = MulAdd(q, Vec(scales.scale[group]), Vec(scales.offset[group]));
    } else {
      out[j] = q * scales.scale[group];
    }
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_
