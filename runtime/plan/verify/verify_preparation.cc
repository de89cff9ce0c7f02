#include <vector>

#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/preparation.h"

namespace bowline::verifier {
namespace {

// An entry of kind Prepare may run again at any time, on one rank and not on another.
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
    const absl::Status status = entry.kind() == fbs::EntryKind::Prepare ? VerifyPrepare(plan, entry, prepared)
                                                                        : VerifyOther(plan, entry, prepared);
    if (!status.ok()) return Annotate(status, absl::StrCat("entry ", i, " ", Quoted(entry.name())));
  }
  return absl::OkStatus();
}

}  // namespace bowline::verifier
