//===- Dependences.cpp - the arguments that results of kernels depend on --===//

#include "checker/Dependences.h"

#include "kernels/registry/product_epilogue.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

/// The epilogue that a library computes with a product; null where it computes none.
static const kernels::ProductEpilogue *libraryEpilogueOf(const fbs::Kernel &kernel) {
  if (kernel.origin() != fbs::KernelOrigin::Registered || TextOf(kernel.name()) != "matmul")
    return nullptr;
  for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i) {
    const fbs::Attribute &attribute = *kernel.attributes()->Get(i);
    const absl::string_view text = TextOf(attribute.text());
    if (TextOf(attribute.name()) == absl::string_view(kernels::kEpilogue.data(), kernels::kEpilogue.size()))
      return kernels::FindProductEpilogue({text.data(), text.size()});
  }
  return nullptr;
}

Dependences dependencesOf(const fbs::Kernel &kernel) {
  Dependences dependences;
  for (uint32_t i = 0; i < SizeOf(kernel.dependences()); ++i) {
    const fbs::Dependence &dependence = *kernel.dependences()->Get(i);
    std::vector<uint32_t> &inputs = dependences[dependence.output()];
    for (uint32_t k = 0; k < SizeOf(dependence.inputs()); ++k)
      inputs.push_back(dependence.inputs()->Get(k));
  }
  // Its arguments are A, B, C and the sums.
  if (const kernels::ProductEpilogue *epilogue = libraryEpilogueOf(kernel); epilogue && epilogue->sums != 0)
    dependences[3] = {epilogue->sums == 'a' ? 0U : 1U};
  return dependences;
}

} // namespace bowline
