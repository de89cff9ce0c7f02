//===- StashSlots.h - How many microbatches a stash must hold at once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_STASHSLOTS_H
#define BOWLINE_PASSES_ANALYSIS_STASHSLOTS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <set>

namespace bowline {

/// A run of a function for a microbatch.
struct MicrobatchStep {
  int64_t function, microbatch;
};

/// The number of slots that a value needs which the function `writer` computes and `readers` use, if the steps of a
/// rank run one after the other: microbatch m has slot m % slots, from its writer until its last reader.
int64_t slotsInOrder(llvm::ArrayRef<MicrobatchStep> steps, int64_t writer, const std::set<int64_t> &readers);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_STASHSLOTS_H
