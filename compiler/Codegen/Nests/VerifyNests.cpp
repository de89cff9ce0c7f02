//===- VerifyNests.cpp - Nests write each element of each result once
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

namespace {

/// Positions that are `step` apart, `size` of them.
struct Extent {
  int64_t step, size;
};

/// Whether the sums of one position of each extent are the numbers of [0, count), each of them once: the steps are
/// those of a mixed-radix system.
bool coversOnce(SmallVector<Extent> extents, int64_t count) {
  llvm::erase_if(extents, [](const Extent &extent) { return extent.size == 1; });
  llvm::sort(extents, [](const Extent &lhs, const Extent &rhs) { return lhs.step < rhs.step; });
  int64_t covered = 1;
  for (const Extent &extent : extents) {
    if (extent.step != covered)
      return false;
    covered *= extent.size;
  }
  return covered == count;
}

class NestVerifier {
public:
  NestVerifier(const Nest &nest, func::FuncOp kernel) : nest(nest), kernel(kernel) {
    for (unsigned dim : nest.outer)
      loops.push_back(dim);
    if (nest.tile)
      loops.push_back(nest.tile->dim);
  }

  /// Adds the results that the nest writes to `written`.
  LogicalResult run(SmallVectorImpl<unsigned> &written) {
    if (failed(verifyUnits()) || failed(verifyLoads()))
      return failure();
    SmallVector<unsigned> rowLoops = loops;
    if (nest.rows)
      rowLoops.push_back(*nest.rows);
    for (const Nest::Store &store : nest.rowStores) {
      written.push_back(store.output);
      if (store.isPartialSum || failed(verifyStores(store.output, rowLoops, {{&store, std::nullopt}})))
        return incomplete(store.output);
    }
    if (nest.segments.empty())
      return success();
    for (const Nest::Store &first : nest.segments[0].stores) {
      written.push_back(first.output);
      SmallVector<Part> parts;
      for (const Nest::Segment &segment : nest.segments) {
        const Nest::Store *store = only(segment, first.output);
        if (!store || store->isPartialSum != first.isPartialSum)
          return incomplete(first.output);
        parts.push_back({store, segment.dim});
      }
      if (failed(verifyStores(first.output, first.isPartialSum ? loops : rowLoops, parts)))
        return incomplete(first.output);
      if (!first.isPartialSum)
        continue;
      // The nest sets the elements to zero before it adds partial sums to them.
      const Nest::Store *zeros = nest.rows ? only(nest.initial, first.output) : nullptr;
      if (!zeros || failed(verifyStores(first.output, loops, {{zeros, nest.initial.dim}})))
        return incomplete(first.output);
    }
    for (const Nest::Segment &segment : nest.segments)
      if (segment.stores.size() != nest.segments[0].stores.size())
        return kernel.emitOpError("is planned with segments that write different results");
    return success();
  }

private:
  /// A store of a result, and the dimension that runs over its part of a row.
  struct Part {
    const Nest::Store *store;
    std::optional<unsigned> dim;
  };

  InFlightDiagnostic incomplete(unsigned output) {
    return kernel.emitOpError("is planned with loops that do not write each element of result ") << output << " once";
  }

  static const Nest::Store *only(const Nest::Segment &segment, unsigned output) {
    const Nest::Store *found = nullptr;
    for (const Nest::Store &store : segment.stores) {
      if (store.output != output)
        continue;
      if (found)
        return nullptr;
      found = &store;
    }
    return found;
  }

  /// Whether the parts together write each element of the result once: all go through `around` in the same steps, and
  /// their ranges of the row follow each other.
  LogicalResult verifyStores(unsigned output, ArrayRef<unsigned> around, ArrayRef<Part> parts) {
    SmallVector<Extent> extents;
    const std::optional<int64_t> rowStep = stepOfRow(parts);
    int64_t rowSize = 0;
    for (auto [i, part] : llvm::enumerate(parts)) {
      AffineExpr index = part.store->index;
      DimSet known = part.dim ? dimBit(*part.dim) : 0;
      for (unsigned dim : around)
        known |= dimBit(dim);
      std::optional<int64_t> begin = constantOf(index);
      if (!rowStep || !begin || *begin != rowSize * *rowStep || IndexSpace::dimsOf(index) & ~known)
        return failure();
      for (auto [position, dim] : llvm::enumerate(around)) {
        int64_t step = *IndexSpace::coefficient(index, dim);
        if (i == 0)
          extents.push_back({step, nest.space.size(dim)});
        else if (step != extents[position].step)
          return failure();
      }
      int64_t size = part.dim ? nest.space.size(*part.dim) : 1;
      if (size > 1 && IndexSpace::coefficient(index, *part.dim) != rowStep)
        return failure();
      rowSize += size;
    }
    extents.push_back({*rowStep, rowSize});
    auto type = cast<RankedTensorType>(kernel.getFunctionType().getResult(output));
    return success(coversOnce(extents, type.getNumElements()));
  }

  /// From an element of the row to the next one. A part of one element has no step of its own.
  std::optional<int64_t> stepOfRow(ArrayRef<Part> parts) {
    for (const Part &part : parts)
      if (part.dim && nest.space.size(*part.dim) > 1)
        return IndexSpace::coefficient(part.store->index, *part.dim);
    return parts.size() > 1 ? constantOf(parts[1].store->index) : 1;
  }

  /// The value of an affine expression where all dimensions are 0; none where it divides.
  std::optional<int64_t> constantOf(AffineExpr index) {
    llvm::SmallDenseMap<unsigned, AffineExpr> zeros;
    for (unsigned dim = 0; dim < IndexSpace::kMaxDims; ++dim) {
      if (!(IndexSpace::dimsOf(index) & dimBit(dim)))
        continue;
      if (!IndexSpace::coefficient(index, dim))
        return std::nullopt;
      zeros[dim] = nest.space.constant(0);
    }
    auto constant = dyn_cast<AffineConstantExpr>(nest.space.replace(index, zeros));
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  }

  /// Units are all positions of the outer loops, of the blocks of a row and of the tiles.
  LogicalResult verifyUnits() {
    int64_t units = nest.blocks;
    for (unsigned dim : nest.outer)
      units *= nest.space.size(dim);
    bool fits = true;
    if (nest.tile) {
      units *= nest.tile->count;
      fits &= nest.tile->count == llvm::divideCeil(nest.space.size(nest.tile->dim), nest.tile->size);
    }
    if (nest.blocks > 1 || nest.blockSize > 0)
      fits &= nest.segments.size() == 1 && nest.segments[0].dim &&
              nest.blocks == llvm::divideCeil(nest.space.size(*nest.segments[0].dim), nest.blockSize);
    if (nest.rowBlocks)
      fits &= nest.space.size(nest.rowBlocks->dim) % nest.rowBlocks->size == 0;
    if (!fits || units != nest.units)
      return kernel.emitOpError("is planned with ")
             << nest.units << " units of work, but its loops have another number";
    return success();
  }

  /// A load under no condition stays inside of its argument. Emitters clamp or mask the index of a load under one.
  LogicalResult verifyLoads() {
    SmallVector<const Expr *> pending;
    for (const Nest::Segment &segment : nest.segments)
      for (const Nest::Store &store : segment.stores)
        pending.push_back(store.value);
    for (const Nest::Store &store : nest.rowStores)
      pending.push_back(store.value);
    llvm::DenseSet<const Expr *> seen;
    while (!pending.empty()) {
      const Expr *expr = pending.pop_back_val();
      if (!seen.insert(expr).second || expr->kind == Expr::Kind::Choose)
        continue;
      llvm::append_range(pending, expr->operands);
      if (expr->kind != Expr::Kind::Load)
        continue;
      auto [low, high] = nest.space.range(expr->index);
      auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[expr->argument]);
      if (low < 0 || high >= type.getNumElements())
        return kernel.emitOpError("is planned with reads of elements ")
               << low << " to " << high << " of argument " << expr->argument << ", which has " << type.getNumElements();
    }
    return success();
  }

  const Nest &nest;
  func::FuncOp kernel;
  SmallVector<unsigned> loops; // of units
};

} // namespace

LogicalResult bowline::codegen::verifyNests(ArrayRef<std::unique_ptr<Nest>> nests, func::FuncOp kernel) {
  SmallVector<unsigned> written;
  for (const std::unique_ptr<Nest> &nest : nests)
    if (failed(NestVerifier(*nest, kernel).run(written)))
      return failure();
  for (unsigned output = 0; output < kernel.getFunctionType().getNumResults(); ++output)
    if (llvm::count(written, output) != 1)
      return kernel.emitOpError("is planned with loops that do not write result ") << output << " exactly once";
  return success();
}
