//===- ElementMemory.h - Elements in memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_ELEMENTMEMORY_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_ELEMENTMEMORY_H

#include "compiler/Codegen/Loops/Indices.h"

namespace bowline::codegen {

/// Emits loads and stores of one element, or of one per lane, and converts between the types of memory and computation.
class ElementMemory {
public:
  ElementMemory(KernelFrame &frame, Indices &indices) : frame(frame), b(frame.b), indices(indices) {}

  Value address(const Argument &argument, Type element, Value index);

  /// Limits `index`, or each of its lanes, to [low, high].
  Value clamp(Value index, int64_t low, int64_t high);

  /// Returns the known alignment in bytes of the address of element `index` of `argument` in the first lane.
  unsigned alignmentOf(const Argument &argument, AffineExpr index);

  /// Loads consecutive elements from `pointer` on, one per lane; lanes outside of `mask`, if it is set, become zero.
  /// `alignment` is the known alignment of the pointer in bytes; 0 means that of an element.
  Value loadVector(const Argument &argument, Value pointer, Value mask, unsigned alignment = 0);

  /// Stores consecutive elements from `pointer` on, one per existing lane; `alignment` is as in `loadVector`.
  /// `isStreamed`: stores past the caches; `pointer` must be a whole number of vectors after the start of a cache line.
  void storeVector(const Argument &argument, Value pointer, Value computed, bool isStreamed = false,
                   unsigned alignment = 0);

  Value fromMemory(Value raw, Type elementType);
  Value toMemory(Value computed, Type elementType);

  /// Returns whether any store so far was non-temporal.
  bool hasStreamed() const { return streams; }

private:
  /// Stores `raw` non-temporally. The address must be a multiple of the size of `raw` or of a cache line.
  void streamVector(Type elementType, Value pointer, Value raw);

  Type sameLanes(Value like, Type element);
  Value integerLike(Value like, int64_t number);

  KernelFrame &frame;
  KernelBuilder &b;
  Indices &indices;
  bool streams = false;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_ELEMENTMEMORY_H
