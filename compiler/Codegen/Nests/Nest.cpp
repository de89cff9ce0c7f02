//===- Nest.cpp - The loop nests of a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/Nest.h"
#include "compiler/Codegen/KernelCodegen.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <set>
#include <vector>

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

/// The number of elements of a block where blocks are independent: a few pages, enough work to hand to a thread.
static constexpr int64_t kBlockSize = 8192;

/// The largest number of bytes of a row that is kept on the stack (Nest::kept): part of the second-level cache, far
/// less than the stack of a thread.
static constexpr int64_t kMaxKeptBytes = 640 << 10;

/// A row that would have more segments is computed as one, with conditions.
static constexpr size_t kMaxSegments = 8;

int64_t bowline::codegen::chooseLanes(ArrayRef<const Expr *> roots, int64_t size, int64_t vectorLanes,
                                      bool isReduction) {
  // Several registers per value hide latency; too many spill.
  int64_t work = 0;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Compute)
      work += expr->op->getDialect()->getNamespace() == "math" ? 8 : 1;
  });
  int64_t registers = work <= 6 ? 4 : work <= 48 ? 2 : 1;
  if (!isReduction && registers == 4)
    registers = 2;
  int64_t lanes = std::min<int64_t>(registers * vectorLanes, llvm::PowerOf2Ceil(size));
  return std::max<int64_t>(lanes, 1);
}

/// Whether most loads in reductions that depend on `inner` are contiguous along the reduced dimension rather than along
/// `inner`.
static bool readsAlongRows(ArrayRef<const Expr *> roots, unsigned inner) {
  int64_t innerVotes = 0, rowVotes = 0;
  forEachExpr(roots, [&](const Expr *reduce) {
    if (reduce->kind != Expr::Kind::Reduce || !(reduce->freeDims & dimBit(inner)))
      return;
    forEachExpr(reduce->operands, [&](const Expr *load) {
      if (load->kind != Expr::Kind::Load)
        return;
      innerVotes += IndexSpace::coefficient(load->index, inner) == 1;
      rowVotes += IndexSpace::coefficient(load->index, reduce->dims.back()) == 1;
    });
  });
  return rowVotes > innerVotes;
}

bool bowline::codegen::reducesRowByRow(ArrayRef<const Expr *> reductions) {
  return llvm::any_of(reductions,
                      [](const Expr *reduce) { return readsAlongRows(reduce->operands, reduce->dims.back()); });
}

namespace {

class NestPlanner {
public:
  explicit NestPlanner(func::FuncOp kernel) : kernel(kernel) {}

  FailureOr<SmallVector<std::unique_ptr<Nest>>> run() {
    Operation *terminator = kernel.getBody().front().getTerminator();
    SmallVector<unsigned> order(terminator->getNumOperands());
    std::iota(order.begin(), order.end(), 0);
    // Full results come first, so that results with one value per row can join their nests.
    llvm::stable_sort(order, [&](unsigned lhs, unsigned rhs) {
      return graph::tensorType(terminator->getOperand(lhs)).getShape().size() >
             graph::tensorType(terminator->getOperand(rhs)).getShape().size();
    });
    for (unsigned output : order)
      if (failed(placeColumnSums(output, terminator->getOperands())))
        return failure();
    for (unsigned output : order)
      if (!placed.count(output) && failed(place(output, terminator->getOperand(output))))
        return failure();
    SmallVector<std::unique_ptr<Nest>> result;
    for (Draft &draft : drafts) {
      finish(draft);
      if (draft.nest->space.isExhausted())
        return kernel.emitOpError("needs more than ") << IndexSpace::kMaxDims << " loop dimensions";
      result.push_back(std::move(draft.nest));
    }
    return result;
  }

private:
  struct Draft {
    std::unique_ptr<Nest> nest;
    SmallVector<int64_t> shape;
    /// The loop dimension of each dimension of `shape`.
    SmallVector<unsigned> dims;
    SmallVector<Nest::Store> full, perRow;
    bool rowsOnly = false;
    /// `dims` are blocks, rows of a block and columns; partial sums over the rows are among the full results.
    bool sumsColumns = false;
  };

  SmallVector<AffineExpr> indexOf(Draft &draft, size_t rank) {
    SmallVector<AffineExpr> index;
    for (unsigned dim : ArrayRef(draft.dims).take_front(rank))
      index.push_back(draft.nest->space.dim(dim));
    return index;
  }

  /// The operation that defines `value`, if it is the first stage of a sum over rows, from [blocks, rows, columns] to
  /// [blocks, columns]; null otherwise.
  static graph::ReduceOp columnSums(Value value) {
    // By name: other operations decompose into reductions and movements, which code generation knows one by one.
    auto reduce = value.getDefiningOp<graph::ReduceOp>();
    if (!reduce || reduce.getKind() != graph::ReduceKind::Sum || reduce.getDims() != ArrayRef<int64_t>{1})
      return {};
    ArrayRef<int64_t> shape = graph::tensorType(reduce.getInput()).getShape();
    Type element = getElementTypeOrSelf(value.getType());
    bool fits = shape.size() == 3 && shape[1] > 1 && shape[2] > 1 && (element.isF32() || element.isF64());
    return fits ? reduce : graph::ReduceOp();
  }

  /// Puts the column sums `output`, others over equal blocks and the results that their rows are made with in one nest,
  /// where that saves a pass over memory.
  LogicalResult placeColumnSums(unsigned output, ValueRange results) {
    graph::ReduceOp first = columnSums(results[output]);
    if (!first || placed.count(output))
      return success();
    ArrayRef<int64_t> shape = graph::tensorType(first.getInput()).getShape(), rowShape = shape;
    // By name: the reason is that of columnSums().
    if (auto reshape = first.getInput().getDefiningOp<graph::ReshapeOp>())
      if (ArrayRef<int64_t> before = graph::tensorType(reshape.getInput()).getShape();
          !before.empty() && before.back() == shape.back())
        rowShape = before;

    Draft draft;
    draft.nest = std::make_unique<Nest>(kernel.getContext());
    draft.shape = llvm::to_vector(shape);
    draft.sumsColumns = true;
    IndexSpace &space = draft.nest->space;
    for (int64_t size : shape)
      draft.dims.push_back(space.addDim(size));
    SmallVector<AffineExpr> point = indexOf(draft, 3), rowOfPoint{point[0], point[1]},
                            columnOfBlock{point[0], point[2]};
    SmallVector<unsigned> members;
    bool saves = false;
    for (auto [i, result] : llvm::enumerate(results)) {
      if (placed.count(i))
        continue;
      ArrayRef<int64_t> resultShape = graph::tensorType(result).getShape();
      graph::ReduceOp sums = columnSums(result);
      bool isSum = sums && graph::tensorType(sums.getInput()).getShape() == shape;
      bool isFull = !isSum && (resultShape == rowShape || resultShape == shape);
      bool isPerRow = !isSum && !isFull && resultShape == rowShape.drop_back();
      if (!isSum && !isFull && !isPerRow)
        continue;
      Value source = isSum ? sums.getInput() : result;
      const Expr *value = draft.nest->builder.elementOf(
          source, isPerRow ? space.reshape(rowOfPoint, shape.take_front(2), resultShape)
                           : space.reshape(point, shape, graph::tensorType(source).getShape()));
      if (!value)
        return failure();
      unsigned number = i;
      AffineExpr index = isSum      ? space.linearize(columnOfBlock, resultShape)
                         : isPerRow ? space.linearize(rowOfPoint, shape.take_front(2))
                                    : space.linearize(point, shape);
      Nest::Store store{number, index, value, isSum};
      if (isPerRow && !reducesRows(draft, store))
        continue;
      saves |= !isSum || value->reduceDepth > 0;
      (isPerRow ? draft.perRow : draft.full).push_back(store);
      members.push_back(number);
    }
    // If nothing else needs the rows, the sums are faster in a nest of their own, with a block of columns in registers.
    if (!saves)
      return success();
    placed.insert(members.begin(), members.end());
    drafts.push_back(std::move(draft));
    return success();
  }

  LogicalResult place(unsigned output, Value value) {
    ArrayRef<int64_t> shape = graph::tensorType(value).getShape();
    auto storeIn = [&](Draft &draft) -> FailureOr<Nest::Store> {
      SmallVector<AffineExpr> index = indexOf(draft, shape.size());
      const Expr *expr = draft.nest->builder.elementOf(value, index);
      if (!expr)
        return failure();
      return Nest::Store{output, draft.nest->space.linearize(index, shape), expr};
    };
    for (Draft &draft : drafts) {
      if (draft.sumsColumns)
        continue;
      bool isFull = shape == ArrayRef(draft.shape);
      bool isPerRow = !draft.rowsOnly && !draft.shape.empty() && shape == ArrayRef(draft.shape).drop_back();
      if (!isFull && !isPerRow)
        continue;
      auto store = storeIn(draft);
      if (failed(store))
        return failure();
      if (isFull) {
        if (prefersRows(draft, *store) != draft.rowsOnly)
          continue;
        draft.full.push_back(*store);
        return success();
      }
      // A result without reductions, or with one across rows, is faster in a nest of its own, with vectors of it.
      if (!reducesRows(draft, *store))
        continue;
      draft.perRow.push_back(*store);
      return success();
    }
    Draft draft;
    draft.nest = std::make_unique<Nest>(kernel.getContext());
    draft.shape = llvm::to_vector(shape);
    for (int64_t size : shape)
      draft.dims.push_back(draft.nest->space.addDim(size));
    auto store = storeIn(draft);
    if (failed(store))
      return failure();
    draft.full.push_back(*store);
    draft.rowsOnly = prefersRows(draft, *store);
    drafts.push_back(std::move(draft));
    return success();
  }

  static std::optional<unsigned> innerDim(const Draft &draft) {
    for (unsigned dim : llvm::reverse(draft.dims))
      if (draft.nest->space.size(dim) > 1)
        return dim;
    return std::nullopt;
  }

  /// Whether the store's reductions are contiguous along the reduced dimension rather than the result's last one.
  static bool prefersRows(const Draft &draft, const Nest::Store &store) {
    auto inner = innerDim(draft);
    if (!inner)
      return true;
    return readsAlongRows(store.value, *inner);
  }

  static bool reducesRows(const Draft &draft, const Nest::Store &store) {
    bool hasReduction = false, isDense = true;
    forEachExpr(store.value, [&](const Expr *reduce) {
      if (reduce->kind != Expr::Kind::Reduce)
        return;
      hasReduction = true;
      forEachExpr(reduce->operands, [&](const Expr *load) {
        if (load->kind == Expr::Kind::Load && load->freeDims & dimBit(reduce->dims.back()))
          isDense &= IndexSpace::coefficient(load->index, reduce->dims.back()) == 1;
      });
    });
    return hasReduction && isDense;
  }

  /// Merges adjacent dimensions where every index depends on them as on one dimension.
  void mergeDims(Draft &draft) {
    Nest &nest = *draft.nest;
    SmallVector<const Expr *> roots;
    for (Nest::Store &store : llvm::concat<Nest::Store>(draft.full, draft.perRow))
      roots.push_back(store.value);
    llvm::erase_if(draft.dims, [&](unsigned dim) { return nest.space.size(dim) == 1; });
    for (size_t i = draft.dims.size(), first = leavesRowsOut(kernel) ? 2 : 1; i-- > first;) {
      unsigned outer = draft.dims[i - 1], inner = draft.dims[i];
      bool canMerge = canMergeDims(roots, nest.space, outer, inner);
      for (Nest::Store &store : llvm::concat<Nest::Store>(draft.full, draft.perRow))
        canMerge &= canMergeDims(store.index, nest.space, outer, inner);
      if (!canMerge)
        continue;
      unsigned merged = nest.space.addDim(nest.space.size(outer) * nest.space.size(inner));
      llvm::SmallDenseMap<unsigned, AffineExpr> replacements;
      replacements[outer] = nest.space.constant(0);
      replacements[inner] = nest.space.dim(merged);
      roots.clear();
      for (Nest::Store &store : llvm::concat<Nest::Store>(draft.full, draft.perRow)) {
        store.index = nest.space.replace(store.index, replacements);
        store.value = nest.builder.replace(store.value, replacements);
        roots.push_back(store.value);
      }
      draft.dims[i - 1] = merged;
      draft.dims.erase(draft.dims.begin() + i);
    }
  }

  /// The indices of the inner dimension at which a condition changes, and 0; 0 alone where these are too many.
  static SmallVector<int64_t> segmentStarts(const Draft &draft, unsigned inner) {
    std::set<int64_t> starts{0};
    int64_t size = draft.nest->space.size(inner);
    AffineExpr dim = draft.nest->space.dim(inner);
    for (const Nest::Store &store : draft.full)
      forEachExpr(store.value, [&](const Expr *expr) {
        for (const graph::IndexBox &box : expr->boxes)
          for (const graph::IndexBound &bound : box) {
            auto shift =
                dyn_cast<AffineConstantExpr>(draft.nest->space.add(bound.index, draft.nest->space.scale(dim, -1)));
            if (!shift)
              continue;
            for (int64_t edge : {bound.low - shift.getValue(), bound.high - shift.getValue()})
              if (edge > 0 && edge < size)
                starts.insert(edge);
          }
      });
    if (starts.size() > kMaxSegments)
      return {0};
    return llvm::to_vector(starts);
  }

  void finish(Draft &draft) {
    Nest &nest = *draft.nest;
    if (draft.sumsColumns)
      nest.rows = draft.dims[1];
    else
      mergeDims(draft);
    auto inner = draft.rowsOnly ? std::nullopt : innerDim(draft);
    nest.rowStores = draft.perRow;
    for (unsigned dim : draft.dims)
      if (dim != inner && dim != nest.rows) {
        nest.outer.push_back(dim);
        nest.units *= nest.space.size(dim);
      }
    if (!inner) {
      llvm::append_range(nest.rowStores, draft.full);
      return;
    }
    if (nest.rows)
      nest.initial = initialSums(draft, *inner);
    int64_t size = nest.space.size(*inner);
    SmallVector<int64_t> starts = segmentStarts(draft, *inner);
    for (auto [i, start] : llvm::enumerate(starts)) {
      Nest::Segment segment{inner, draft.full};
      if (starts.size() > 1) {
        segment.dim = nest.space.addDim((i + 1 < starts.size() ? starts[i + 1] : size) - start);
        llvm::SmallDenseMap<unsigned, AffineExpr> replacements;
        replacements[*inner] = nest.space.add(nest.space.dim(*segment.dim), nest.space.constant(start));
        for (Nest::Store &store : segment.stores) {
          store.index = nest.space.replace(store.index, replacements);
          store.value = nest.builder.replace(store.value, replacements);
        }
      }
      nest.segments.push_back(std::move(segment));
    }
  }

  static Nest::Segment initialSums(Draft &draft, unsigned inner) {
    Nest::Segment zeros{inner, {}};
    for (const Nest::Store &store : draft.full)
      if (store.isPartialSum)
        zeros.stores.push_back({store.output, store.index, draft.nest->builder.zero(store.value->type)});
    return zeros;
  }

  func::FuncOp kernel;
  std::vector<Draft> drafts;
  llvm::SmallDenseSet<unsigned> placed;
};

} // namespace

/// The most expensive value that a reduction over the row and the results share; loads are cheap enough to repeat.
static std::optional<Nest::Kept> findKept(Nest &nest) {
  if (nest.segments.size() != 1 || nest.blocks > 1)
    return std::nullopt;
  const Nest::Segment &segment = nest.segments[0];
  unsigned inner = *segment.dim;
  DimSet bound = nest.rows ? dimBit(*nest.rows) : 0;
  for (unsigned dim : nest.outer)
    bound |= dimBit(dim);
  llvm::DenseSet<const Expr *> inSegment;
  SmallVector<const Expr *> roots, reductions;
  for (const Nest::Store &store : llvm::concat<const Nest::Store>(segment.stores, nest.rowStores))
    roots.push_back(store.value);
  forEachExpr(roots, [&](const Expr *expr) {
    inSegment.insert(expr);
    if (expr->kind == Expr::Kind::Reduce && expr->dims.size() == 1 && !(expr->freeDims & ~bound) &&
        nest.space.size(expr->dims[0]) == nest.space.size(inner))
      reductions.push_back(expr);
  });
  std::optional<Nest::Kept> kept;
  for (const Expr *reduce : reductions)
    forEachExpr(reduce->operands, [&](const Expr *expr) {
      unsigned dim = reduce->dims[0];
      bool isExpensive = expr->kind == Expr::Kind::Compute && isa<math::MathDialect>(expr->op->getDialect());
      if (!isExpensive || !expr->type.isF32() || !(expr->freeDims & dimBit(dim)) ||
          expr->freeDims & ~(bound | dimBit(dim)) || nest.space.size(inner) * 4 > kMaxKeptBytes)
        return;
      llvm::SmallDenseMap<unsigned, AffineExpr> replacements;
      replacements[dim] = nest.space.dim(inner);
      const Expr *again = nest.builder.replace(expr, replacements);
      // Operands are visited before their users, so that the last match contains the others.
      if (inSegment.contains(again))
        kept = Nest::Kept{expr, again, dim, inner};
    });
  return kept;
}

/// Divides rows into blocks, which become units of their own, unless a reduction runs along the row.
static void divideInner(Nest &nest, int64_t vectorLanes) {
  if (nest.rows || nest.segments.size() > 1 || !nest.rowStores.empty())
    return;
  unsigned inner = *nest.segments[0].dim;
  SmallVector<const Expr *> roots;
  for (Nest::Store &store : nest.segments[0].stores)
    roots.push_back(store.value);
  bool reducesRow = false, reducesOthers = false;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Reduce)
      (expr->freeDims & dimBit(inner) ? reducesOthers : reducesRow) = true;
  });
  int64_t size = nest.space.size(inner);
  int64_t blockSize = reducesOthers ? chooseLanes(roots, size, vectorLanes, true) : kBlockSize;
  if (reducesRow || size <= blockSize || (!reducesOthers && !nest.outer.empty() && size < 2 * blockSize))
    return;
  nest.blockSize = blockSize;
  nest.blocks = llvm::divideCeil(size, blockSize);
  nest.units *= nest.blocks;
}

bool bowline::codegen::leavesRowsOut(func::FuncOp kernel) { return kernel->hasAttr(kRowCountAttr); }

FailureOr<SmallVector<std::unique_ptr<Nest>>> bowline::codegen::planNests(func::FuncOp kernel) {
  return NestPlanner(kernel).run();
}

void bowline::codegen::divideForCaches(Nest &nest, func::FuncOp kernel, int64_t vectorLanes) {
  if (nest.segments.empty())
    return;
  // Tiles have several rows.
  bool hasTiles = !leavesRowsOut(kernel);
  if (hasTiles)
    chooseColumns(nest, vectorLanes);
  if (nest.columnSums.empty())
    divideInner(nest, vectorLanes);
  if (hasTiles)
    chooseTile(nest, kernel, vectorLanes);
  nest.kept = findKept(nest);
}
