//===- Prefetches.h - Prefetches of memory that is used later
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

/// Emits prefetches of elements that the loops of a CPU kernel will read or write.
class Prefetches {
public:
  Prefetches(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory) {}

  /// Prefetches the element that `index` will address `ahead` steps of `dim` later.
  void prefetch(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);

  /// Prefetches the elements that `roots` read `ahead` elements later along `dim`; by default, 1024 bytes later.
  void prefetchAhead(ArrayRef<const Expr *> roots, unsigned dim, std::optional<int64_t> ahead = std::nullopt);

  /// Prefetches elements that the nest's scattered loads and stores access `Nest::rowsAhead` positions later.
  void prefetchScattered();

  /// Prefetches the elements that `bodies` will read in the present lanes `ahead` rows later.
  void prefetchColumns(ArrayRef<const Expr *> bodies, unsigned row, int64_t ahead);

private:
  /// Prefetches all cache lines that the lanes will access `ahead` steps of `dim` later.
  void prefetchLanes(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_PREFETCHES_H
