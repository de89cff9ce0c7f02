//===- Tile.cpp - Nests that read in another order than they write
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

/// The size of a transposed tile in elements. Its 32 columns are, in f32, two cache lines of each row that is written,
/// which memory transfers as a pair. With 1024 rows, most prefetched lines belong to the same tile.
static constexpr int64_t kTransposedRows = 1024, kTransposedColumns = 32;

/// Rows of a page or more need no prefetches: the hardware follows each of them as a stream.
static constexpr int64_t kMaxRowBytes = 4096;

/// The limits of a block of Nest::RowBlocks: its positions, and the bytes that it reads. The second-level cache holds a
/// block together with the next one, which is prefetched meanwhile.
static constexpr int64_t kMaxBlockRows = 8, kMaxBlockBytes = 64 << 10;

/// How many rows ahead scattered rows are prefetched: kRowsAhead without row blocks, with them kMinRowsAhead, rounded
/// up to whole blocks.
static constexpr int64_t kRowsAhead = 16, kMinRowsAhead = 4;

/// Transposing squares with a shorter side is no faster than gathering their elements.
static constexpr int64_t kMinSquare = 4;

/// The largest number of loads of one nest that are transposed.
static constexpr size_t kMaxTransposed = 4;

namespace {

class TileChooser {
public:
  TileChooser(Nest &nest, func::FuncOp kernel, int64_t vectorLanes)
      : nest(nest), kernel(kernel), vectorLanes(vectorLanes) {}

  void run() {
    if (nest.rows || nest.segments.size() != 1 || !nest.rowStores.empty() || nest.outer.empty())
      return;
    inner = *nest.segments[0].dim;
    bool reduces = false;
    SmallVector<const Expr *> roots;
    for (const Nest::Store &store : nest.segments[0].stores)
      roots.push_back(store.value);
    forEachExpr(roots, [&](const Expr *expr) {
      reduces |= expr->kind == Expr::Kind::Reduce;
      if (expr->kind == Expr::Kind::Load)
        loads.push_back(expr);
    });
    if (!reduces && !transpose())
      findScattered();
  }

private:
  /// Gives the nest a tile if it has loads that are contiguous along an outer dimension and not along `inner`: squares
  /// of them are read row by row and transposed in registers. Returns whether it gave one.
  bool transpose() {
    std::optional<unsigned> along;
    Nest::Tile tile;
    tile.square = vectorLanes;
    for (const Expr *load : loads) {
      auto [low, high] = nest.space.range(load->index);
      auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[load->argument]);
      auto step = IndexSpace::coefficient(load->index, inner);
      if (low < 0 || high >= type.getNumElements() || !step || *step == 0 || *step == 1)
        continue;
      auto isDense = [&](unsigned dim) { return IndexSpace::coefficient(load->index, dim) == 1; };
      const unsigned *dense = llvm::find_if(nest.outer, isDense);
      if (dense == nest.outer.end() || *dense != along.value_or(*dense) || tile.transposed.size() == kMaxTransposed)
        continue;
      along = *dense;
      tile.transposed.push_back(load);
      tile.square = std::min<int64_t>(tile.square, vectorLanes * 32 / std::max(type.getElementTypeBitWidth(), 8U));
    }
    if (!along)
      return false;
    int64_t rows = nest.space.size(*along), columns = nest.space.size(inner);
    tile.square = std::min<int64_t>(tile.square, llvm::bit_floor<uint64_t>(std::min(rows, columns)));
    if (tile.square < kMinSquare)
      return false;
    nest.blockSize = std::min(columns, kTransposedColumns);
    nest.blocks = llvm::divideCeil(columns, nest.blockSize);
    add(tile, *along, kTransposedRows);
    return true;
  }

  /// Finds loads of short rows that are written one after the other, but lie far apart where they are read.
  void findScattered() {
    int64_t columns = nest.space.size(inner);
    for (const Expr *load : loads) {
      auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[load->argument]);
      auto step = IndexSpace::coefficient(load->index, nest.outer.back());
      int64_t rowBytes = columns * type.getElementTypeBitWidth() / 8;
      if (IndexSpace::coefficient(load->index, inner) == 1 && step && *step > columns && rowBytes < kMaxRowBytes) {
        if (nest.scattered.empty())
          chooseRowBlocks(load, rowBytes);
        nest.scattered.push_back(load);
      }
    }
  }

  /// Rows of `load` may follow each other in memory along another dimension than the rows that are written. The units
  /// then go through blocks of both dimensions, so that each block reads and writes several rows that are contiguous.
  void chooseRowBlocks(const Expr *load, int64_t rowBytes) {
    unsigned written = nest.outer.back(), read = written;
    for (unsigned dim : nest.outer)
      if (auto step = IndexSpace::coefficient(load->index, dim);
          step && *step > 0 && *step < *IndexSpace::coefficient(load->index, read))
        read = dim;
    unsigned longer = read, shorter = written;
    if (nest.space.size(longer) < nest.space.size(shorter))
      std::swap(longer, shorter);
    int64_t size = kMaxBlockRows, positions = nest.space.size(longer), across = nest.space.size(shorter) * rowBytes;
    while (positions % size != 0 || (size > 1 && size * across > kMaxBlockBytes))
      --size;
    if (nest.blocks > 1 || read == written || size * across > kMaxBlockBytes) {
      nest.aheadDim = written;
      nest.rowsAhead = kRowsAhead;
      return;
    }
    llvm::erase(nest.outer, longer);
    llvm::erase(nest.outer, shorter);
    nest.outer.push_back(longer);
    nest.outer.push_back(shorter);
    nest.rowBlocks = {longer, size};
    nest.aheadDim = longer;
    nest.rowsAhead = llvm::alignTo(kMinRowsAhead, size);
  }

  void add(Nest::Tile tile, unsigned dim, int64_t size) {
    tile.dim = dim;
    tile.size = std::min(size, nest.space.size(dim));
    tile.count = llvm::divideCeil(nest.space.size(dim), tile.size);
    nest.outer.erase(llvm::find(nest.outer, dim));
    nest.units = nest.blocks * tile.count;
    for (unsigned outer : nest.outer)
      nest.units *= nest.space.size(outer);
    nest.tile = std::move(tile);
  }

  Nest &nest;
  func::FuncOp kernel;
  int64_t vectorLanes;
  unsigned inner = 0;
  SmallVector<const Expr *> loads;
};

} // namespace

void bowline::codegen::chooseTile(Nest &nest, func::FuncOp kernel, int64_t vectorLanes) {
  TileChooser(nest, kernel, vectorLanes).run();
}
