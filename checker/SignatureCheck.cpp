//===- SignatureCheck.cpp - arguments suit registered kernels -------------===//

#include "checker/SignatureCheck.h"

#include "checker/Counterexample.h"
#include "checker/KernelSignature.h"
#include "kernels/registry/kernel_traits.h"
#include "runtime/plan/meaning/code_contract.h"
#include "runtime/plan/view/plan_view.h"
#include "targets/target.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace bowline {

absl::Status SignatureCheck::checkContracts() {
  for (uint32_t i = 0; i < plan_.kernels()->size(); ++i) {
    const fbs::Kernel &kernel = *plan_.kernels()->Get(i);
    if (!CallsGeneratedCode(kernel))
      continue;
    // VerifyPlan compared the contracts that there are.
    for (const fbs::Code *code : *plan_.images()->Get(kernel.image())->codes())
      if (code->data()->size() > 0 && SizeOf(code->contracts()) == 0)
        return counterexample("contracts", absl::StrCat("the code that kernel ", i, " ", Quoted(kernel.name()),
                                                        " calls says of no kernel that it was made for it; compile "
                                                        "the model again, which writes contracts with the code"));
    ++contracts_;
  }
  return absl::OkStatus();
}

/// A kernel may use the same bytes for two arguments only where the target says so. For generated code
/// (Kernel.epilogue), the contract of that code says so instead.
static absl::Status checkInPlace(const fbs::Kernel &kernel, const targets::KernelNeeds &needs) {
  if (CallsGeneratedCode(kernel))
    return absl::OkStatus();
  for (uint32_t i = 0; i < SizeOf(kernel.in_place()); ++i) {
    const fbs::InPlace &pair = *kernel.in_place()->Get(i);
    const std::pair<int, int> claimed = {static_cast<int>(pair.output()), static_cast<int>(pair.input())};
    if (std::find(needs.in_place.begin(), needs.in_place.end(), claimed) == needs.in_place.end())
      return absl::InvalidArgumentError(absl::StrCat(Quoted(kernel.name()), " claims that argument ", pair.output(),
                                                     " may be the bytes of argument ", pair.input(),
                                                     ", which the kernel does not allow: take the pair out"));
  }
  return absl::OkStatus();
}

/// The alignment that arguments state is that which launches are held to (VerifyPlan).
static absl::Status checkAlignment(const fbs::Kernel &kernel, const targets::Target &target) {
  for (uint32_t i = 0; i < SizeOf(kernel.arguments()); ++i) {
    const fbs::Argument &argument = *kernel.arguments()->Get(i);
    const auto access = static_cast<kernels::Access>(argument.access());
    const auto needed = static_cast<uint64_t>(target.argument_alignment(kernel.name()->string_view(), access));
    const uint64_t least = std::max<uint64_t>(needed, ElementSize(argument.dtype()));
    if (AlignmentOf(argument) % least != 0)
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(kernel.name()), " takes argument ", i, " at any multiple of ", AlignmentOf(argument),
                       " bytes, but on target '", std::string(target.name), "' it needs a multiple of ", least));
  }
  return absl::OkStatus();
}

absl::Status SignatureCheck::check() {
  BOWLINE_RETURN_IF_ERROR(checkContracts());
  const auto target = targets::FindTarget(plan_.target()->device()->string_view());
  if (!target.ok())
    return absl::OkStatus();
  const std::vector<bool> hasScratch = findKernelsWithScratch(plan_);
  for (uint32_t i = 0; i < plan_.kernels()->size(); ++i) {
    const fbs::Kernel &kernel = *plan_.kernels()->Get(i);
    if (kernel.origin() != fbs::KernelOrigin::Registered)
      continue;
    const kernels::Signature signature = signatureOf(plan_, kernel, hasScratch[i]);
    const auto needs = (*target)->needs(signature, plan_.target()->cpu()->string_view());
    absl::Status accepted = needs.status();
    if (accepted.ok())
      accepted = checkInPlace(kernel, *needs);
    if (accepted.ok())
      accepted = checkAlignment(kernel, **target);
    if (accepted.ok())
      accepted = kernels::CheckCoverage(signature);
    if (!accepted.ok())
      return counterexample("signatures", absl::StrCat("kernel ", i, ": ", accepted.message()));
    ++facts_;
  }
  return absl::OkStatus();
}

} // namespace bowline
