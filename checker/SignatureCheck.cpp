//===- SignatureCheck.cpp - registered kernels get what they are made for -===//

#include "checker/SignatureCheck.h"

#include "checker/KernelSignature.h"
#include "checker/PlanChecker.h"
#include "kernels/signatures/coverage.h"
#include "runtime/plan/code_contract.h"
#include "runtime/plan/plan_view.h"
#include "targets/target.h"

#include "absl/strings/str_cat.h"

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
    absl::Status accepted = (*target)->needs(signature, plan_.target()->cpu()->string_view()).status();
    if (accepted.ok())
      accepted = kernels::CheckCoverage(signature);
    if (!accepted.ok())
      return counterexample("signatures", absl::StrCat("kernel ", i, ": ", accepted.message()));
    ++facts_;
  }
  return absl::OkStatus();
}

} // namespace bowline
