//===- Nest.h - The loop nests of a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_NESTS_NEST_H
#define BOWLINE_COMPILER_CODEGEN_NESTS_NEST_H

#include "compiler/Codegen/Nests/KernelExpr.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>

namespace bowline::codegen {

inline constexpr int64_t kCacheLineBytes = 64;

/// Results that are computed in one pass of loops:
///
///   for unit in [0, units)                        // parallel; a row, a block of one, or a block of rows
///     store zeros in the partial sums             // with `rows` only
///     for row in `rows` or in the `tile`          // once without
///       reductions over a row, those that do not need each other in one loop
///       for each segment, for each vector of elements along `inner`
///         reductions over other dimensions, with a vector of accumulators
///         store the full results, add to the partial sums
///       store the results with one value per row
///
/// No unit depends on another unit, so that threads can divide the units in any way.
struct Nest {
  struct Store {
    unsigned output;
    mlir::AffineExpr index;
    const Expr *value;
    /// The store adds to the element of the result, which is a sum over the rows of the unit.
    bool isPartialSum = false;
    /// The value is stored non-temporally, because the result does not fit into the caches.
    bool isStreamed = false;
  };
  /// A range of the inner dimension in which every condition has one value throughout.
  struct Segment {
    /// The dimension that runs over the segment; absent if the nest has no inner dimension.
    std::optional<unsigned> dim;
    llvm::SmallVector<Store> stores;
  };

  /// A value that a reduction over the row computes and that the full results use again, kept in a buffer for one row.
  struct Kept {
    const Expr *inReduction, *inSegment;
    /// The dimension along the row, in `inReduction` and in `inSegment`.
    unsigned reducedDim, inner;
  };

  /// Positions of an additional dimension that a unit computes together, so that both loads
  /// and stores use whole cache lines.
  struct Tile {
    /// The dimension, which is not in `outer`; the positions per unit; and the number of units along the dimension.
    unsigned dim;
    int64_t size, count;
    /// Loads that are contiguous along `dim` instead of the inner dimension. The tile is computed in squares with sides
    /// of `square` elements, for which these loads are transposed in registers.
    llvm::SmallVector<const Expr *> transposed;
    int64_t square = 0;
  };

  /// Reorders units: they go through blocks of `size` positions of `dim`, which is in `outer`. In a block they go
  /// through all positions of the dimensions after `dim`, and for each of these through the positions of the block.
  struct RowBlocks {
    unsigned dim;
    int64_t size;
  };

  explicit Nest(mlir::MLIRContext *context) : space(context), builder(space) {}

  IndexSpace space;
  ExprBuilder builder;
  /// The outer dimensions, from the slowest to the fastest.
  llvm::SmallVector<unsigned> outer;
  llvm::SmallVector<Segment> segments;
  /// Stores of results that have one value per row.
  llvm::SmallVector<Store> rowStores;
  /// The dimension over the rows of one unit, if a unit computes column sums together with the summed values.
  std::optional<unsigned> rows;
  /// Stores zeros into the partial sums.
  Segment initial;
  std::optional<Kept> kept;
  std::optional<Tile> tile;
  /// Reductions across rows, all over the same dimensions, computed for all columns of a block at once so that few rows
  /// are read in long runs. Their values stay in a buffer until they are used.
  llvm::SmallVector<const Expr *> columnSums;
  std::optional<RowBlocks> rowBlocks;
  /// Loads of short rows that are far apart for consecutive units, so that hardware prefetchers miss the next row.
  /// Kernels prefetch the elements that they will access `rowsAhead` positions of `aheadDim` later.
  llvm::SmallVector<const Expr *> scattered;
  unsigned aheadDim = 0;
  int64_t rowsAhead = 0;
  /// The inner dimension is divided into `blocks` blocks of `blockSize` elements; the last one may be shorter.
  int64_t blocks = 1, blockSize = 0;
  /// At most this many consecutive blocks of a row are computed together, if one range of units has them.
  int64_t blocksTogether = 1;
  int64_t units = 1;
};

/// Returns whether the kernel leaves out rows of its results behind a count, which is one of its arguments. Rows are
/// then the slowest dimension of every nest.
bool leavesRowsOut(mlir::func::FuncOp kernel);

/// Divides the computation of `kernel` into nests, whose units are rows or blocks of rows. Fails with a diagnostic
/// where an operation is not supported.
llvm::FailureOr<llvm::SmallVector<std::unique_ptr<Nest>>> planNests(mlir::func::FuncOp kernel);

/// Proves from the affine maps of stores and loads that the nests write each element of each result of `kernel` exactly
/// once, and read no element outside an argument. Fails with a diagnostic otherwise, which is a bug of the planner.
llvm::LogicalResult verifyNests(llvm::ArrayRef<std::unique_ptr<Nest>> nests, mlir::func::FuncOp kernel);

/// Divides a nest of `planNests` further for a CPU with caches, few threads, and registers of `vectorLanes` f32: into
/// blocks of rows, tiles, column sums and kept rows.
void divideForCaches(Nest &nest, mlir::func::FuncOp kernel, int64_t vectorLanes);

/// If `nest` reads `kernel`'s arguments in another order than it writes results, gives it a
/// tile or finds its scattered loads.
void chooseTile(Nest &nest, mlir::func::FuncOp kernel, int64_t vectorLanes);

/// Finds the column sums of `nest`, which must have no blocks yet, and divides it into blocks of columns.
void chooseColumns(Nest &nest, int64_t vectorLanes);

/// Marks the stores of results of at least `leastBytes` as streamed, if rows and blocks of rows begin with a cache
/// line: lines are then written as a whole and need not be read first. Excludes results that may overwrite an argument
/// in place, whose lines were read anyway. `inPlace` is the result of findInPlacePairs.
void chooseStreams(llvm::ArrayRef<std::unique_ptr<Nest>> nests, mlir::func::FuncOp kernel,
                   llvm::ArrayRef<std::pair<int, int>> inPlace, int64_t leastBytes);

/// Returns how many elements a loop over `size` elements computes at once for `roots`.
int64_t chooseLanes(llvm::ArrayRef<const Expr *> roots, int64_t size, int64_t vectorLanes, bool isReduction);

/// Returns whether one of `reductions` has reductions as operands that mostly load elements contiguous along the
/// dimension that they reduce, a row. Vectors then lie along rows. All of `reductions` have the same dimensions.
bool reducesRowByRow(llvm::ArrayRef<const Expr *> reductions);

/// Returns the (output, input) pairs that may be the same memory: for every position, the same unit reads the input's
/// element for the last time before it writes the output's element.
llvm::SmallVector<std::pair<int, int>> findInPlacePairs(mlir::func::FuncOp kernel,
                                                        llvm::ArrayRef<std::unique_ptr<Nest>> nests);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_NESTS_NEST_H
