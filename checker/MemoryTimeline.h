//===- MemoryTimeline.h - live bytes over the commands of an entry *- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYTIMELINE_H
#define BOWLINE_CHECKER_MEMORYTIMELINE_H

#include "checker/Timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

/// The bytes of memory space Device that hold values still needed, at each command of an entry. Persistent and output
/// buffers count throughout. A temporary counts from the write that begins its value to its last access. A result
/// written in place counts from the next command on, so that it and its operand do not count twice.
struct MemoryTimeline {
  struct Tensor {
    uint32_t buffer = 0;
    uint32_t slot = 0;
    uint64_t bytes = 0;
    uint64_t first = 0, last = 0; ///< first and last command of the value, inclusive, counted with calls expanded
  };

  uint64_t persistentBytes = 0;
  std::vector<uint64_t> liveBytes; ///< index: command, with calls expanded; includes persistentBytes
  uint64_t peakCommand = 0;        ///< index of the first command with the most live bytes
  CommandSite peakSite;
  std::vector<Tensor> atPeak; ///< temporaries that are live at peakCommand, the largest first

  uint64_t peakBytes() const { return liveBytes.empty() ? persistentBytes : liveBytes[peakCommand]; }
};

MemoryTimeline computeMemoryTimeline(const Timeline &timeline, uint32_t entry);

/// Plots live bytes in `width` x `height` characters. A column shows the peak of its equal share of the commands.
std::string plotMemory(const MemoryTimeline &memory, unsigned width, unsigned height);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYTIMELINE_H
