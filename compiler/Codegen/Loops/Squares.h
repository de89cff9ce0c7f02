//===- Squares.h - Squares that are transposed in registers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_SQUARES_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_SQUARES_H

#include "compiler/Codegen/Loops/Prefetches.h"
#include "compiler/Codegen/Loops/Values.h"

namespace bowline::codegen {

/// The distance of prefetches, in squares after the current one.
inline constexpr int64_t kSquaresAhead = 2;

/// The loads of a tile that are contiguous along the tile's dimension: transposed into buffers, one square at a time.
class Squares : public StackValues {
public:
  Squares(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory, Prefetches &prefetches)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory), prefetches(prefetches) {}

  /// Allocates a stack buffer for each load that the nest reads transposed.
  void allocate();

  /// Transposes a square of `rows` x `columns` elements of each such load into its buffer. Returns the index of the
  /// square's first row.
  Value transpose(int64_t rows, int64_t columns);

  bool has(const Expr *expr) const override { return squares.count(expr); }
  Value load(const Expr *expr) override;

private:
  void transposeSquare(const Expr *load, int64_t rows, int64_t columns);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
  Prefetches &prefetches;
  llvm::SmallDenseMap<const Expr *, Argument> squares;
  Value firstRow;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_SQUARES_H
