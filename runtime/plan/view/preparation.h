#ifndef BOWLINE_RUNTIME_PLAN_VIEW_PREPARATION_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_PREPARATION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// An entry of kind Prepare computes values that depend only on parameters and constants: weights in the order in which
// products read them, tables of angles. It runs after parameters were set and before entries that read its results.

// Appends the operands of a command of any kind to `uses`, in order; a copy's source comes before its destination.
void AppendOperands(const fbs::Plan& plan, const fbs::Command& command, std::vector<OperandUse>& uses);

// Calls `visit` with buffer and access of each operand of a program's commands, once per segment, not per call.
void ForEachOperand(const fbs::Plan& plan, const fbs::Program& program,
                    absl::FunctionRef<void(uint32_t, fbs::Access)> visit);

// By buffer: whether it holds a result of an entry of kind Prepare. Such a buffer is of kind State, but not in
// Plan.states. The plan must have passed VerifyMemory; the rest of VerifyPlan is not needed.
std::vector<bool> FindPreparedBuffers(const fbs::Plan& plan);

// Tells how the entries of a verified plan depend on its entry of kind Prepare.
class Preparation {
 public:
  explicit Preparation(const fbs::Plan& plan);

  // The index of a role's entry of kind Prepare; -1 if there is none.
  int EntryOf(uint32_t role) const { return entries_[role]; }
  // Returns whether an entry reads a result of the entry of kind Prepare, which must have run since parameters were
  // set.
  bool Needs(uint32_t entry) const { return needs_[entry]; }
  // Returns whether an entry writes buffers that the entry of kind Prepare reads, so that Prepare has to rerun.
  bool Invalidates(uint32_t entry) const { return invalidates_[entry]; }

 private:
  std::vector<int> entries_;               // by role
  std::vector<bool> needs_, invalidates_;  // by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_PREPARATION_H_
