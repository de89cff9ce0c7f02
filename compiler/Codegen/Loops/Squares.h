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

/// How many squares ahead of the current one memory is prefetched.
inline constexpr int64_t kSquaresAhead = 2;

/// The loads of a tile that are dense along the tile's dimension, transposed a square at a time into buffers.
class Squares : public StackValues {
public:
  Squares(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory, Prefetches &prefetches)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory), prefetches(prefetches) {}

  /// Allocates a buffer on the stack for each load that the nest reads transposed.
  void allocate();

  /// Transposes `rows` x `columns` elements of a square of all such loads into their buffers. Returns the index of the
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
