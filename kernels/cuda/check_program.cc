#include <utility>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/check_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

absl::StatusOr<KernelProgram> CheckProgram(std::string function, absl::StatusOr<DataCheckShape> parsed) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DataCheckShape shape, std::move(parsed));
  return KernelProgram{
      0,
      {{std::move(function),
        {1, 1, 1},
        {kBlockThreads, 1, 1},
        kBlockThreads * sizeof(int32_t),
        {Parameter::Argument(0), Parameter::Argument(1), Parameter::I64(shape.count), Parameter::I32(shape.rows)}}}};
}
absl::StatusOr<KernelProgram> CheckOffsetsProgram(const Signature& signature) {
  return CheckProgram("bowline_check_offsets", ParseCheckOffsets(signature));
}
absl::StatusOr<KernelProgram> CheckIdsProgram(const Signature& signature) {
  return CheckProgram("bowline_check_ids", ParseCheckIds(signature));
}

}  // namespace

CudaKernel CheckIdsCuda() { return {&CheckIdsProgram, {"rows"}}; }
CudaKernel CheckOffsetsCuda() { return {&CheckOffsetsProgram, {"rows"}}; }

}  // namespace bowline::kernels::cuda
