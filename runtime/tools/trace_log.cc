#include "runtime/tools/trace_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_view.h"

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

void AddTrace(const Session& session, ChromeTrace& trace) {
  const fbs::Plan& plan = session.plan();
  trace.NameProcess(session.rank(), absl::StrCat("rank ", session.rank()));
  uint32_t named = 0;
  const std::vector<TracedRun> runs = session.Trace();
  for (size_t index = 0; index < runs.size(); ++index) {
    const TracedRun& run = runs[index];
    const fbs::Entry& entry = *plan.entries()->Get(static_cast<uint32_t>(run.entry));
    const fbs::Program& program = *plan.programs()->Get(entry.program());
    for (; named < SizeOf(program.streams()); ++named) {
      trace.NameThread(session.rank(), named, std::string(TextOf(program.streams()->Get(named))));
    }
    for (const TraceEvent& event : run.events) {
      const fbs::SegmentCall& call = *program.timeline()->Get(event.call);
      const fbs::Segment& segment = *program.segments()->Get(call.segment());
      const fbs::Command& command = *segment.commands()->Get(event.command);
      ChromeTrace::Slice slice;
      slice.name = DescribeCommand(plan, command);
      slice.category = CategoryOf(command.body_type());
      slice.begin_us = static_cast<double>(event.begin) * 1e-3;
      slice.duration_us = static_cast<double>(event.end - event.begin) * 1e-3;
      slice.arguments = {{"run", absl::StrCat(index)},
                         {"entry", std::string(TextOf(entry.name()))},
                         {"segment", std::string(TextOf(segment.name()))},
                         {"slot", absl::StrCat(call.slot())},
                         {"from", DescribeSource(plan, command.source())}};
      trace.Add(session.rank(), command.stream(), slice);
    }
  }
}

}  // namespace bowline
