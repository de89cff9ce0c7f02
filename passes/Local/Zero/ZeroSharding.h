//===- ZeroSharding.h - Ranks divide states, gradients and parameters instead of keeping copies
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_ZEROSHARDING_H
#define BOWLINE_PASSES_LOCAL_ZERO_ZEROSHARDING_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Local/Zero/FunctionSharding.h"

namespace bowline {

/// ZeRO (Rajbhandari et al., 2020) on the program of one rank. Along one mesh axis, over which gradients are summed,
/// ranks keep flat shards (FlatShards.h) instead of copies:
///
/// | level | shards of                            | bytes sent per rank and step, M microbatches, P of parameters |
/// |-------|--------------------------------------|----------------------------------------------------------------|
/// | 1     | the optimizer's states               | 2 P (n-1)/n: gradients scattered, new values gathered          |
/// | 2     | also the accumulators of gradients   | (M + 1) P (n-1)/n: gradients scattered in each microbatch      |
/// | 3     | also parameters                      | at most 3 M P (n-1)/n: and gathered before they are used       |
///
/// New values of parameters that the program rounds before it computes with them are gathered in the narrower type,
/// from level 1 on in half the bytes for bf16: ranks then keep them whole in that type, and in shards as they are
/// (RoundedCopies.h). Where gradients are summed over further axes (hybrid sharding), shards are all-reduced along
/// those. A variable that the axis shards already stays as it is. FunctionSharding.h says how functions change.
class ZeroSharding {
public:
  /// \p level is 1 to 3; \p prefetch is for the gathers of parameters. \p line is the place of the strategy's line.
  ZeroSharding(mlir::ModuleOp module, dist::MeshOp mesh, int64_t level, mlir::StringAttr axis, int64_t prefetch,
               mlir::Location line)
      : module(module), symbols(module), shards(mesh, axis), level(level), prefetch(prefetch), line(line) {}

  /// Fails with a diagnostic where no gradient is summed over the axis, naming the axes over which they are, or where a
  /// function uses gradients in a way that cannot be divided.
  mlir::LogicalResult run();

private:
  mlir::LogicalResult checkAxis();
  void chooseVariables();
  void divide(mlir::Operation *variable, const ShardedVariable &sharded);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  FlatShards shards;
  int64_t level, prefetch;
  mlir::Location line;
  FunctionSharding::Variables variables;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_ZEROSHARDING_H
