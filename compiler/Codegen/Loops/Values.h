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

class Reductions;

/// Values that lie in a buffer on the stack and are read from there.
class StackValues {
public:
  virtual ~StackValues() = default;

  /// Whether the value of `expr` is read from the buffer.
  virtual bool has(const Expr *expr) const = 0;
  virtual Value load(const Expr *expr) = 0;
  /// Stores `computed`, the value of `expr`, if it belongs in the buffer. Called for every computed value but
  /// those of reductions.
  virtual void keep(const Expr *expr, Value computed) {}
};

/// The values of a nest's expressions, each computed once in the outermost scope that it belongs in.
class Values {
public:
  Values(KernelFrame &frame, Scopes &scopes, Indices &indices, ElementMemory &memory)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), memory(memory) {}

  /// Sets the object that computes reductions, which uses these values in turn.
  void setReductions(Reductions &computed) { reductions = &computed; }
  void add(StackValues &buffer) { buffers.push_back(&buffer); }

  /// The value of `expr`: a vector where it depends on the dimension of the lanes, a scalar elsewhere.
  Value value(const Expr *expr);

  /// Whether `expr` is read from a buffer.
  bool isStored(const Expr *expr) const { return findBuffer(expr) != nullptr; }

  void store(const Nest::Store &target, Value computed);

  /// Computes all of `stores`, then stores them: a result may overwrite an element that another result reads.
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
  Reductions *reductions = nullptr;
  SmallVector<StackValues *> buffers;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_VALUES_H
