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

/// The `shard` lines with '?', to whose dimensions propagation may add axes. Construct it before propagation.
class OpenPatterns {
public:
  explicit OpenPatterns(mlir::ModuleOp module);

  /// After propagation: emits a remark, with the reason, at each line whose '?' gave no parameter a further axis.
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
