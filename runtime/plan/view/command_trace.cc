#include "runtime/plan/view/command_trace.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

const char* CategoryOf(fbs::CommandBody kind) {
  switch (kind) {
    case fbs::CommandBody::Launch:
      return "compute";
    case fbs::CommandBody::Copy:
      return "copy";
    case fbs::CommandBody::Wait:
      return "wait";
    default:
      return "communication";
  }
}

}  // namespace

CommandTrace::CommandTrace(const fbs::Plan& plan, uint32_t rank, ChromeTrace& trace)
    : plan_(plan), rank_(rank), trace_(trace) {
  trace.NameProcess(rank, absl::StrCat("rank ", rank));
}

void CommandTrace::Add(uint64_t run, uint32_t entry_index, uint32_t call_index, uint32_t command_index, double begin_us,
                       double duration_us) {
  const fbs::Entry& entry = *plan_.entries()->Get(entry_index);
  const fbs::Program& program = *plan_.programs()->Get(entry.program());
  for (; named_ < SizeOf(program.streams()); ++named_) {
    trace_.NameThread(rank_, named_, std::string(TextOf(program.streams()->Get(named_))));
  }
  const fbs::SegmentCall& call = *program.timeline()->Get(call_index);
  const fbs::Segment& segment = *program.segments()->Get(call.segment());
  const fbs::Command& command = *segment.commands()->Get(command_index);
  ChromeTrace::Slice slice;
  slice.name = DescribeCommand(plan_, command);
  slice.category = CategoryOf(command.body_type());
  slice.begin_us = begin_us;
  slice.duration_us = duration_us;
  slice.arguments = {{"run", absl::StrCat(run)},
                     {"entry", std::string(TextOf(entry.name()))},
                     {"segment", std::string(TextOf(segment.name()))},
                     {"slot", absl::StrCat(call.slot())},
                     {"from", DescribeSource(plan_, command.source())}};
  trace_.Add(rank_, command.stream(), slice);
}

}  // namespace bowline
