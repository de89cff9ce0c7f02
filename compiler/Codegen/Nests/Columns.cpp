//===- Columns.cpp - Which nests reduce over rows by blocks of columns
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/Nest.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::codegen;

/// Reductions over fewer rows are as fast with accumulators in registers, and get no column sums.
static constexpr int64_t kMinRows = 16;

/// One unit has kMaxColumns columns, a page of f32, which hardware prefetchers follow best. It has fewer, but not fewer
/// than kMinColumns, where that gives kUnits units that can run in parallel.
static constexpr int64_t kMaxColumns = 1024, kMinColumns = 256, kUnits = 8;

/// The largest number of reductions for each of which a unit has a buffer of column sums on its stack.
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
