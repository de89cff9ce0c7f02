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

/// Loads and stores of elements, one or one per lane, in the types in which memory holds them.
class ElementMemory {
public:
  ElementMemory(KernelFrame &frame, Indices &indices) : frame(frame), b(frame.b), indices(indices) {}

  Value address(const Argument &argument, Type element, Value index);

  /// `index` in [low, high].
  Value clamp(Value index, int64_t low, int64_t high);

  /// A number of bytes that divides the address of element `index` of `argument`, which the lanes begin with.
  unsigned alignmentOf(const Argument &argument, AffineExpr index);

  /// Consecutive elements from `pointer` on, one per lane; zero outside of `mask` where it is set. `alignment` is what
  /// is known of the pointer, in bytes; 0: that of an element.
  Value loadVector(const Argument &argument, Value pointer, Value mask, unsigned alignment = 0);

  /// With `isStreamed`, `pointer` lies a number of whole vectors behind the begin of a cache line. `alignment` as
  /// above.
  void storeVector(const Argument &argument, Value pointer, Value computed, bool isStreamed = false,
                   unsigned alignment = 0);

  Value fromMemory(Value raw, Type elementType);
  Value toMemory(Value computed, Type elementType);

  /// Whether a store was non-temporal.
  bool hasStreamed() const { return streams; }

private:
  /// Stores `raw`, past the caches, at an address that is a multiple of its size or of a cache line.
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
