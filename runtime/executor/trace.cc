#include "runtime/executor/trace.h"

#include <chrono>
#include <utility>

namespace bowline {

absl::Status Tracer::Stamp(hal::Stream& stream, size_t index) {
  hal::HostCall call;
  call.context = &times_[index];
  call.run = [](const hal::HostCall& self) {
    *static_cast<int64_t*>(self.context) =
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    return absl::OkStatus();
  };
  return stream.Call(call);
}

void Tracer::End(int entry, const std::vector<TraceEvent>& sites) {
  TracedRun run;
  run.entry = entry;
  for (size_t i = 0; i < sites.size(); ++i) {
    TraceEvent event = sites[i];
    event.begin = times_[2 * i];
    event.end = times_[2 * i + 1];
    if (event.begin > 0 && event.end > 0) run.events.push_back(event);
  }
  std::deque<TracedRun>& kept = runs_[static_cast<size_t>(entry)];
  kept.push_back(std::move(run));
  if (kept.size() > kKeptRuns) kept.pop_front();
}

std::vector<TracedRun> Tracer::Runs() const {
  std::vector<TracedRun> result;
  for (const std::deque<TracedRun>& runs : runs_) result.insert(result.end(), runs.begin(), runs.end());
  return result;
}

}  // namespace bowline
