//===- Scopes.cpp - Where code goes, and which dimensions have values there
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Scopes.h"

using namespace mlir;
using namespace bowline::codegen;

size_t Scopes::scopeOf(DimSet dims) const {
  for (size_t i = stack.size(); i-- > 1;)
    for (auto &[dim, value] : stack[i].dims)
      if (dims & dimBit(dim))
        return i;
  return 0;
}

bool Scopes::isBound(DimSet dims) const {
  for (const Scope &scope : stack)
    for (auto &[dim, value] : scope.dims)
      dims &= ~dimBit(dim);
  return dims == 0;
}

Value Scopes::dimValue(unsigned dim) const {
  for (const Scope &scope : llvm::reverse(stack))
    if (auto it = scope.dims.find(dim); it != scope.dims.end())
      return it->second;
  llvm_unreachable("every dimension of an index has a loop");
}

void Scopes::inScope(size_t index, llvm::function_ref<void()> body) {
  SmallVector<Scope, 0> inner(std::make_move_iterator(stack.begin() + index + 1), std::make_move_iterator(stack.end()));
  stack.truncate(index + 1);
  body();
  stack.append(std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
}

void Scopes::emitInside(Operation *op, Scope inner, llvm::function_ref<void()> body) {
  SmallVector<std::pair<size_t, Operation *>> outer;
  for (size_t i = stack.size(); i-- > 0 && stack[i].block == op->getBlock();)
    outer.emplace_back(i, std::exchange(stack[i].before, op));
  stack.push_back(std::move(inner));
  body();
  stack.pop_back();
  for (auto [i, before] : outer)
    stack[i].before = before;
  insertHere();
}

SmallVector<Value> Scopes::emitLoop(unsigned dim, Value from, Value to, int64_t step, ValueRange initial,
                                    LoopBody body) {
  insertHere();
  Value stepValue = b.constant(step);
  auto loop = scf::ForOp::create(b, from, to, stepValue, initial);
  loop.getBody()->clear();
  emitInside(loop, Scope(loop.getBody(), dim, loop.getInductionVar()), [&] {
    SmallVector<Value> results = body(loop.getRegionIterArgs());
    insertHere();
    scf::YieldOp::create(b, results);
  });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

SmallVector<Value> Scopes::emitCounted(Value from, Value to, Value step, ValueRange initial, CountedBody body) {
  insertHere();
  auto loop = scf::ForOp::create(b, from, to, step, initial);
  loop.getBody()->clear();
  emitInside(loop, Scope(loop.getBody()), [&] {
    insertHere();
    SmallVector<Value> results = body(loop.getInductionVar(), loop.getRegionIterArgs());
    insertHere();
    scf::YieldOp::create(b, results);
  });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

void Scopes::emitNumbers(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  insertHere();
  emitCounted(from, to, b.constant(step), {}, [&](Value number, ValueRange) {
    body(number);
    return SmallVector<Value>();
  });
}

void Scopes::emitOnce(unsigned dim, Value at, llvm::function_ref<void()> body) {
  // The new scope is in the same place as the one around it; only values that depend on `dim` are kept apart.
  Scope scope(stack.back().block, dim, at);
  scope.before = stack.back().before;
  stack.push_back(std::move(scope));
  body();
  stack.pop_back();
  insertHere();
}

void Scopes::emitWhere(Value condition, llvm::function_ref<void()> body) {
  insertHere();
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  branch.thenBlock()->clear();
  emitInside(branch, Scope(branch.thenBlock()), [&] {
    insertHere();
    body();
    insertHere();
    scf::YieldOp::create(b);
  });
}

void Scopes::emitIf(Value number, int64_t wanted, llvm::function_ref<void()> body) {
  insertHere();
  emitWhere(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, b.constant(wanted)), body);
}
