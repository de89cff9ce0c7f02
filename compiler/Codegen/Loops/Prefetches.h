//===- Prefetches.h - Memory that is asked for ahead of its use
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_PREFETCHES_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_PREFETCHES_H

#include "compiler/Codegen/Loops/ElementMemory.h"

namespace bowline::codegen {

/// Prefetches of what loops of a processor read later.
class Prefetches {
public:
  Prefetches(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory) {}

  /// Asks for the memory that element `index` is in `ahead` steps of `dim` later.
  void prefetch(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);

  /// What lies ahead along `dim` of what `roots` read: a little, or `ahead` elements.
  void prefetchAhead(ArrayRef<const Expr *> roots, unsigned dim, std::optional<int64_t> ahead = std::nullopt);

  /// The scattered loads of the nest, and what is stored beside them.
  void prefetchScattered();

  /// What `bodies` read in the lanes, `ahead` rows later.
  void prefetchColumns(ArrayRef<const Expr *> bodies, unsigned row, int64_t ahead);

private:
  /// All cache lines of the lanes.
  void prefetchLanes(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_PREFETCHES_H
