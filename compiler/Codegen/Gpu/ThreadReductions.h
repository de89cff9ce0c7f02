//===- Gpu/ThreadReductions.h - Sums and maxima by several threads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_THREADREDUCTIONS_H
#define BOWLINE_COMPILER_CODEGEN_GPU_THREADREDUCTIONS_H

#include "compiler/Codegen/Gpu/Threads.h"
#include "compiler/Codegen/Loops/Reductions.h"

namespace bowline::codegen {

/// Reductions by a thread, by lanes that share the terms of an element, by a warp, or by a block. Sums have the same
/// order in every run: each thread first sums terms in strides over the row, then pairs of lanes are added, then warps.
class ThreadReductions : public Reductions {
public:
  ThreadReductions(KernelFrame &frame, Scopes &scopes, Indices &indices, Values &values, Threads &threads)
      : Reductions(frame, scopes, indices, values), threads(threads) {}

  /// Declares that all threads of a block execute the present scopes together, but no scopes opened later.
  void setBlockScopes() { blockScopes = scopes.size(); }
  /// Declares that all threads that share a row execute the present scopes together, but no scopes opened later.
  void setRowScopes() { rowScopes = scopes.size(); }
  void begin() { blockScopes = rowScopes = 1; }

  /// Runs `body`, in which `lanes` lanes share the terms of sums in the innermost scope; this one is number `lane`.
  void withTermLanes(int64_t lanes, Value lane, llvm::function_ref<void()> body);

protected:
  SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) override;

private:
  /// Computes sums whose terms several lanes share.
  SmallVector<Value> reduceInLanes(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);
  /// Sets `dims` to the indices of the element with row-major number `item`.
  void setDims(ArrayRef<unsigned> dims, Value item);

  /// Combines the partial results of the threads that share a row. All these threads get the combined values.
  SmallVector<Value> combineThreads(ArrayRef<const Expr *> group, SmallVector<Value> partial, bool ofBlock);
  Value combineLanesOfWarp(const Expr *reduction, Value value);

  Threads &threads;
  /// The number of outermost scopes that all threads of a block, or all threads of a row, execute together.
  size_t blockScopes = 0, rowScopes = 0;
  /// While there are `termScope` scopes, `termLanes` lanes share the terms of sums; this thread is number `termLane`.
  int64_t termLanes = 1;
  size_t termScope = 0;
  Value termLane;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_THREADREDUCTIONS_H
