#include "kernels/cuda/fill_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels::cuda {
namespace {

// The upper half of the f32, rounded to nearest even; a NaN stays one.
uint32_t RoundedToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

absl::StatusOr<KernelProgram> FillProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const FillShape shape, ParseFill(signature));
  uint32_t word;
  if (shape.element == DType::kI32) {
    word = static_cast<uint32_t>(static_cast<int32_t>(shape.value));
  } else if (shape.element == DType::kF32) {
    word = std::bit_cast<uint32_t>(static_cast<float>(shape.value));
  } else {
    word = RoundedToBf16(static_cast<float>(shape.value)) * 0x10001u;
  }
  return KernelProgram{
      0, {FillLaunch(Parameter::Argument(0), shape.count * static_cast<int64_t>(SizeOf(shape.element)), word)}};
}

}  // namespace

DeviceLaunch FillLaunch(Parameter out, int64_t bytes, uint32_t word) {
  const int64_t blocks = std::clamp<int64_t>(CeilDiv(bytes, 16 * kBlockThreads), 1, kManyBlocks);
  return {"bowline_fill",
          {U32(blocks), 1, 1},
          {kBlockThreads, 1, 1},
          0,
          {out, Parameter::I64(bytes), Parameter::I32(static_cast<int32_t>(word))}};
}

CudaKernel FillCuda() { return {&FillProgram, {"value"}}; }

}  // namespace bowline::kernels::cuda
