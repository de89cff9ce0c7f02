//===- MemoryContents.h - contents of the bytes at a peak -------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_MEMORYCONTENTS_H
#define BOWLINE_CHECKER_MEMORYCONTENTS_H

#include "checker/MemoryTimeline.h"
#include "checker/Timeline.h"

#include <cstdint>

namespace bowline {

/// The bytes that are alive at the peak of an entry of training, by their contents. The kind of a value follows
/// from the buffers that its command reads, and from its source.
struct MemoryContents {
  uint64_t weightsAndMoments = 0;      ///< persistent parameters and states
  uint64_t gradients = 0;              ///< of parameters, whole, shards and buckets
  uint64_t activations = 0;            ///< values of the forward pass
  uint64_t recomputed = 0;             ///< such values that the backward pass has computed again
  uint64_t copies = 0;                 ///< parameters that were rounded, transposed or gathered
  uint64_t loss = 0;                   ///< logits, their gradients, and values that the loss keeps of them
  uint64_t gradientsOfActivations = 0; ///< values of the backward pass that are no gradients of parameters
  uint64_t others = 0;                 ///< inputs, outputs, constants, scratch, and values from these alone

  uint64_t sum() const {
    return weightsAndMoments + gradients + activations + recomputed + copies + loss + gradientsOfActivations + others;
  }
};

/// The sum is `memory.peakBytes()`; `memory` is that of the entry.
MemoryContents computeContentsAtPeak(const Timeline &timeline, uint32_t entry, const MemoryTimeline &memory);

} // namespace bowline

#endif // BOWLINE_CHECKER_MEMORYCONTENTS_H
