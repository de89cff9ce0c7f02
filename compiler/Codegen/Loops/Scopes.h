//===- Scopes.h - Where code goes, and which dimensions have values there
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_SCOPES_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_SCOPES_H

#include "compiler/Codegen/Loops/KernelFrame.h"

namespace bowline::codegen {

/// A place in a block to add code to, where some dimensions have values.
struct Scope {
  explicit Scope(Block *block) : block(block) {}
  Scope(Block *block, unsigned dim, Value value) : block(block) { dims[dim] = value; }

  Block *block;
  /// The operation whose inner block is being filled; operations added to this scope now must stand before it. Null if
  /// there is none.
  Operation *before = nullptr;
  llvm::SmallDenseMap<unsigned, Value> dims;
  /// The values that were computed in this scope.
  llvm::DenseMap<const Expr *, Value> values;
};

/// The scopes around the code that is emitted now, the innermost last, and the loops and branches that make them. Code
/// is added to the innermost scope, or with `inScope` further out.
class Scopes {
public:
  explicit Scopes(KernelBuilder &b) : b(b) {}

  /// Starts over with one scope, at the end of `block`.
  void begin(Block *block) {
    stack.clear();
    stack.emplace_back(block);
    b.setInsertionPointToEnd(block);
  }

  Scope &back() { return stack.back(); }
  Scope &operator[](size_t index) { return stack[index]; }
  size_t size() const { return stack.size(); }

  void insertHere() {
    if (Scope &scope = stack.back(); scope.before)
      b.setInsertionPoint(scope.before);
    else
      b.setInsertionPointToEnd(scope.block);
  }

  /// The scope in which everything that depends on `dims` only belongs: the innermost that gives one of them a value.
  size_t scopeOf(DimSet dims) const;

  bool isBound(DimSet dims) const;

  Value dimValue(unsigned dim) const;

  /// Runs `body` as if scope `index` were the innermost.
  void inScope(size_t index, llvm::function_ref<void()> body);

  using LoopBody = llvm::function_ref<SmallVector<Value>(ValueRange)>;
  using CountedBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;

  /// Emits a loop in which `dim` takes the values from `from` on, `step` apart, below `to`. Returns its results.
  SmallVector<Value> emitLoop(unsigned dim, Value from, Value to, int64_t step, ValueRange initial, LoopBody body);

  /// Emits such a loop over numbers that are the value of no dimension by themselves.
  SmallVector<Value> emitCounted(Value from, Value to, Value step, ValueRange initial, CountedBody body);

  /// Runs `body` for each number in [from, to), `step` apart.
  void emitNumbers(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);

  /// Runs `body` where `dim` has the value `at`, without a loop.
  void emitOnce(unsigned dim, Value at, llvm::function_ref<void()> body);

  /// Runs `body` where `condition` holds.
  void emitWhere(Value condition, llvm::function_ref<void()> body);

  /// Runs `body` where `number` is `wanted`.
  void emitIf(Value number, int64_t wanted, llvm::function_ref<void()> body);

private:
  /// Runs `body` in the scope `inner` of a block of `op`, which was just added to the innermost scope.
  void emitInside(Operation *op, Scope inner, llvm::function_ref<void()> body);

  KernelBuilder &b;
  SmallVector<Scope, 0> stack;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_SCOPES_H
