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

  void runOnOperation() override {
    SmallVector<graph::ReduceOp> sums;
    getOperation().walk([&](graph::ReduceOp reduce) {
      if (isColumnSum(reduce))
        sums.push_back(reduce);
    });
    for (graph::ReduceOp sum : sums)
      split(sum);
  }

private:
  /// A sum over all dimensions but the last, as the gradient of what was repeated along rows is.
  static bool isColumnSum(graph::ReduceOp reduce) {
    RankedTensorType type = reduce.getInput().getType();
    return reduce.getKind() == graph::ReduceKind::Sum && type.getRank() > 1 && isa<FloatType>(type.getElementType()) &&
           llvm::equal(reduce.getDims(), llvm::seq<int64_t>(0, type.getRank() - 1));
  }

  /// The most blocks of equal size: enough to keep processors busy, few enough for their sums to be little beside the
  /// rows. 1 if the number of rows has no such divisor.
  int64_t blockCount(int64_t rows) const {
    for (int64_t count = std::min<int64_t>(maxBlocks, rows / std::max<int64_t>(1, minRows)); count > 1; --count)
      if (rows % count == 0)
        return count;
    return 1;
  }

  void split(graph::ReduceOp reduce) {
    RankedTensorType type = reduce.getInput().getType();
    int64_t width = type.getShape().back(), rows = type.getNumElements() / width, blocks = blockCount(rows);
    if (blocks == 1)
      return;
    ImplicitLocOpBuilder b(reduce.getLoc(), reduce);
    Value input = reduce.getInput();
    // Sums of blocks are stored: not rounded to less than the statistics' precision.
    bool isNarrow = type.getElementTypeBitWidth() < 32;
    if (isNarrow)
      input = arith::ExtFOp::create(b, type.clone(b.getF32Type()), input);
    auto blockType = cast<RankedTensorType>(input.getType()).clone({blocks, rows / blocks, width});
    Value partial = graph::ReduceOp::create(b, graph::ReduceKind::Sum, graph::ReshapeOp::create(b, blockType, input),
                                            ArrayRef<int64_t>{1});
    Value sum = graph::ReduceOp::create(b, graph::ReduceKind::Sum, partial, ArrayRef<int64_t>{0});
    if (isNarrow)
      sum = arith::TruncFOp::create(b, reduce.getType(), sum);
    reduce.replaceAllUsesWith(sum);
    reduce.erase();
  }
};

} // namespace
