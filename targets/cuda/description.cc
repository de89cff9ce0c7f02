#include "kernels/cuda/kernel_program.h"
#include "targets/target.h"

namespace bowline::targets::cuda {
namespace {

absl::StatusOr<KernelNeeds> NeedsOf(const kernels::Signature& signature, std::string_view) {
  const absl::StatusOr<kernels::cuda::KernelProgram> program = kernels::cuda::ProgramOf(signature);
  if (!program.ok()) return program.status();
  return KernelNeeds{.scratch_bytes = program->scratch_bytes};
}

// Of a workspace of cuBLAS.
constexpr int64_t kAlignment = 256;

// Code moves several elements at once, and libraries take what their own allocations have.
int64_t AlignmentOf(std::string_view, kernels::Access) { return kAlignment; }

Target Describe() {
  Target target;
  target.name = "cuda";
  target.arch = "nvptx64";
  target.levels = {
      "cuda-arch", "Architecture of generated code where the target is cuda", {"sm_80", "sm_90a", "sm_100"}, "sm_90a"};
  target.alignment = kAlignment;
  target.has_host_threads = false;
  target.needs = &NeedsOf;
  target.argument_alignment = &AlignmentOf;
  target.computed_types = {ElementType::kF32, ElementType::kBF16};
  target.has_epilogues = false;
  target.product_alignment = ProductAlignment{.row_bytes = 16, .multiple = 64, .min_size = 256};
  // Large products keep a device busy, and its memory is no cache.
  target.loss_tile_bytes = int64_t{1} << 31;
  target.column_sum_blocks = 512;  // a block of threads for each
  return target;
}

}  // namespace

const Target& Description() {
  static const Target target = Describe();
  return target;
}

}  // namespace bowline::targets::cuda
