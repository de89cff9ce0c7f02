//===- Volumes.h - Bytes that a rank keeps and sends
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_VOLUMES_H
#define BOWLINE_PASSES_LOCAL_ZERO_VOLUMES_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// Computes memory and communication volumes of a module of local tensors, in bytes per rank.
class Volumes {
public:
  explicit Volumes(mlir::ModuleOp module) : module(module) {}

  /// The bytes of all parameters and states, accumulators included.
  int64_t ofVariables() const;

  /// The bytes that a rank sends in one run of \p entry, including repetitions, with bandwidth-optimal algorithms
  /// (Patarasuk and Yuan, 2009). For n ranks and a whole tensor of B bytes: (n-1)/n B for gathers, scatters and
  /// all-to-all, twice that for all-reduces.
  int64_t sentIn(graph::EntryOp entry) const;
  /// The bytes that a rank sends in one run of \p op; 0 for an operation that does not communicate.
  static int64_t sentBy(mlir::Operation *op);

private:
  mutable mlir::ModuleOp module;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_VOLUMES_H
