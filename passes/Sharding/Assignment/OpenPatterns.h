//===- OpenPatterns.h - Lines of the strategy that leave dimensions of parameters open
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_ASSIGNMENT_OPENPATTERNS_H
#define BOWLINE_PASSES_SHARDING_ASSIGNMENT_OPENPATTERNS_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// The `shard` lines with '?', which propagation may add axes to: made before it, and asked behind it.
class OpenPatterns {
public:
  explicit OpenPatterns(mlir::ModuleOp module);

  /// Remarks at each line of whose parameters none got a further axis that the '?' did nothing, and why.
  void remarkUnused() const;

private:
  struct Line {
    dist::ShardOp op;
    llvm::SmallVector<graph::ParamOp> params;
  };
  llvm::SmallVector<Line> lines;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_ASSIGNMENT_OPENPATTERNS_H
