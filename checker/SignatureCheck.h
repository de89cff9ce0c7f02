//===- SignatureCheck.h - arguments suit registered kernels ----------------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_SIGNATURECHECK_H
#define BOWLINE_CHECKER_SIGNATURECHECK_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

/// Proves that each registered kernel has a signature that devices of the plan's target execute: one that writes every
/// element of its stated results, and touches nothing outside of its arguments; that takes equal bytes for two of
/// them where the plan says so, and has each at addresses that it can use. The target's description says it
/// (targets/target.h); no implementation of the kernel is needed. Nothing is proven of a target that is not in this
/// build; only a plugin executes its plans.
///
/// Proves as well that each kernel that calls generated code is one that the code was made for: that the code has
/// contracts (runtime/plan/meaning/code_contract.h), which VerifyPlan compared.
class SignatureCheck {
public:
  explicit SignatureCheck(const fbs::Plan &plan) : plan_(plan) {}

  absl::Status check();

  /// The number of registered kernels that were looked at.
  uint64_t facts() const { return facts_; }
  /// The number of kernels that call generated code.
  uint64_t contracts() const { return contracts_; }

private:
  absl::Status checkContracts();

  const fbs::Plan &plan_;
  uint64_t facts_ = 0, contracts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_SIGNATURECHECK_H
