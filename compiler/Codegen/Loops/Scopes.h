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

/// A place in a block to which code is added, with the values that some dimensions have there.
struct Scope {
  explicit Scope(Block *block) : block(block) {}
  Scope(Block *block, unsigned dim, Value value) : block(block) { dims[dim] = value; }

  Block *block;
  /// The operation in this scope whose nested block is being filled. Operations added to this scope now must come
  /// before it. Null if there is none.
  Operation *before = nullptr;
  llvm::SmallDenseMap<unsigned, Value> dims;
  /// The values computed in this scope, by expression.
  llvm::DenseMap<const Expr *, Value> values;
};

/// The stack of scopes around the present code, the innermost last, and the loops and branches that open them. Code
/// goes to the innermost scope, or, with `inScope`, to an outer one.
class Scopes {
public:
  explicit Scopes(KernelBuilder &b) : b(b) {}

  /// Restarts with a single scope at the end of `block`.
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

  /// Returns the index of the scope for values that depend only on `dims`: the innermost that sets one of them.
  size_t scopeOf(DimSet dims) const;

  bool isBound(DimSet dims) const;

  Value dimValue(unsigned dim) const;

  /// Runs `body` as if scope `index` were the innermost.
  void inScope(size_t index, llvm::function_ref<void()> body);

  using LoopBody = llvm::function_ref<SmallVector<Value>(ValueRange)>;
  using CountedBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;

  /// Emits a loop in which `dim` runs from `from` to below `to` in steps of `step`. Returns the results of the loop.
  SmallVector<Value> emitLoop(unsigned dim, Value from, Value to, int64_t step, ValueRange initial, LoopBody body);

  /// Emits a loop as above whose induction variable is not the value of any dimension.
  SmallVector<Value> emitCounted(Value from, Value to, Value step, ValueRange initial, CountedBody body);

  /// Emits a loop with `body` for each number in [from, to), in steps of `step`.
  void emitNumbers(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);

  /// Emits `body` with `dim` set to `at`, without a loop.
  void emitOnce(unsigned dim, Value at, llvm::function_ref<void()> body);

  /// Emits `body` under the condition `condition`.
  void emitWhere(Value condition, llvm::function_ref<void()> body);

  /// Emits `body` under the condition that `number` equals `wanted`.
  void emitIf(Value number, int64_t wanted, llvm::function_ref<void()> body);

private:
  /// Fills a block of `op`, which was just added to the innermost scope: runs `body` in the new scope `inner`.
  void emitInside(Operation *op, Scope inner, llvm::function_ref<void()> body);

  KernelBuilder &b;
  SmallVector<Scope, 0> stack;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_SCOPES_H
