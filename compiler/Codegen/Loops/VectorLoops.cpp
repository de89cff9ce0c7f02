//===- VectorLoops.cpp - Loops over the vectors of a row
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/VectorLoops.h"

using namespace mlir;
using namespace bowline::codegen;

int64_t VectorLoops::lanesOf(const Nest::Segment &segment) {
  SmallVector<const Expr *> roots = valuesOf(segment.stores);
  bool reduces = false;
  forEachExpr(roots, [&](const Expr *expr) {
    reduces |= expr->kind == Expr::Kind::Reduce && expr->freeDims & dimBit(*segment.dim);
  });
  return chooseLanes(roots, frame.nest->space.size(*segment.dim), frame.vectorLanes, reduces);
}

void VectorLoops::emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to,
                              llvm::function_ref<void()> body) {
  indices.lanes = {dimBit(*segment.dim), count, nullptr};
  scopes.emitLoop(*segment.dim, from, to, count, {}, [&](ValueRange) {
    body();
    return SmallVector<Value>();
  });
  indices.lanes = {};
}

void VectorLoops::emitTail(const Nest::Segment &segment, int64_t from, int64_t rest, llvm::function_ref<void()> body) {
  scopes.insertHere();
  indices.setTailLanes(*segment.dim, rest);
  scopes.emitOnce(*segment.dim, b.constant(from), body);
  indices.lanes = {};
}

void VectorLoops::emitElements(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body) {
  blocks ? emitBlocks(segment, blocks, body) : emitRow(segment, body);
}

void VectorLoops::emitRow(const Nest::Segment &segment, llvm::function_ref<void()> body) {
  int64_t size = frame.nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
  if (size >= count && count > 1) {
    scopes.insertHere();
    emitVectors(segment, count, b.constant(0), b.constant(size - rest), body);
  }
  if (count == 1)
    rest = size;
  if (rest)
    emitTail(segment, size - rest, rest, body);
}

void VectorLoops::emitBlocks(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body) {
  int64_t size = frame.nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
  scopes.insertHere();
  Value from = arith::MulIOp::create(b, blocks.first, b.constant(frame.nest->blockSize));
  Value to = arith::MulIOp::create(b, blocks.end, b.constant(frame.nest->blockSize));
  emitVectors(segment, count, from, arith::MinSIOp::create(b, to, b.constant(size - rest)), body);
  if (rest)
    scopes.emitIf(blocks.end, frame.nest->blocks, [&] { emitTail(segment, size - rest, rest, body); });
}
