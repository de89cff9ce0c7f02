//===- FoldTransposes.cpp - Contractions read transposed operands where they are
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions. SPDX: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;
using bowline::graph::DotGeneralOp, bowline::graph::TransposeOp;

/// Dimensions of the transpose's result as dimensions of its input.
static SmallVector<int64_t> throughTranspose(TransposeOp transpose, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [&](int64_t dim) { return transpose.getPerm()[dim]; });
}

/// The result lists free dimensions in the order in which the operand has them, so that order must stay.
static TransposeOp foldable(Value operand, ArrayRef<int64_t> free) {
  auto transpose = operand.getDefiningOp<TransposeOp>();
  return transpose && llvm::is_sorted(throughTranspose(transpose, free)) ? transpose : TransposeOp();
}

struct FoldTransposes : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    TransposeOp lhs = foldable(dot.getLhs(), dot.getLhsFree()), rhs = foldable(dot.getRhs(), dot.getRhsFree());
    if (!lhs && !rhs)
      return rewriter.notifyMatchFailure(dot, "no operand is a transpose that keeps the order of free dimensions");
    auto dims = [](TransposeOp fold, ArrayRef<int64_t> dims) {
      return fold ? throughTranspose(fold, dims) : llvm::to_vector(dims);
    };
    rewriter.replaceOpWithNewOp<DotGeneralOp>(
        dot, lhs ? lhs.getInput() : dot.getLhs(), rhs ? rhs.getInput() : dot.getRhs(), dims(lhs, dot.getLhsBatch()),
        dims(rhs, dot.getRhsBatch()), dims(lhs, dot.getLhsContract()), dims(rhs, dot.getRhsContract()));
    return success();
  }
};

struct FoldTransposesPass : PassWrapper<FoldTransposesPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldTransposesPass)
  StringRef getArgument() const override { return "fold-transposes"; }
  StringRef getDescription() const override { return "Let contractions read transposed operands where they are"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldTransposes>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FoldTransposes", LLVM_VERSION_STRING,
          [] { PassRegistration<FoldTransposesPass>(); }};
}
