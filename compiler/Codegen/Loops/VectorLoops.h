//===- VectorLoops.h - Loops over the vectors of a row
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORLOOPS_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORLOOPS_H

#include "compiler/Codegen/Loops/Indices.h"

namespace bowline::codegen {

/// The blocks [first, end) of the inner dimension that are computed together. Both values are null if the dimension is
/// not divided into blocks.
struct Blocks {
  Value first, end;
  explicit operator bool() const { return static_cast<bool>(first); }
};

/// Emits loops over a segment of a row, one vector per iteration, and a shorter vector for the rest.
class VectorLoops {
public:
  VectorLoops(KernelFrame &frame, Scopes &scopes, Indices &indices)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices) {}

  /// Returns the number of lanes of the segment's vectors.
  int64_t lanesOf(const Nest::Segment &segment);

  /// Emits a loop with `body` for the vectors of `count` lanes in [from, to).
  void emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to, llvm::function_ref<void()> body);

  /// Emits `body` for all vectors of the segment, or of the given blocks of it.
  void emitElements(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);
  void emitRow(const Nest::Segment &segment, llvm::function_ref<void()> body);

private:
  void emitBlocks(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);

  /// Emits `body` for the last `rest` elements, which begin at index `from`.
  void emitTail(const Nest::Segment &segment, int64_t from, int64_t rest, llvm::function_ref<void()> body);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORLOOPS_H
