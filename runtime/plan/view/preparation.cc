#include "runtime/plan/view/preparation.h"

#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/operand_uses.h"

namespace bowline {
namespace {

bool IsPrepare(const fbs::Entry& entry) { return entry.kind() == fbs::EntryKind::Prepare; }

}  // namespace

void AppendOperands(const fbs::Plan& plan, const fbs::Command& command, std::vector<OperandUse>& uses) {
  if (const fbs::Launch* launch = command.body_as_Launch()) {
    const auto& arguments = *plan.kernels()->Get(launch->kernel())->arguments();
    for (uint32_t i = 0; i < SizeOf(launch->operands()); ++i) {
      const fbs::Argument& argument = *arguments.Get(i);
      uses.push_back({launch->operands()->Get(i), *DenseBytes(argument.dtype(), argument.shape()), argument.access()});
    }
  } else if (const fbs::Copy* copy = command.body_as_Copy()) {
    uses.push_back({copy->source(), copy->bytes(), fbs::Access::Read});
    uses.push_back({copy->destination(), copy->bytes(), fbs::Access::Write});
  } else {
    AppendCommunicationOperands(plan, command, uses);
  }
}

void ForEachOperand(const fbs::Plan& plan, const fbs::Program& program,
                    absl::FunctionRef<void(uint32_t, fbs::Access)> visit) {
  std::vector<OperandUse> uses;
  for (uint32_t s = 0; s < SizeOf(program.segments()); ++s) {
    const fbs::Segment& segment = *program.segments()->Get(s);
    for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
      uses.clear();
      AppendOperands(plan, *segment.commands()->Get(c), uses);
      for (const OperandUse& use : uses) visit(use.operand->buffer(), use.access);
    }
  }
}

std::vector<bool> FindPreparedBuffers(const fbs::Plan& plan) {
  std::vector<bool> prepared(plan.buffers()->size(), false);
  for (uint32_t i = 0; i < prepared.size(); ++i) {
    prepared[i] = plan.buffers()->Get(i)->kind() == fbs::BufferKind::State;
  }
  for (const fbs::State* state : *plan.states()) prepared[state->buffer()] = false;
  return prepared;
}

Preparation::Preparation(const fbs::Plan& plan)
    : entries_(RoleCount(plan), -1),
      needs_(plan.entries()->size(), false),
      invalidates_(plan.entries()->size(), false) {
  const std::vector<bool> prepared = FindPreparedBuffers(plan);
  std::vector<bool> basis(prepared.size(), false);  // read by Prepare, perhaps written by other entries
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const fbs::Entry& entry = *plan.entries()->Get(i);
    if (!IsPrepare(entry)) continue;
    const fbs::Program& program = *plan.programs()->Get(entry.program());
    entries_[program.role()] = static_cast<int>(i);
    ForEachOperand(plan, program, [&](uint32_t buffer, fbs::Access access) {
      if (Reads(access) && IsState(plan.buffers()->Get(buffer)->kind())) basis[buffer] = !prepared[buffer];
    });
  }
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const fbs::Entry& entry = *plan.entries()->Get(i);
    if (IsPrepare(entry)) continue;
    ForEachOperand(plan, *plan.programs()->Get(entry.program()), [&](uint32_t buffer, fbs::Access access) {
      if (Reads(access) && prepared[buffer]) needs_[i] = true;
      if (Writes(access) && basis[buffer]) invalidates_[i] = true;
    });
    for (uint32_t o = 0; o < SizeOf(entry.outputs()); ++o) {
      if (prepared[entry.outputs()->Get(o)->buffer()]) needs_[i] = true;
    }
  }
}

}  // namespace bowline
