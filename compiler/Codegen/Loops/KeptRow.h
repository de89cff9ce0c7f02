//===- KeptRow.h - A row that is computed once and used twice
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_KEPTROW_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_KEPTROW_H

#include "compiler/Codegen/Loops/Values.h"

namespace bowline::codegen {

/// A buffer with the row of values that a reduction over the row computes and that the full results use again.
class KeptRow : public StackValues {
public:
  KeptRow(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory) {}

  /// Allocates the buffer if the nest has such a row (Nest::kept).
  void allocate();

  bool has(const Expr *expr) const override { return frame.nest->kept && expr == frame.nest->kept->inSegment; }
  Value load(const Expr *expr) override;
  void keep(const Expr *expr, Value computed) override;

private:
  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
  Argument row;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_KEPTROW_H
