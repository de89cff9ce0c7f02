#include "targets/cpu/description.h"

#include <algorithm>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/cpu/matmul/packed_form.h"
#include "kernels/registry/cpu_level.h"

namespace bowline::targets::cpu {
namespace {

using kernels::DType;
using kernels::Isa;

// Kernels of the registry take the best instruction set of the machine that runs them, whatever generated code is for.
struct Level {
  std::string_view name;
  Isa worst;             // the least that a machine of this level has
  bool has_amx = false;  // workspace for AMX; a machine of the level may do without it
};
constexpr Level kLevels[] = {{NameOf(CpuLevel::kV2), Isa::kBaseline},
                             {NameOf(CpuLevel::kV3), Isa::kAvx2},
                             {NameOf(CpuLevel::kV4), Isa::kAvx512},
                             {NameOf(CpuLevel::kV4Bf16), Isa::kAvx512Bf16},
                             {NameOf(CpuLevel::kV4Bf16Amx), Isa::kAvx512Bf16, true}};

// The level of this name; the lowest one if it is unknown.
const Level& LevelNamed(std::string_view name) {
  for (const Level& level : kLevels) {
    if (level.name == name) return level;
  }
  return kLevels[0];
}

absl::StatusOr<KernelNeeds> NeedsOf(const kernels::Signature& signature, std::string_view name) {
  const Level& level = LevelNamed(name);
  KernelNeeds needs;
  for (int isa = static_cast<int>(level.worst); isa <= static_cast<int>(level.has_amx ? Isa::kAmx : Isa::kAvx512Bf16);
       ++isa) {
    const absl::StatusOr<size_t> scratch = kernels::CpuKernelScratch(signature, static_cast<Isa>(isa));
    if (!scratch.ok()) return scratch.status();
    needs.scratch_bytes = std::max(needs.scratch_bytes, *scratch);
  }
  return needs;
}

std::optional<int64_t> PackedElements(int64_t k, int64_t n, DType dtype, std::string_view level) {
  if (!kernels::CanPack(dtype, LevelNamed(level).worst)) return std::nullopt;
  return kernels::PackedElements(k, n, dtype);
}

Target Describe() {
  Target target;
  target.name = "cpu";
  target.arch = "x86_64";
  target.levels = {"target-cpu",
                   "Instruction set of generated code; native: the most that this machine has, or the level that "
                   "BOWLINE_TARGET_CPU in the environment limits it to",
                   {},
                   "native"};
  for (const Level& level : kLevels) target.levels.names.push_back(level.name);
  target.reads_host_memory = true;
  target.needs = &NeedsOf;
  target.argument_alignment = &kernels::CpuArgumentAlignment;
  // Measured on Zen 4, f32 and bf16 much alike, weights in memory and not in a cache: pack_matrix takes longer than
  // what it saves in one call, because it writes to memory.
  target.packing = Packing{.contiguous_in_n = {.saved = 8, .pack = 25},
                           .other = {.saved = 12, .pack = 40},
                           .rows_in_place = 8,
                           .span_rows = 384,
                           .elements = &PackedElements};
  return target;
}

}  // namespace

const Target& Description() {
  static const Target target = Describe();
  return target;
}

}  // namespace bowline::targets::cpu
