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

/// How far ahead of a square memory is asked for.
inline constexpr int64_t kSquaresAhead = 2;

/// What a tile reads along its own dimension, transposed a square at a time into buffers.
class Squares : public StackValues {
public:
  Squares(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory, Prefetches &prefetches)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory), prefetches(prefetches) {}

  /// Buffers for what the nest reads transposed.
  void allocate();

  /// Copies a square of all such loads, or a part of one, to its buffer. Returns its first row.
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
