#ifndef BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
#define BOWLINE_RUNTIME_EXECUTOR_TRACE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/hal/device.h"

namespace bowline {

// The begin and end of one command, in nanoseconds of the steady clock, which all ranks on a machine share.
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

// Records, by timed events of the device, when the commands in the last runs of each entry began and ended.
class Tracer {
 public:
  // The number of latest runs kept for each entry. A bound, so that memory does not grow with the length of a training.
  static constexpr size_t kKeptRuns = 2;

  // `device` outlives it.
  Tracer(hal::Device* device, size_t entries) : device_(device), runs_(entries) {}

  // Begins the trace of a run with this many commands; allocates the events that it needs.
  absl::Status Begin(size_t commands);
  // Record a timed event in the stream before, or after, command number `command` of the run.
  absl::Status StampBegin(hal::Stream& stream, size_t command) { return stream.Record(*points_[2 * command]); }
  absl::Status StampEnd(hal::Stream& stream, size_t command) { return stream.Record(*points_[2 * command + 1]); }
  // Reads the times of a run that ended without an error. sites[i] is the i-th command that was stamped.
  absl::Status End(int entry, const std::vector<TraceEvent>& sites);

  // The kept runs, grouped by entry, the latest run last.
  std::vector<TracedRun> Runs() const;

 private:
  hal::Device* device_;
  std::vector<std::unique_ptr<hal::Event>> points_;
  std::vector<std::deque<TracedRun>> runs_;  // by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_TRACE_H_
