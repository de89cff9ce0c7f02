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

/// One run of a function for one microbatch.
struct MicrobatchStep {
  int64_t function, microbatch;
};

/// The number of slots for a value that function `writer` computes and functions `readers` use, when a rank runs
/// `steps` in order. Microbatch m occupies slot m % slots from its writer until its last reader.
int64_t slotsInOrder(llvm::ArrayRef<MicrobatchStep> steps, int64_t writer, const std::set<int64_t> &readers);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_STASHSLOTS_H
