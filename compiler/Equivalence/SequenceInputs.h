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

/// One of three inputs about which callers make a common promise (runtime/plan/sequences.h).
struct SequenceInput {
  enum class Which { Rows, Lengths, Blocks } which;
  SequenceSizes sizes;
};

/// The part of `name` in the promise of `owner`, a function or an entry with inputs that `typeOf` knows by name, null
/// for others; none where it is not one of the three, or where these lack the shapes that they must have.
std::optional<SequenceInput> sequenceInputOf(mlir::Operation *owner, llvm::StringRef name,
                                             llvm::function_ref<mlir::RankedTensorType(llvm::StringRef)> typeOf);

struct DrawnSequences {
  std::vector<int32_t> rows, lengths, blocks;
};

/// Draws inputs that keep the promise: some sequences have no rows, some have the rest of the step's, and some read
/// full blocks of others.
DrawnSequences drawSequences(const SequenceSizes &sizes, PhiloxKey key);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_SEQUENCEINPUTS_H
