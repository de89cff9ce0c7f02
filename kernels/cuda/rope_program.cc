#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels::cuda {
namespace {

absl::StatusOr<KernelProgram> RopeProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const RopeAnglesShape shape, ParseRopeAngles(signature));
  // Sines are computed for angles below 2^49 (trigonometry.h), of positions below 2^31.
  if (shape.theta < 0x1p-18) {
    return Refuse(signature,
                  absl::StrCat("attribute 'theta' is ", shape.theta, "; a CUDA device needs at least 2^-18"));
  }
  constexpr int64_t kAlong = 32, kRows = kBlockThreads / kAlong;
  return KernelProgram{0,
                       {{absl::StrCat("bowline_rope_angles_", NameOf(shape.element)),
                         {U32(std::min(CeilDiv(shape.half, kAlong), kMaxBlocks)),
                          U32(std::min<int64_t>(CeilDiv(shape.positions, kRows), kMaxBlocksY)), 1},
                         {kAlong, kRows, 1},
                         0,
                         {Parameter::Argument(0), Parameter::Argument(1), Parameter::Argument(2),
                          Parameter::I64(shape.positions), Parameter::I64(shape.half), Parameter::F64(shape.theta),
                          Parameter::F64(shape.rate), Parameter::F64(shape.slope), Parameter::F64(shape.offset)}}}};
}

}  // namespace

CudaKernel RopeAnglesCuda() {
  return {&RopeProgram, {"theta", "factor", "original_positions", "low_turns", "high_turns"}};
}

}  // namespace bowline::kernels::cuda
