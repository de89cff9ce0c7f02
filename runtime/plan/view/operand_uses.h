#ifndef BOWLINE_RUNTIME_PLAN_VIEW_OPERAND_USES_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_OPERAND_USES_H_

// The operands of the commands of a verified plan.

#include <cstdint>
#include <vector>

#include "runtime/plan/plan_generated.h"

namespace bowline {

// An operand of a command: the number of bytes that the command accesses there, and how it accesses them.
struct OperandUse {
  const fbs::Operand* operand = nullptr;
  uint64_t bytes = 0;
  fbs::Access access = fbs::Access::Read;
};

// Appends the operands of a collective, send or receive to `uses`, in order, and for each piece of a collective its
// source before its destination. Appends nothing for any other command.
void AppendCommunicationOperands(const fbs::Plan& plan, const fbs::Command& command, std::vector<OperandUse>& uses);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_OPERAND_USES_H_
