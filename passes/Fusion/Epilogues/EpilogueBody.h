//===- EpilogueBody.h - The function of a contraction's epilogue
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEBODY_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEBODY_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace bowline {

/// Builds at `builder` the function `name` of the operations that `fusion`, made by EpilogueFusion, does after its
/// contraction: (product [M, N] in f32, the fusion's inputs after the contraction's operands) to the fusion's outputs.
/// Dimensions that stand for rows of the product are one, and so are those that stand for columns: everything is [M,
/// N], or [M], [N] or one value that the function repeats.
mlir::func::FuncOp buildEpilogueBody(mlir::OpBuilder &builder, llvm::StringRef name, graph::FusionOp fusion);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEBODY_H
