#ifndef BOWLINE_RUNTIME_PLAN_VIEW_COMMAND_TRACE_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_COMMAND_TRACE_H_

#include <cstdint>

#include "runtime/base/chrome_trace.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Adds the commands of one rank to a trace. The rank becomes a process, and each of its streams a thread.
class CommandTrace {
 public:
  // The plan and the trace must outlive this.
  CommandTrace(const fbs::Plan& plan, uint32_t rank, ChromeTrace& trace);

  // Adds a command that ran: the command with index `command` in the segment of call `call` in the timeline of `entry`.
  // `run` is the index of the run among those that the trace shows.
  void Add(uint64_t run, uint32_t entry, uint32_t call, uint32_t command, double begin_us, double duration_us);

 private:
  const fbs::Plan& plan_;
  const uint32_t rank_;
  ChromeTrace& trace_;
  uint32_t named_ = 0;  // number of streams that have a name in the trace
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_COMMAND_TRACE_H_
