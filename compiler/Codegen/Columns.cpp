//===- Columns.cpp - Which nests reduce rows piece by piece
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nest.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::codegen;

/// Fewer rows are as fast with accumulators in registers.
static constexpr int64_t kMinRows = 16;

/// Columns of one unit. A page of f32 keeps prefetchers busy best; fewer, where there would be little to do in
/// parallel.
static constexpr int64_t kMaxColumns = 1024, kMinColumns = 256, kUnits = 8;

/// Buffers of columns on the stack.
static constexpr size_t kMaxReductions = 4;

void bowline::codegen::chooseColumns(Nest &nest, int64_t vectorLanes) {
  if (nest.rows || nest.segments.size() != 1 || !nest.rowStores.empty())
    return;
  unsigned inner = *nest.segments[0].dim;
  SmallVector<const Expr *> roots, reductions;
  for (const Nest::Store &store : nest.segments[0].stores)
    roots.push_back(store.value);
  bool fits = true;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind != Expr::Kind::Reduce)
      return;
    fits &= expr->reduceDepth == 1 && expr->freeDims & dimBit(inner);
    reductions.push_back(expr);
    fits &= expr->dims == reductions[0]->dims;
  });
  if (!fits || reductions.empty() || reductions.size() > kMaxReductions || reducesRowByRow(reductions) ||
      nest.space.size(reductions[0]->dims.back()) < kMinRows)
    return;
  int64_t size = nest.space.size(inner);
  if (size <= chooseLanes(roots, size, vectorLanes, true))
    return;
  nest.columnSums = reductions;
  int64_t wanted = llvm::alignTo(llvm::divideCeil(size * nest.units, kUnits), kMinColumns);
  nest.blockSize = std::min(size, std::min(wanted, kMaxColumns));
  nest.blocks = llvm::divideCeil(size, nest.blockSize);
  nest.blocksTogether = std::clamp<int64_t>(kMaxColumns / nest.blockSize, 1, nest.blocks);
  nest.units *= nest.blocks;
}
