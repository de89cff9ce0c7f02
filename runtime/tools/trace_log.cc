#include "runtime/tools/trace_log.h"

#include <vector>

#include "runtime/plan/view/command_trace.h"

namespace bowline {

void AddTrace(const Session& session, ChromeTrace& trace) {
  CommandTrace commands(session.plan(), session.rank(), trace);
  const std::vector<TracedRun> runs = session.Trace();
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const TraceEvent& event : runs[i].events) {
      commands.Add(i, static_cast<uint32_t>(runs[i].entry), event.call, event.command,
                   static_cast<double>(event.begin) * 1e-3, static_cast<double>(event.end - event.begin) * 1e-3);
    }
  }
}

}  // namespace bowline
