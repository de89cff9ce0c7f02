#ifndef BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
#define BOWLINE_RUNTIME_EXECUTOR_TRACE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/hal/stream.h"

namespace bowline {

// When a command ran, in nanoseconds of the steady clock, which all ranks of a machine share.
struct TraceEvent {
  uint32_t call = 0;     // of the program's timeline
  uint32_t command = 0;  // of that call's segment
  int64_t begin = 0;
  int64_t end = 0;
};

// One run of an entry. A command that a failure kept from running is not there.
struct TracedRun {
  int entry = 0;
  std::vector<TraceEvent> events;  // in the order of issue
};

// What the last runs of each entry did.
class Tracer {
 public:
  // Runs of each entry that are kept: a long training takes no more memory than a short one.
  static constexpr size_t kKeptRuns = 2;

  explicit Tracer(size_t entries) : runs_(entries) {}

  // The times of a run with so many commands: begins and ends, which Stamp writes.
  void Begin(size_t commands) { times_.assign(2 * commands, 0); }
  // Takes the time, when the stream comes to it.
  absl::Status StampBegin(hal::Stream& stream, size_t command) { return Stamp(stream, 2 * command); }
  absl::Status StampEnd(hal::Stream& stream, size_t command) { return Stamp(stream, 2 * command + 1); }
  // `sites`: the command of each stamp, of which those that ran are kept.
  void End(int entry, const std::vector<TraceEvent>& sites);

  // The latest last, entry by entry.
  std::vector<TracedRun> Runs() const;

 private:
  absl::Status Stamp(hal::Stream& stream, size_t index);

  std::vector<int64_t> times_;
  std::vector<std::deque<TracedRun>> runs_;  // by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
