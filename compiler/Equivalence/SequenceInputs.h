//===- SequenceInputs.h - Inputs that keep the promise about sequences
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_SEQUENCEINPUTS_H
#define BOWLINE_COMPILER_EQUIVALENCE_SEQUENCEINPUTS_H

#include "dialects/Plan/PlanOps.h"
#include "kernels/registry/philox.h"
#include "runtime/plan/sequences.h"

#include <optional>
#include <vector>

namespace bowline {

/// One of the three inputs of a common promise by callers about sequences (runtime/plan/sequences.h).
struct SequenceInput {
  enum class Which { Rows, Lengths, Blocks } which;
  SequenceSizes sizes;
};

/// Returns the part that input `name` has in the promise of `owner`, a function or an entry. `typeOf` returns the types
/// of its inputs by name, null for others. Returns nothing if `name` is none of the three, or their shapes do not fit.
std::optional<SequenceInput> sequenceInputOf(mlir::Operation *owner, llvm::StringRef name,
                                             llvm::function_ref<mlir::RankedTensorType(llvm::StringRef)> typeOf);

struct DrawnSequences {
  std::vector<int32_t> rows, lengths, blocks;
};

/// Draws inputs that keep the promise. Some sequences have no rows, some have all remaining rows of the step, and some
/// read full blocks of others.
DrawnSequences drawSequences(const SequenceSizes &sizes, PhiloxKey key);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_SEQUENCEINPUTS_H
