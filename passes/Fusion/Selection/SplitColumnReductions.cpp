//===- SplitColumnReductions.cpp - Sum rows block by block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Fusion/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_SPLITCOLUMNREDUCTIONS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class SplitColumnReductions : public bowline::impl::SplitColumnReductionsBase<SplitColumnReductions> {
public:
  using SplitColumnReductionsBase::SplitColumnReductionsBase;

  void runOnProgram() override {
    SmallVector<graph::ReduceOp> sums;
    // By name: sums over rows are this operation, which others decompose into.
    getOperation().walk([&](graph::ReduceOp reduce) {
      if (isColumnSum(reduce) && !isa<graph::FusionOp>(reduce->getParentOp()))
        sums.push_back(reduce);
    });
    for (graph::ReduceOp sum : sums)
      split(sum);
  }

private:
  /// A sum over all dimensions but the last, such as the gradient of a value that was repeated along rows.
  static bool isColumnSum(graph::ReduceOp reduce) {
    RankedTensorType type = reduce.getInput().getType();
    return reduce.getKind() == graph::ReduceKind::Sum && type.getRank() > 1 && isa<FloatType>(type.getElementType()) &&
           llvm::equal(reduce.getDims(), llvm::seq<int64_t>(0, type.getRank() - 1));
  }

  /// Blocks of rows, and the rows of each; the rest of the rows is fewer than there are blocks.
  struct Blocks {
    int64_t count, rows;
  };

  /// Divides rows into enough blocks to keep processors busy, and few enough for their sums to be little beside the
  /// rows. If nearly as many blocks of equal size have all rows, these are chosen: they join the kernel that computes
  /// the rows.
  Blocks divide(int64_t rows) const {
    constexpr int64_t kNearly = 4;
    int64_t most = std::min<int64_t>(maxBlocks, rows / std::max<int64_t>(1, minRows));
    for (int64_t count = most; count > 1 && count * kNearly >= most; --count)
      if (rows % count == 0)
        return {count, rows / count};
    return most > 1 ? Blocks{most, rows / most} : Blocks{1, rows};
  }

  void split(graph::ReduceOp reduce) {
    RankedTensorType type = reduce.getInput().getType();
    int64_t width = type.getShape().back(), rows = type.getNumElements() / width;
    auto [count, blockRows] = divide(rows);
    if (count == 1)
      return;
    ImplicitLocOpBuilder b(reduce.getLoc(), reduce);
    Value input = reduce.getInput();
    // Sums of blocks are stored: not rounded to less than the statistics' precision.
    bool isNarrow = type.getElementTypeBitWidth() < 32;
    if (isNarrow)
      input = arith::ExtFOp::create(b, type.clone(b.getF32Type()), input);
    auto rowsType = cast<RankedTensorType>(input.getType()).clone({rows, width});
    int64_t inBlocks = count * blockRows;
    Value blocks = input, rest;
    if (inBlocks < rows) {
      Value all = type.getRank() == 2 ? input : graph::ReshapeOp::create(b, rowsType, input).getResult();
      auto part = [&](int64_t first, int64_t size) -> Value {
        return graph::SliceOp::create(b, all, ArrayRef<int64_t>{first, 0}, ArrayRef<int64_t>{size, width});
      };
      blocks = part(0, inBlocks);
      rest = sumOver(b, part(inBlocks, rows - inBlocks), 0);
    }
    blocks = graph::ReshapeOp::create(b, rowsType.clone({count, blockRows, width}), blocks);
    Value sum = sumOver(b, sumOver(b, blocks, 1), 0);
    if (rest)
      sum = arith::AddFOp::create(b, sum, rest);
    if (isNarrow)
      sum = arith::TruncFOp::create(b, reduce.getType(), sum);
    reduce.replaceAllUsesWith(sum);
    reduce.erase();
  }

  static Value sumOver(ImplicitLocOpBuilder &b, Value input, int64_t dim) {
    return graph::ReduceOp::create(b, graph::ReduceKind::Sum, input, ArrayRef<int64_t>{dim});
  }
};

} // namespace
