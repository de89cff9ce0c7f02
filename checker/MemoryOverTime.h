//===- MemoryOverTime.h - live bytes over the time of a run *- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYOVERTIME_H
#define BOWLINE_CHECKER_MEMORYOVERTIME_H

#include "checker/MemoryTimeline.h"
#include "checker/PredictedTimeline.h"

#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// The memory of one role over the time of an entry.
struct MemoryOverTime {
  MemoryTimeline memory;
  /// The time in seconds at which each command of memory.liveBytes is issued, which never decreases: when all commands
  /// in front of it on the first stream are over.
  std::vector<double> issued;
  uint64_t arenaBytes = 0;
};

/// `predicted` is that of the entry's role, of predictTimeline.
MemoryOverTime computeMemoryOverTime(const Timeline &timeline, uint32_t entry,
                                     absl::Span<const PredictedCommand> predicted);

/// The most live bytes in each of `columns` equal parts of the time from 0 to `seconds`; empty where there is no
/// command. A command's bytes live until the next command is issued.
std::vector<uint64_t> mostBytesByColumn(const MemoryOverTime &memory, double seconds, size_t columns);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYOVERTIME_H
