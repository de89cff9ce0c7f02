//===- Gpu/GridPlan.cpp - Division of a kernel's work among the blocks of a GPU's grid
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/GridPlan.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

/// The most threads in a block. In a larger block a thread may have too few registers for its computation.
static constexpr int64_t kMaxThreads = 512;

/// The number of threads in a block that computes elements, or rows by warps.
static constexpr int64_t kThreads = 256;

/// A warp computes a row alone that has at most so many vectors per lane.
static constexpr int64_t kVectorsPerLane = 16;

/// The number of threads that keep a device busy: with fewer rows than warps for that, each row gets a block.
static constexpr int64_t kBusyThreads = int64_t{1} << 16;

static int64_t bytesOf(Type elementType) { return memoryType(elementType).getIntOrFloatBitWidth() / 8; }

SmallVector<const Expr *> bowline::codegen::rootsOf(const Nest &nest) {
  SmallVector<const Expr *> roots;
  for (const Nest::Store &store : nest.rowStores)
    roots.push_back(store.value);
  for (const Nest::Segment &segment : nest.segments)
    for (const Nest::Store &store : segment.stores)
      roots.push_back(store.value);
  return roots;
}

int64_t bowline::codegen::vectorOf(func::FuncOp kernel, ArrayRef<const Expr *> roots, ArrayRef<Nest::Store> stores,
                                   unsigned dim, int64_t size) {
  int64_t narrowest = kAccessBytes, widest = 1;
  bool isDense = true;
  auto use = [&](Type tensor, AffineExpr index) {
    auto step = IndexSpace::coefficient(index, dim);
    isDense &= step.has_value() && (*step == 0 || *step == 1);
    if (step != 1)
      return;
    int64_t bytes = bytesOf(cast<RankedTensorType>(tensor).getElementType());
    narrowest = std::min(narrowest, bytes);
    widest = std::max(widest, bytes);
  };
  FunctionType type = kernel.getFunctionType();
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Load && IndexSpace::dimsOf(expr->index) & dimBit(dim))
      use(type.getInput(expr->argument), expr->index);
    for (const graph::IndexBox &box : expr->boxes)
      for (const graph::IndexBound &bound : box)
        isDense &= !(IndexSpace::dimsOf(bound.index) & dimBit(dim));
  });
  for (const Nest::Store &store : stores)
    use(type.getResult(store.output), store.index);
  if (!isDense)
    return 1;
  int64_t count = kAccessBytes / narrowest;
  while (count > 1 && (size < count || count * widest > 2 * kAccessBytes))
    count /= 2;
  return count;
}

/// How many lanes share the terms of the sums of one element, so that enough threads have something to do.
static int64_t lanesOfElement(const Nest &nest, ArrayRef<const Expr *> roots, unsigned inner, int64_t items) {
  // `terms` is the length of the shortest sum: with fewer terms than lanes, some lanes would have none.
  int64_t terms = 1;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind != Expr::Kind::Reduce || !(expr->freeDims & dimBit(inner)))
      return;
    int64_t own = 1;
    for (unsigned dim : expr->dims)
      own *= nest.space.size(dim);
    terms = terms == 1 ? own : std::min(terms, own);
  });
  int64_t lanes = 1;
  while (lanes < kWarp && items * lanes < kBusyThreads && terms >= 4 * lanes)
    lanes *= 2;
  return lanes;
}

/// Appends the ranges of `planned`. Their `blocks` is not final: it is the number of threads that they need, or of
/// units where these are rows.
static void addRanges(func::FuncOp kernel, const Nest &planned, std::vector<GridRange> &ranges) {
  SmallVector<const Expr *> roots = rootsOf(planned);
  DimSet rowDims = planned.rows ? dimBit(*planned.rows) : 0;
  for (unsigned dim : planned.outer)
    rowDims |= dimBit(dim);
  // `vectors` is the number of vectors of the longest row that is reduced or written.
  int64_t vectors = 1;
  bool reducesRow = false;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind != Expr::Kind::Reduce || expr->freeDims == 0 || expr->freeDims & ~rowDims)
      return;
    reducesRow = true;
    int64_t elements = 1;
    for (unsigned dim : expr->dims)
      elements *= planned.space.size(dim);
    vectors = std::max(vectors, elements / vectorOf(kernel, expr->operands, {}, expr->dims.back(),
                                                    planned.space.size(expr->dims.back())));
  });
  int64_t units = 1;
  for (unsigned dim : planned.outer)
    units *= planned.space.size(dim);
  if (!reducesRow && !planned.rows && planned.rowStores.empty()) {
    for (auto [i, segment] : llvm::enumerate(planned.segments)) {
      int64_t size = planned.space.size(*segment.dim);
      GridRange range{&planned, GridRange::Form::Elements, static_cast<unsigned>(i), kThreads};
      range.vector = vectorOf(kernel, valuesOf(segment.stores), segment.stores, *segment.dim, size);
      while (size % range.vector != 0)
        range.vector /= 2;
      int64_t items = units * (size / range.vector);
      // Lanes that share an element go on for one that is not there, with the last one.
      range.lanes = leavesRowsOut(kernel) ? 1 : lanesOfElement(planned, valuesOf(segment.stores), *segment.dim, items);
      range.blocks = items * range.lanes;
      ranges.push_back(range);
    }
    return;
  }
  for (const Nest::Segment &segment : planned.segments) {
    int64_t size = planned.space.size(*segment.dim);
    vectors = std::max(vectors, size / vectorOf(kernel, valuesOf(segment.stores), segment.stores, *segment.dim, size));
  }
  GridRange range{&planned, GridRange::Form::WarpRows, 0, kThreads};
  bool isShort = vectors <= kWarp, isFew = units * kWarp < kBusyThreads;
  if (planned.rows || (!isShort && (isFew || vectors > kWarp * kVectorsPerLane))) {
    range.form = GridRange::Form::BlockRows;
    range.threads =
        std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(vectors, isFew ? 1 : 4)), 2 * kWarp, kMaxThreads);
  }
  range.blocks = units;
  ranges.push_back(range);
}

GridPlan bowline::codegen::planGrid(func::FuncOp kernel, ArrayRef<std::unique_ptr<Nest>> nests) {
  GridPlan plan;
  for (const std::unique_ptr<Nest> &nest : nests)
    addRanges(kernel, *nest, plan.ranges);
  for (const GridRange &range : plan.ranges)
    plan.threads = std::max(plan.threads, range.threads);
  for (GridRange &range : plan.ranges) {
    int64_t perBlock = range.form == GridRange::Form::Elements   ? plan.threads
                       : range.form == GridRange::Form::WarpRows ? plan.threads / kWarp
                                                                 : 1;
    range.firstBlock = plan.blocks;
    range.blocks = llvm::divideCeil(range.blocks, perBlock);
    plan.blocks += range.blocks;
  }
  return plan;
}
