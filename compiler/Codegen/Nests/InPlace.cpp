//===- InPlace.cpp - Which results may overwrite which arguments
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/Nest.h"

using namespace mlir;
using namespace bowline::codegen;

static bool reads(const Nest &nest, unsigned argument) {
  SmallVector<const Expr *> roots;
  for (const Nest::Segment &segment : nest.segments)
    for (const Nest::Store &store : segment.stores)
      roots.push_back(store.value);
  for (const Nest::Store &store : nest.rowStores)
    roots.push_back(store.value);
  bool found = false;
  forEachExpr(roots, [&](const Expr *expr) { found |= expr->kind == Expr::Kind::Load && expr->argument == argument; });
  return found;
}

/// Whether `store` may overwrite `argument`, which only `nest` reads.
static bool isSafe(const Nest &nest, const Nest::Store &store, bool isRowStore, unsigned argument) {
  // Segments of a row come one after the other: the first would write before the second has read.
  if (nest.segments.size() > 1)
    return false;
  SmallVector<const Expr *> roots;
  for (const Nest::Segment &segment : nest.segments)
    for (const Nest::Store &other : segment.stores)
      roots.push_back(other.value);
  for (const Nest::Store &other : nest.rowStores)
    roots.push_back(other.value);

  std::optional<unsigned> inner = nest.segments.empty() ? std::nullopt : nest.segments[0].dim;
  // A reduction may read the same row: it is complete before the row is written.
  auto isSameRow = [&](AffineExpr index) {
    if (isRowStore || !inner)
      return false;
    for (unsigned dim = 0; dim < IndexSpace::kMaxDims; ++dim) {
      if (!(IndexSpace::dimsOf(index) & dimBit(dim)) || dim == *inner ||
          nest.space.size(dim) != nest.space.size(*inner))
        continue;
      llvm::SmallDenseMap<unsigned, AffineExpr> replacements;
      replacements[dim] = nest.space.dim(*inner);
      if (!(IndexSpace::dimsOf(index) & dimBit(*inner)) && nest.space.replace(index, replacements) == store.index)
        return true;
    }
    return false;
  };

  bool safe = true;
  forEachExpr(roots, [&](const Expr *expr) {
    switch (expr->kind) {
    case Expr::Kind::Choose:
      // A load under a condition may run late, after the result has overwritten the element.
      safe = false;
      break;
    case Expr::Kind::Load:
      if (expr->argument == argument)
        safe &= expr->index == store.index || isSameRow(expr->index);
      break;
    case Expr::Kind::Reduce:
      // The loop that writes the row computes the reduction, so that it may read only the elements that it writes.
      if (inner && expr->freeDims & dimBit(*inner))
        forEachExpr(expr->operands, [&](const Expr *load) {
          if (load->kind == Expr::Kind::Load && load->argument == argument)
            safe &= load->index == store.index;
        });
      break;
    default:
      break;
    }
  });
  return safe;
}

SmallVector<std::pair<int, int>> bowline::codegen::findInPlacePairs(func::FuncOp kernel,
                                                                    ArrayRef<std::unique_ptr<Nest>> nests) {
  SmallVector<std::pair<int, int>> pairs;
  FunctionType type = kernel.getFunctionType();
  for (auto [input, inputType] : llvm::enumerate(type.getInputs())) {
    const Nest *reader = nullptr;
    unsigned readers = 0;
    for (const std::unique_ptr<Nest> &nest : nests)
      if (reads(*nest, input)) {
        reader = nest.get();
        ++readers;
      }
    if (readers != 1)
      continue;
    auto add = [&](const Nest::Store &store, bool isRowStore) {
      // A partial sum is written with each row of its unit, before later rows are read.
      if (store.isPartialSum)
        return;
      auto from = cast<RankedTensorType>(inputType), to = cast<RankedTensorType>(type.getResult(store.output));
      if (from.getElementType() == to.getElementType() && from.getNumElements() == to.getNumElements() &&
          isSafe(*reader, store, isRowStore, input))
        pairs.emplace_back(store.output, input);
    };
    for (const Nest::Segment &segment : reader->segments)
      for (const Nest::Store &store : segment.stores)
        add(store, false);
    for (const Nest::Store &store : reader->rowStores)
      add(store, true);
  }
  llvm::sort(pairs);
  return pairs;
}
