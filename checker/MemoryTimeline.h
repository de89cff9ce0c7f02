//===- MemoryTimeline.h - live bytes over the commands of an entry *- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYTIMELINE_H
#define BOWLINE_CHECKER_MEMORYTIMELINE_H

#include "checker/Timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

/// The number of bytes of space Device that hold values which are still needed, at each command of an entry. Persistent
/// and output buffers count throughout; a temporary counts from the write that begins a value to its last access. A
/// result that takes the bytes of an operand counts once with it.
struct MemoryTimeline {
  struct Tensor {
    uint32_t buffer = 0;
    uint32_t slot = 0;
    uint64_t bytes = 0;
    uint64_t first = 0, last = 0; ///< numbers of commands, timeline expanded; inclusive
  };

  uint64_t persistentBytes = 0;
  std::vector<uint64_t> liveBytes; ///< index: command; persistentBytes included
  uint64_t peakCommand = 0;        ///< the first command with the most live bytes
  CommandSite peakSite;
  std::vector<Tensor> atPeak; ///< temporaries that are alive at peakCommand, the largest first

  uint64_t peakBytes() const { return liveBytes.empty() ? persistentBytes : liveBytes[peakCommand]; }
};

MemoryTimeline computeMemoryTimeline(const Timeline &timeline, uint32_t entry);

/// A plot of `width` x `height` characters: each column is the peak of its share of the commands.
std::string plotMemory(const MemoryTimeline &memory, unsigned width, unsigned height);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYTIMELINE_H
