//===- MemoryContents.h - contents of the bytes at a peak -------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYCONTENTS_H
#define BOWLINE_CHECKER_MEMORYCONTENTS_H

#include "checker/MemoryTimeline.h"
#include "checker/Timeline.h"

#include <cstdint>

namespace bowline {

/// The bytes that are live at the peak of a training entry, divided by content. The content of a value follows from the
/// buffers that the command which writes it reads, and from its source.
struct MemoryContents {
  uint64_t weightsAndMoments = 0;      ///< persistent parameters and states
  uint64_t gradients = 0;              ///< gradients of parameters: whole ones, shards and buckets
  uint64_t activations = 0;            ///< values of the forward pass
  uint64_t recomputed = 0;             ///< activations that the backward pass has computed again
  uint64_t copies = 0;                 ///< rounded, transposed or gathered copies of parameters
  uint64_t loss = 0;                   ///< logits, their gradients, and values that the loss derives from them
  uint64_t gradientsOfActivations = 0; ///< values of the backward pass other than gradients of parameters
  uint64_t others = 0;                 ///< inputs, outputs, constants, workspace, and values computed from these alone

  uint64_t sum() const {
    return weightsAndMoments + gradients + activations + recomputed + copies + loss + gradientsOfActivations + others;
  }
};

/// `memory` must be the result of computeMemoryTimeline for this entry. The sum of the result is `memory.peakBytes()`.
MemoryContents computeContentsAtPeak(const Timeline &timeline, uint32_t entry, const MemoryTimeline &memory);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYCONTENTS_H
