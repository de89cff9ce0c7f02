//===- Values.h - Expressions as scalars or vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_VALUES_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_VALUES_H

#include "compiler/Codegen/Loops/ElementMemory.h"

namespace bowline::codegen {

/// Emits reductions where the values of their operands are needed.
class ReductionEmitter {
public:
  virtual ~ReductionEmitter() = default;

  /// Computes the reductions under `roots` that belong in the innermost scope. Reductions over the same dimensions
  /// share a loop unless one depends on another.
  virtual void prepare(ArrayRef<const Expr *> roots) = 0;

  /// Computes the reductions of `group` in the innermost scope. All are over the same dimensions.
  virtual void emitReductions(ArrayRef<const Expr *> group) = 0;
};

/// Values that are stored in a stack buffer and loaded from it.
class StackValues {
public:
  virtual ~StackValues() = default;

  /// Returns whether the value of `expr` is loaded from the buffer.
  virtual bool has(const Expr *expr) const = 0;
  virtual Value load(const Expr *expr) = 0;
  /// Stores `computed`, the value of `expr`, if it belongs in the buffer. Called for every computed value except those
  /// of reductions.
  virtual void keep(const Expr *expr, Value computed) {}
};

/// The values of a nest's expressions. Each is computed once, in the outermost scope that has all its dimensions.
class Values {
public:
  Values(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory) {}

  /// Sets the object that computes reductions, which in turn uses these values.
  void setReductions(ReductionEmitter &computed) { reductions = &computed; }
  void add(StackValues &buffer) { buffers.push_back(&buffer); }

  /// Returns the value of `expr`: a vector if it depends on the dimension of the lanes, otherwise a scalar.
  Value value(const Expr *expr);

  /// Returns whether `expr` is loaded from a buffer.
  bool isStored(const Expr *expr) const { return findBuffer(expr) != nullptr; }

  void store(const Nest::Store &target, Value computed);

  /// Computes the values of all `stores` before it stores any: a result may overwrite elements that another reads.
  void emitStores(ArrayRef<Nest::Store> stores);

private:
  StackValues *findBuffer(const Expr *expr) const;
  Value compute(const Expr *expr, SmallVectorImpl<Value> &operands);
  Value apply(const Expr *expr, ArrayRef<Value> operands, int64_t count);
  Value load(const Expr *expr);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  ElementMemory &memory;
  ReductionEmitter *reductions = nullptr;
  SmallVector<StackValues *> buffers;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_VALUES_H
