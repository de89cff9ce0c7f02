//===- MemoryOverTime.cpp - live bytes over the time of a run -------------===//

#include "checker/MemoryOverTime.h"

#include "runtime/plan/view/mesh_view.h"

#include <algorithm>

namespace bowline {

MemoryOverTime computeMemoryOverTime(const Timeline &timeline, uint32_t entry,
                                     absl::Span<const PredictedCommand> predicted) {
  MemoryOverTime result;
  result.memory = computeMemoryTimeline(timeline, entry);
  result.arenaBytes = ArenaBytes(timeline.plan(), timeline.programOf(entry).role());
  double now = 0;
  size_t next = 0; // into predicted, which leaves signals out
  timeline.forEachCommand(entry, [&](CommandSite, const fbs::Command &command, absl::Span<const OperandAccess>) {
    result.issued.push_back(now);
    if (command.body_as_Signal())
      return true;
    if (command.stream() == 0)
      now = std::max(now, predicted[next].end);
    ++next;
    return true;
  });
  return result;
}

std::vector<uint64_t> mostBytesByColumn(const MemoryOverTime &memory, double seconds, size_t columns) {
  const std::vector<uint64_t> &live = memory.memory.liveBytes;
  if (live.empty() || columns == 0)
    return {};
  const auto columnAt = [&](double time) {
    const double column = seconds > 0 ? time / seconds * static_cast<double>(columns) : 0;
    return std::min(columns - 1, static_cast<size_t>(std::max(0.0, column)));
  };
  std::vector<uint64_t> most(columns, 0);
  for (size_t i = 0; i < live.size(); ++i) {
    const size_t first = columnAt(memory.issued[i]);
    const size_t last = i + 1 < live.size() ? columnAt(memory.issued[i + 1]) : columns - 1;
    for (size_t column = first; column <= last; ++column)
      most[column] = std::max(most[column], live[i]);
  }
  return most;
}

} // namespace bowline
