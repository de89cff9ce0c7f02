//===- TileLoops.cpp - Tiles, square by square
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/TileLoops.h"

using namespace mlir;
using namespace bowline::codegen;

void TileLoops::emitTile(Value tile, Blocks blocks) {
  scopes.insertHere();
  const Nest::Tile &plan = *frame.nest->tile;
  int64_t rows = frame.nest->space.size(plan.dim);
  Value from = arith::MulIOp::create(b, tile, b.constant(plan.size));
  Value to = arith::AddIOp::create(b, from, b.constant(plan.size));
  int64_t rest = rows % plan.square;
  scopes.emitLoop(plan.dim, from, arith::MinSIOp::create(b, to, b.constant(rows - rest)), plan.square, {},
                  [&](ValueRange) {
                    emitSquares(plan.square, blocks);
                    return SmallVector<Value>();
                  });
  if (rest)
    scopes.emitIf(tile, plan.count - 1,
                  [&] { scopes.emitOnce(plan.dim, b.constant(rows - rest), [&] { emitSquares(rest, blocks); }); });
}

void TileLoops::emitSquares(int64_t rows, Blocks blocks) {
  scopes.insertHere();
  const Nest::Tile &plan = *frame.nest->tile;
  unsigned inner = *frame.nest->segments[0].dim;
  int64_t columns = frame.nest->space.size(inner), rest = columns % plan.square;
  Value from = b.constant(0), to = b.constant(columns - rest);
  if (blocks) {
    from = arith::MulIOp::create(b, blocks.first, b.constant(frame.nest->blockSize));
    to = arith::MinSIOp::create(b, to, arith::MulIOp::create(b, blocks.end, b.constant(frame.nest->blockSize)));
  }
  scopes.emitLoop(inner, from, to, plan.square, {}, [&](ValueRange) {
    emitSquare(rows, plan.square);
    return SmallVector<Value>();
  });
  if (!rest)
    return;
  auto emitRest = [&] { scopes.emitOnce(inner, b.constant(columns - rest), [&] { emitSquare(rows, rest); }); };
  blocks ? scopes.emitIf(blocks.end, frame.nest->blocks, emitRest) : emitRest();
}

void TileLoops::emitSquare(int64_t rows, int64_t columns) {
  const Nest::Tile &plan = *frame.nest->tile;
  const Nest::Segment &segment = frame.nest->segments[0];
  Value firstRow = squares.transpose(rows, columns);
  indices.lanes = indices.firstLanes(*segment.dim, plan.square, columns);
  scopes.emitLoop(plan.dim, firstRow, arith::AddIOp::create(b, firstRow, b.constant(rows)), 1, {}, [&](ValueRange) {
    scopes.insertHere();
    for (const Nest::Store &target : segment.stores)
      if (!target.isStreamed)
        prefetches.prefetch(frame.output(target.output), target.index, plan.dim, kSquaresAhead * plan.square);
    values.emitStores(segment.stores);
    return SmallVector<Value>();
  });
  indices.lanes = {};
}
