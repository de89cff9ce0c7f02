//===- Prefetches.cpp - Prefetches of memory that is used later
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Prefetches.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

/// How many bytes ahead of the computed elements memory is prefetched. Measurements show that, with arithmetic in
/// between, a processor that runs ahead of its loads does not get far enough by itself.
static constexpr int64_t kBytesAhead = 1024;

void Prefetches::prefetch(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead) {
  AffineExpr then =
      frame.nest->space.add(index, frame.nest->space.constant(ahead * *IndexSpace::coefficient(index, dim)));
  Value pointer = memory.address(argument, memoryType(argument.type.getElementType()), indices.scalarIndex(then));
  LLVM::Prefetch::create(b, pointer, /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

void Prefetches::prefetchLanes(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead) {
  constexpr int64_t kLineBits = 64 * 8;
  int64_t line = kLineBits / memoryType(argument.type.getElementType()).getIntOrFloatBitWidth();
  for (int64_t column = 0; column < indices.lanes.count; column += line)
    prefetch(argument, frame.nest->space.add(index, frame.nest->space.constant(column)), dim, ahead);
}

void Prefetches::prefetchScattered() {
  if (frame.nest->scattered.empty())
    return;
  scopes.insertHere();
  for (const Expr *load : frame.nest->scattered)
    prefetchLanes(frame.arguments[load->argument], load->index, frame.nest->aheadDim, frame.nest->rowsAhead);
  for (const Nest::Store &target : frame.nest->segments[0].stores)
    if (!target.isStreamed)
      prefetchLanes(frame.output(target.output), target.index, frame.nest->aheadDim, frame.nest->rowsAhead);
}

void Prefetches::prefetchAhead(ArrayRef<const Expr *> roots, unsigned dim, std::optional<int64_t> ahead) {
  if (!frame.nest->scattered.empty() || !frame.nest->columnSums.empty())
    return;
  scopes.insertHere();
  forEachExpr(roots, [&](const Expr *load) {
    // Loads inside reductions get no prefetch: the reduced dimensions have no value here.
    if (load->kind != Expr::Kind::Load || !scopes.isBound(load->freeDims) ||
        IndexSpace::coefficient(load->index, dim) != 1)
      return;
    const Argument &argument = frame.arguments[load->argument];
    int64_t bytes = memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
    prefetchLanes(argument, load->index, dim, ahead.value_or(kBytesAhead / bytes));
  });
}

void Prefetches::prefetchColumns(ArrayRef<const Expr *> bodies, unsigned row, int64_t ahead) {
  unsigned inner = *frame.nest->segments[0].dim;
  scopes.insertHere();
  forEachExpr(bodies, [&](const Expr *load) {
    if (load->kind == Expr::Kind::Load && IndexSpace::coefficient(load->index, inner) == 1 &&
        IndexSpace::coefficient(load->index, row).value_or(0) > 0)
      prefetchLanes(frame.arguments[load->argument], load->index, row, ahead);
  });
}
