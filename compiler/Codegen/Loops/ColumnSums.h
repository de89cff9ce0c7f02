//===- ColumnSums.h - Reductions across rows, a few rows at a time
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_COLUMNSUMS_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_COLUMNSUMS_H

#include "compiler/Codegen/Loops/Prefetches.h"
#include "compiler/Codegen/Loops/Reductions.h"
#include "compiler/Codegen/Loops/VectorLoops.h"

namespace bowline::codegen {

/// Computes the column sums of a nest. Each sum has a buffer for the columns of the blocks that are computed together.
class ColumnSums : public StackValues {
public:
  ColumnSums(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory, Reductions &reductions,
             VectorLoops &loops, Prefetches &prefetches)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory), reductions(reductions),
        loops(loops), prefetches(prefetches) {}

  /// Allocates the buffers on the stack.
  void allocate();

  /// Computes all sums for the columns of `blocks`, or for all columns if `blocks` is null.
  void emitColumns(Blocks blocks);

  bool has(const Expr *expr) const override { return columns.count(expr); }
  Value load(const Expr *expr) override;

private:
  /// Adds the next `rows` rows to the sums.
  void emitColumnsOfRows(int64_t rows, Blocks blocks);
  Value columnAddress(const Expr *reduce);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
  Reductions &reductions;
  VectorLoops &loops;
  Prefetches &prefetches;
  llvm::SmallDenseMap<const Expr *, Argument> columns;
  /// The index of the column at the start of the buffers.
  Value firstColumn;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_COLUMNSUMS_H
