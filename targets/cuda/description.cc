#include "kernels/cuda/kernel_program.h"
#include "kernels/registry/data_check.h"
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
// A check of data writes two words of many that lie beside each other.
int64_t AlignmentOf(std::string_view kernel, kernels::Access) { return kernels::IsDataCheck(kernel) ? 0 : kAlignment; }

// Peaks from NVIDIA's data sheets of the A100 80 GB, the H100 and the B200, each as SXM, without sparsity: bf16 and
// memory, and of NVLink what it moves in one direction. Products by cuBLASLt were measured at 0.76 of an H100's peak,
// and 3 microseconds from one command of a stream to the next; the latency of a message is an assumption.
struct Card {
  std::string_view level;
  double flops, bytes, link;
};
constexpr Card kCards[] = {
    {"sm_80", 312e12, 2.04e12, 300e9}, {"sm_90a", 989e12, 3.35e12, 450e9}, {"sm_100", 2250e12, 8e12, 900e9}};
constexpr double kReached = 0.76;

Costs CostsOf(std::string_view level) {
  Card card = kCards[0];
  for (const Card& other : kCards) {
    if (other.level == level) card = other;
  }
  return {.flops = kReached * card.flops,
          .bytes = card.bytes,
          .command_seconds = 3e-6,
          .link = {.bandwidth = card.link, .latency = std::chrono::microseconds(10)}};
}

Target Describe() {
  Target target;
  target.name = "cuda";
  target.arch = "nvptx64";
  target.levels = {"cuda-arch", "Architecture of generated code where the target is cuda", {}, "sm_90a"};
  for (const Card& card : kCards) target.levels.names.push_back(card.level);
  target.alignment = kAlignment;
  target.has_host_threads = false;
  target.splits_f32_products = false;
  target.needs = &NeedsOf;
  target.argument_alignment = &AlignmentOf;
  target.computed_types = {ElementType::kF32, ElementType::kBF16};
  target.orders_communications = true;  // commands become CUDA graphs
  target.has_epilogues = false;
  for (const kernels::ProductEpilogue& epilogue : kernels::kProductEpilogues) {
    target.library_epilogues.push_back(epilogue.name);
  }
  target.product_alignment = ProductAlignment{.row_bytes = 16, .multiple = 64, .min_size = 256};
  // Large products keep a device busy, and its memory is no cache.
  target.loss_tile_bytes = int64_t{1} << 31;
  target.column_sum_blocks = 512;  // a block of threads for each
  target.costs = &CostsOf;
  return target;
}

}  // namespace

const Target& Description() {
  static const Target target = Describe();
  return target;
}

}  // namespace bowline::targets::cuda
