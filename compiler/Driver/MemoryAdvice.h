//===- MemoryAdvice.h - Choices of a strategy that do not pay
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYADVICE_H
#define BOWLINE_COMPILER_DRIVER_MEMORYADVICE_H

#include "compiler/Driver/MemoryFormula.h"

#include <string>
#include <vector>

namespace bowline {

/// Seconds of a weight's prefetching gather, and of the product that hides it, for a matrix of an MLP.
struct PrefetchSeconds {
  double gather = 0, product = 0;
};

/// Returns a sentence for each choice that saves less than 2 % of the memory of the largest rank, for each one that
/// needs more memory than the default, and one if \p arenaBytes differs from the formulas by more than 10 %. Uses only
/// the formulas and compiles nothing.
std::vector<std::string> adviseOnMemory(const MemoryInputs &inputs, uint64_t arenaBytes,
                                        const PrefetchSeconds &prefetch);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYADVICE_H
