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
/// No unit's computation depends on another unit, so that threads can divide the units in any way.
struct Nest {
  struct Store {
    unsigned output;
    mlir::AffineExpr index;
    const Expr *value;
    /// The store adds the value to the result's element: the result is a sum over the rows of the unit.
    bool isPartialSum = false;
    /// The value is written by non-temporal stores, since the result would not fit in the caches.
    bool isStreamed = false;
  };
  /// A range of the inner dimension in which no condition changes.
  struct Segment {
    /// The dimension that runs over the segment; none if the nest has no inner dimension.
    std::optional<unsigned> dim;
    llvm::SmallVector<Store> stores;
  };

  /// A value that a reduction over the row computes and the full results need again: it is kept in a buffer of one row.
  struct Kept {
    const Expr *inReduction, *inSegment;
    /// The dimensions along the row in `inReduction` and in `inSegment`.
    unsigned reducedDim, inner;
  };

  /// Positions of one more dimension that a unit computes together, so that loads and stores both use whole cache lines
  /// at a time.
  struct Tile {
    /// The dimension, which has no place in `outer`, the positions of one unit, and the units along it.
    unsigned dim;
    int64_t size, count;
    /// Loads that are dense along `dim` rather than along the inner dimension: the tile is computed in squares of
    /// `square` elements a side, for which they are transposed in registers.
    llvm::SmallVector<const Expr *> transposed;
    int64_t square = 0;
  };

  /// Units go through blocks of `size` positions of `dim`, which is in `outer`: for each block through all positions of
  /// the dimensions behind `dim` there, and for each of these through the positions of the block.
  struct RowBlocks {
    unsigned dim;
    int64_t size;
  };

  explicit Nest(mlir::MLIRContext *context) : space(context), builder(space) {}

  IndexSpace space;
  ExprBuilder builder;
  /// The outer dimensions, the slowest first.
  llvm::SmallVector<unsigned> outer;
  llvm::SmallVector<Segment> segments;
  /// Stores of results with one value per row.
  llvm::SmallVector<Store> rowStores;
  /// The rows of one unit, one after the other, where a unit computes column sums together with the summed values.
  std::optional<unsigned> rows;
  /// Stores of zeros in the partial sums.
  Segment initial;
  std::optional<Kept> kept;
  std::optional<Tile> tile;
  /// Reductions across rows, over equal dimensions, that are made for all columns of a block at once, so that memory is
  /// read in long runs of few rows; their values are in a buffer until they are needed.
  llvm::SmallVector<const Expr *> columnSums;
  std::optional<RowBlocks> rowBlocks;
  /// Loads of short rows that lie far apart in units that follow each other, so that hardware prefetchers do not find
  /// the next one. Kernels prefetch the elements that they access `rowsAhead` positions of `aheadDim` later.
  llvm::SmallVector<const Expr *> scattered;
  unsigned aheadDim = 0;
  int64_t rowsAhead = 0;
  /// Blocks that the inner dimension is divided into, of `blockSize` elements each, the last one possibly shorter.
  int64_t blocks = 1, blockSize = 0;
  /// At most so many blocks of a row that follow each other are computed together, where one range of units has them.
  int64_t blocksTogether = 1;
  int64_t units = 1;
};

/// Whether the kernel leaves out rows of its results behind a count, which is one of its arguments. Then the rows are
/// the slowest dimension of every nest.
bool leavesRowsOut(mlir::func::FuncOp kernel);

/// Divides the computation of `kernel` into nests, whose units are rows or blocks of rows. Fails with a diagnostic
/// where an operation has no code generation.
llvm::FailureOr<llvm::SmallVector<std::unique_ptr<Nest>>> planNests(mlir::func::FuncOp kernel);

/// Proves from the affine maps of stores and loads that the nests write each element of each result of `kernel` once,
/// and read no element outside of an argument. Fails with a diagnostic otherwise, which is an error of the planner.
llvm::LogicalResult verifyNests(llvm::ArrayRef<std::unique_ptr<Nest>> nests, mlir::func::FuncOp kernel);

/// Divides a nest of `planNests` further for a processor with caches, few threads and registers of `vectorLanes` f32:
/// blocks of rows, tiles, column sums, rows that are kept.
void divideForCaches(Nest &nest, mlir::func::FuncOp kernel, int64_t vectorLanes);

/// Gives `nest` a tile or finds its scattered loads, where it reads `kernel`'s arguments in another order than it
/// writes results.
void chooseTile(Nest &nest, mlir::func::FuncOp kernel, int64_t vectorLanes);

/// Finds the column sums of `nest`, a nest without blocks, and divides it into blocks of columns.
void chooseColumns(Nest &nest, int64_t vectorLanes);

/// Marks the stores of results of `leastBytes` or more as streamed where rows, and blocks of them, begin with a cache
/// line: then lines are written whole, and need not be read first. Results that may overwrite an argument in place are
/// left out: their lines were read in any case. `inPlace` is the result of findInPlacePairs.
void chooseStreams(llvm::ArrayRef<std::unique_ptr<Nest>> nests, mlir::func::FuncOp kernel,
                   llvm::ArrayRef<std::pair<int, int>> inPlace, int64_t leastBytes);

/// How many elements are computed at once in a loop over `size` elements that computes `roots`.
int64_t chooseLanes(llvm::ArrayRef<const Expr *> roots, int64_t size, int64_t vectorLanes, bool isReduction);

/// Whether `reductions`, over the same dimensions, are of reductions that are dense along a row each: then vectors lie
/// along the rows.
bool reducesRowByRow(llvm::ArrayRef<const Expr *> reductions);

/// (output, input) pairs that may be the same memory: every element of the input is last read before the output's
/// element at its place is written, by the same unit.
llvm::SmallVector<std::pair<int, int>> findInPlacePairs(mlir::func::FuncOp kernel,
                                                        llvm::ArrayRef<std::unique_ptr<Nest>> nests);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_NESTS_NEST_H
