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

/// The blocks [first, end) of the inner dimension that are computed together; both null where it is not
/// divided.
struct Blocks {
  Value first, end;
  explicit operator bool() const { return static_cast<bool>(first); }
};

/// Emits loops over a segment of a row, vector by vector, with a shorter vector at its end.
class VectorLoops {
public:
  VectorLoops(KernelFrame &frame, Scopes &scopes, Indices &indices)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices) {}

  /// The number of lanes of the segment's vectors.
  int64_t lanesOf(const Nest::Segment &segment);

  /// Runs `body` for the vectors of `count` lanes in [from, to).
  void emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to, llvm::function_ref<void()> body);

  /// Runs `body` for each vector of the segment, or of blocks of it.
  void emitElements(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);
  void emitRow(const Nest::Segment &segment, llvm::function_ref<void()> body);

private:
  void emitBlocks(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);

  /// Runs `body` for the last `rest` elements, from index `from` on.
  void emitTail(const Nest::Segment &segment, int64_t from, int64_t rest, llvm::function_ref<void()> body);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORLOOPS_H
