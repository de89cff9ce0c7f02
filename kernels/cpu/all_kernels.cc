#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/definitions.h"
#include "kernels/registry/cpu_level.h"
#include "kernels/registry/registry.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

absl::Span<const KernelDefinition> AllKernels() {
  static const std::vector<KernelDefinition> kernels = [] {
    std::vector<KernelDefinition> all = {
#define BOWLINE_KERNEL(Name, name) Name##Definition(),
#include "kernels/registry/kernels.inc"
#undef BOWLINE_KERNEL
    };
    std::sort(all.begin(), all.end(),
              [](const KernelDefinition& a, const KernelDefinition& b) { return a.name < b.name; });
    return all;
  }();
  return kernels;
}

absl::StatusOr<const KernelDefinition*> FindKernel(std::string_view name) {
  for (const KernelDefinition& kernel : AllKernels()) {
    if (kernel.name == name) return &kernel;
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no kernel '", Text(name), "'; this build has ",
      absl::StrJoin(AllKernels(), ", ", [](std::string* out, const KernelDefinition& k) { out->append(k.name); })));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const Signature& signature) {
  if (!CpuLimit().ok()) return CpuLimit().status();
  absl::StatusOr<const KernelDefinition*> kernel = FindKernel(signature.kernel);
  if (!kernel.ok()) return kernel.status();
  return (*kernel)->create(signature);
}

}  // namespace bowline::kernels
