//===- MemoryOverTime.h - live bytes over the time of a run *- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYOVERTIME_H
#define BOWLINE_CHECKER_MEMORYOVERTIME_H

#include "checker/MemoryTimeline.h"
#include "checker/PredictedTimeline.h"

#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// The live bytes of one role over the time of one run of an entry.
struct MemoryOverTime {
  MemoryTimeline memory;
  /// The second at which each command of memory.liveBytes is issued: the end of all commands before it on the first
  /// stream. Times never decrease.
  std::vector<double> issued;
  uint64_t arenaBytes = 0;
};

/// `predicted` is the element of predictTimeline's result for the role of `entry`.
MemoryOverTime computeMemoryOverTime(const Timeline &timeline, uint32_t entry,
                                     absl::Span<const PredictedCommand> predicted);

/// Divides the time from 0 to `seconds` into `columns` equal parts and returns the most live bytes in each; empty where
/// there is no command. The live bytes of a command hold until the next command is issued.
std::vector<uint64_t> mostBytesByColumn(const MemoryOverTime &memory, double seconds, size_t columns);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYOVERTIME_H
