#ifndef BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
#define BOWLINE_RUNTIME_EXECUTOR_TRACE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/hal/device.h"

namespace bowline {

// The times of one command, in nanoseconds of the steady clock, which all ranks of a machine share.
struct TraceEvent {
  uint32_t call = 0;     // index in the program's timeline
  uint32_t command = 0;  // index in that call's segment
  int64_t begin = 0;
  int64_t end = 0;
};

// One run of an entry.
struct TracedRun {
  int entry = 0;
  std::vector<TraceEvent> events;  // in the order of issue
};

// Takes the times of all commands in the last runs of each entry, by events of the device.
class Tracer {
 public:
  // The number of runs of each entry that are kept, so that a long training takes no more memory than a short one.
  static constexpr size_t kKeptRuns = 2;

  // `device` outlives it.
  Tracer(hal::Device* device, size_t entries) : device_(device), runs_(entries) {}

  // Begins the trace of a run with this many commands.
  absl::Status Begin(size_t commands);
  // Record the points before and after a command in its stream.
  absl::Status StampBegin(hal::Stream& stream, size_t command) { return stream.Record(*points_[2 * command]); }
  absl::Status StampEnd(hal::Stream& stream, size_t command) { return stream.Record(*points_[2 * command + 1]); }
  // Reads the times; called when the run is over, without an error. `sites` has the command of each pair of points.
  absl::Status End(int entry, const std::vector<TraceEvent>& sites);

  // The kept runs, entry by entry, the latest last.
  std::vector<TracedRun> Runs() const;

 private:
  hal::Device* device_;
  std::vector<std::unique_ptr<hal::Event>> points_;
  std::vector<std::deque<TracedRun>> runs_;  // by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
