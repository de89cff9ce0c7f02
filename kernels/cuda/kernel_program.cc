#include "kernels/cuda/kernel_program.h"

#include <bit>

namespace bowline::kernels::cuda {

Parameter Parameter::F32(float value) { return {Kind::kConstant, 0, 4, std::bit_cast<uint32_t>(value)}; }
Parameter Parameter::F64(double value) { return {Kind::kConstant, 0, 8, std::bit_cast<uint64_t>(value)}; }

}  // namespace bowline::kernels::cuda
