//===- TileLoops.h - Tiles, square by square
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_TILELOOPS_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_TILELOOPS_H

#include "compiler/Codegen/Loops/Squares.h"
#include "compiler/Codegen/Loops/VectorLoops.h"

namespace bowline::codegen {

/// Emits loops over the tiles of a nest, square by square; `Squares` transposes each square.
class TileLoops {
public:
  TileLoops(KernelFrame &frame, Scopes &scopes, Indices &indices, Values &values, Squares &squares,
            Prefetches &prefetches)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), values(values), squares(squares),
        prefetches(prefetches) {}

  /// Computes all rows of `tile`, or only `blocks` of each row.
  void emitTile(Value tile, Blocks blocks);

private:
  /// Computes `rows` rows, at most those of a square, square by square.
  void emitSquares(int64_t rows, Blocks blocks);
  void emitSquare(int64_t rows, int64_t columns);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  Values &values;
  Squares &squares;
  Prefetches &prefetches;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_TILELOOPS_H
