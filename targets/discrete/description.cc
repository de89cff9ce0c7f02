#include "targets/cpu/description.h"

#include "kernels/discrete/kernel_needs.h"
#include "targets/target.h"

namespace bowline::targets::discrete {
namespace {

absl::StatusOr<KernelNeeds> NeedsOf(const kernels::Signature& signature, std::string_view level) {
  const absl::StatusOr<std::optional<size_t>> own = kernels::discrete::OwnScratch(signature);
  if (!own.ok()) return own.status();
  if (own->has_value()) return KernelNeeds{.scratch_bytes = **own};
  return cpu::Description().needs(signature, level);
}

// A processor behind an interface like that of a card: its code and most kernels are those of CPUs.
Target Describe() {
  Target target = cpu::Description();
  target.name = "discrete";
  target.alignment = 256;
  target.reads_host_memory = false;
  target.needs = &NeedsOf;
  // Each command passes through the queue of a worker thread, which takes several times as long as on a CPU.
  target.costs = [](std::string_view) { return Costs{.command_seconds = 5e-6}; };
  return target;
}

}  // namespace

const Target& Description() {
  static const Target target = Describe();
  return target;
}

}  // namespace bowline::targets::discrete
