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

/// Proves that devices of the plan's target can execute the signature of each registered kernel. Such a kernel writes
/// every element of its results and accesses nothing outside its arguments. It allows the in-place pairs that the plan
/// states, and the addresses of its arguments. The facts come from the target's description (targets/target.h) and
/// need no implementation of the kernel. A target that this build lacks is not checked; only a plugin executes its
/// plans.
///
/// Also proves that generated code was made for each kernel that calls it: the code must have contracts
/// (runtime/plan/meaning/code_contract.h), which VerifyPlan has compared.
class SignatureCheck {
public:
  explicit SignatureCheck(const fbs::Plan &plan) : plan_(plan) {}

  absl::Status check();

  /// The number of registered kernels checked.
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
