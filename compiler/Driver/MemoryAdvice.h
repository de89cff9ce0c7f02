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

/// How long a gather ahead of its use and the product that it runs beside take: those of a matrix of an MLP.
struct PrefetchSeconds {
  double gather = 0, product = 0;
};

/// A sentence for each choice that saves less than a fiftieth of the memory of the rank that needs the most, for those
/// that need more than the default does, and one if the plan's arena of \p arenaBytes is not within a tenth of the
/// formulas. All of it follows from formulas, and nothing is compiled for it.
std::vector<std::string> adviseOnMemory(const MemoryInputs &inputs, uint64_t arenaBytes,
                                        const PrefetchSeconds &prefetch);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYADVICE_H
