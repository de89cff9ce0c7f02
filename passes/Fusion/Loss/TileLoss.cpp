//===- TileLoss.cpp - Never hold the logits of all positions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Loss/LossTiling.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_TILELOSS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class TileLoss : public bowline::impl::TileLossBase<TileLoss> {
public:
  using TileLossBase::TileLossBase;

  void runOnProgram() override {
    SmallVector<graph::SoftmaxCrossEntropyOp> losses;
    // By name: LossTiling is of this loss.
    getOperation().walk([&](graph::SoftmaxCrossEntropyOp loss) { losses.push_back(loss); });
    for (graph::SoftmaxCrossEntropyOp loss : losses)
      if (auto tiling = LossTiling::match(loss))
        tile(*tiling, loss);
  }

private:
  void tile(LossTiling &tiling, graph::SoftmaxCrossEntropyOp loss) {
    int64_t fitting = tileBytes / tiling.bytesPerPosition();
    int64_t size = std::max<int64_t>({1, minPositions, fitting});
    int64_t tiles = llvm::divideCeil(tiling.positions(), size);
    int64_t rows = llvm::divideCeil(tiling.positions(), tiles);
    if (tiles == 1 && tiling.communicates())
      return;
    // One tile too: loss and gradient then stand side by side and become one kernel.
    if (tiles > 1)
      report(tiling, loss, tiles, rows);
    tiling.tile(tiles);
  }

  void report(const LossTiling &tiling, graph::SoftmaxCrossEntropyOp loss, int64_t tiles, int64_t rows) {
    remark::passed(loss.getLoc(), remark::RemarkOpts::name("TileLoss").category("fusion"))
        << llvm::formatv(
               "the loss is computed in {0} tiles of {1} positions: {2:F1} MiB of logits instead of {3:F1} MiB", tiles,
               rows, toMiB(rows * tiling.bytesPerPosition()), toMiB(tiling.positions() * tiling.bytesPerPosition()))
               .str();
  }

  static double toMiB(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
};

} // namespace
