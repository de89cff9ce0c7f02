#include "runtime/plan/preparation.h"

#include "runtime/plan/mesh_view.h"
#include "runtime/plan/verifier_parts.h"

namespace bowline {
namespace {

// Calls `visit` with the buffer and the access of each operand of a program's commands, segments counted once.
template <typename Visit>
void ForEachOperand(const fbs::Plan& plan, const fbs::Program& program, const Visit& visit) {
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
  std::vector<bool> basis(prepared.size(), false);  // what Prepare reads and others may write
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

namespace verifier {
namespace {

// Whoever runs the plan may repeat it at any time, on one rank and not on another.
absl::Status VerifyPrepare(const fbs::Plan& plan, const fbs::Entry& entry, const std::vector<bool>& prepared) {
  if (SizeOf(entry.inputs()) + SizeOf(entry.outputs()) > 0) {
    return Broken("it has inputs or outputs; it may only use parameters and constants");
  }
  const fbs::Program& program = *plan.programs()->Get(entry.program());
  for (uint32_t s = 0; s < SizeOf(program.segments()); ++s) {
    const fbs::Segment& segment = *program.segments()->Get(s);
    for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
      if (!CommunicatorOf(*segment.commands()->Get(c)).has_value()) continue;
      return Broken("command ", c, " of segment ", Quoted(segment.name()), ", ",
                    DescribeCommand(plan, *segment.commands()->Get(c)),
                    ": it may not communicate, as ranks run it at "
                    "different times");
    }
  }
  absl::Status status;
  ForEachOperand(plan, program, [&](uint32_t index, fbs::Access access) {
    const fbs::Buffer& buffer = *plan.buffers()->Get(index);
    // Words of faults are read when it is over.
    const bool allowed = prepared[index] || buffer.kind() == fbs::BufferKind::Temporary ||
                         buffer.kind() == fbs::BufferKind::Scratch || buffer.kind() == fbs::BufferKind::Fault;
    if (Writes(access) && !allowed) {
      status = Broken("writes buffer ", Quoted(buffer.name()), " of kind ", fbs::EnumNameBufferKind(buffer.kind()),
                      ", which its repetition would change");
    }
  });
  return status;
}

absl::Status VerifyOther(const fbs::Plan& plan, const fbs::Entry& entry, const std::vector<bool>& prepared) {
  absl::Status status;
  ForEachOperand(plan, *plan.programs()->Get(entry.program()), [&](uint32_t index, fbs::Access access) {
    if (!Writes(access) || !prepared[index]) return;
    status =
        Broken("writes buffer ", Quoted(plan.buffers()->Get(index)->name()),
               ", which is of kind State and not in Plan.states; only an entry of kind Prepare may write such buffers");
  });
  return status;
}

}  // namespace

absl::Status VerifyPreparation(const fbs::Plan& plan) {
  const std::vector<bool> prepared = FindPreparedBuffers(plan);
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const fbs::Entry& entry = *plan.entries()->Get(i);
    const absl::Status status =
        IsPrepare(entry) ? VerifyPrepare(plan, entry, prepared) : VerifyOther(plan, entry, prepared);
    if (!status.ok()) return Annotate(status, absl::StrCat("entry ", i, " ", Quoted(entry.name())));
  }
  return absl::OkStatus();
}

}  // namespace verifier
}  // namespace bowline
