#include "runtime/executor/trace.h"

#include <utility>

namespace bowline {

absl::Status Tracer::Begin(size_t commands) {
  while (points_.size() < 2 * commands) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Event> point, device_->CreateEvent(hal::EventMode::kTimed));
    points_.push_back(std::move(point));
  }
  return absl::OkStatus();
}

absl::Status Tracer::End(int entry, const std::vector<TraceEvent>& sites) {
  TracedRun run;
  run.entry = entry;
  for (size_t i = 0; i < sites.size(); ++i) {
    TraceEvent event = sites[i];
    BOWLINE_ASSIGN_OR_RETURN(event.begin, points_[2 * i]->Time());
    BOWLINE_ASSIGN_OR_RETURN(event.end, points_[2 * i + 1]->Time());
    run.events.push_back(event);
  }
  std::deque<TracedRun>& kept = runs_[static_cast<size_t>(entry)];
  kept.push_back(std::move(run));
  if (kept.size() > kKeptRuns) kept.pop_front();
  return absl::OkStatus();
}

std::vector<TracedRun> Tracer::Runs() const {
  std::vector<TracedRun> result;
  for (const std::deque<TracedRun>& runs : runs_) result.insert(result.end(), runs.begin(), runs.end());
  return result;
}

}  // namespace bowline
