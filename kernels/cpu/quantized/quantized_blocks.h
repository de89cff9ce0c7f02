#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_

// Decodes blocks of weights to vectors of f32. types/block_layouts.h defines the blocks. Only for *_isa.cc files.

#include "kernels/cpu/isa/half_vectors.h"
#include "kernels/cpu/isa/simd.h"
#include "types/block_layouts.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kRunVecs = kRunElements / kLanes;

using RunBytes = uint8_t __attribute__((ext_vector_type(kRunElements)));
using LaneBytes = int8_t __attribute__((ext_vector_type(kLanes)));
struct RunParts {
  LaneBytes part[kRunVecs];
};

BOWLINE_ALWAYS_INLINE RunBytes LoadRun(const uint8_t* p) {
  RunBytes bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return bytes;
}

struct GroupScale {
  float scale, offset;  // offset: 0 if the format has no offsets
};

template <typename Format>
BOWLINE_ALWAYS_INLINE GroupScale ScaleOf(const uint8_t* block, int group) {
  const auto half = [](uint16_t bits) __attribute__((always_inline)) { return WidenF16(bits); };
  GroupScale result = {Format::Scale(block, group, half), 0.0f};
  if constexpr (Format::kHasOffset) result.offset = Format::Offset(block, group, half);
  return result;
}

// Decodes the 16 elements of a run with the scale and offset of its group.
template <typename Format>
BOWLINE_ALWAYS_INLINE void DecodeRun(const uint8_t* block, int run, GroupScale group, Vec (&out)[kRunVecs]) {
  RunBytes bytes = (LoadRun(block + Format::Low(run)) >> static_cast<uint8_t>(Format::LowShift(run))) &
                   static_cast<uint8_t>(Format::kMask);
  if constexpr (Format::kHasHigh) {
    const RunBytes high = LoadRun(block + Format::High(run)) >> static_cast<uint8_t>(Format::HighShift(run));
    bytes |= (high & uint8_t{3}) << uint8_t{4};
  }
  bytes -= static_cast<uint8_t>(Format::kBias);
  const RunParts parts = __builtin_bit_cast(RunParts, bytes);
#pragma clang loop unroll(full)
  for (int j = 0; j < kRunVecs; ++j) {
    const Vec q = __builtin_convertvector(parts.part[j], Vec);
    out[j] = Format::kHasOffset ? MulAdd(q, Vec(group.scale), Vec(group.offset)) : q * group.scale;
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_BLOCKS_H_
