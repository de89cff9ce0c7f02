//===- StrategyFlags.h - From the flags of a command to a strategy
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STRATEGY_STRATEGYFLAGS_H
#define BOWLINE_PASSES_STRATEGY_STRATEGYFLAGS_H

#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bowline {

/// A strategy as the flags of a command. An empty or unset flag makes no choice.
struct StrategyFlags {
  std::string mesh; ///< "pp=2,dp=2,tp=2", the first axis outermost
  bool sequenceParallel = false;
  std::optional<int64_t> zero; ///< level, 0 to 3
  std::string zeroAxis;
  std::optional<int64_t> prefetch; ///< gathers of parameters that may be under way ahead of use with level 3
  bool zeroOnce = false;           ///< gathers and reduces once for all microbatches of a pass with level 3
  bool zeroEach = false;           ///< gathers and reduces for each microbatch with level 3
  std::string schedule;            ///< kScheduleSyntax
  std::optional<int64_t> microbatches;
  std::string stages;                   ///< "balanced", or "[0..5],[6..10],[11]"
  std::string recompute;                ///< none, selective, full or auto
  std::optional<int64_t> bucketBytes;   ///< most that one exchange has; 0: each tensor alone
  std::optional<int64_t> overlapChunks; ///< chunks of products beside collectives; 0: the cost model chooses
};

/// Writes the flags into the module's `dist.strategy`, or into a new one if it has none: one line for each flag that
/// differs from its default. The line's location is the text of the flag, so that later diagnostics name the flag.
/// Fails with a diagnostic if a flag is malformed, contradicts an existing line or lacks another flag that it needs, or
/// if the strategy does not verify.
llvm::LogicalResult addStrategyFlags(mlir::ModuleOp module, const StrategyFlags &flags);

} // namespace bowline

#endif // BOWLINE_PASSES_STRATEGY_STRATEGYFLAGS_H
