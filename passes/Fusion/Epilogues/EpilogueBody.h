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

/// Builds at `builder` the function `name` that computes the epilogue of `fusion`, which EpilogueFusion made. Its
/// arguments are the product [M, N] in f32 and the fusion's inputs other than the contraction's operands; its results
/// are the fusion's outputs. All dimensions of the product's rows are collapsed to M, those of its columns to N: each
/// tensor is [M, N], or it is [M], [N] or a scalar that the function broadcasts.
mlir::func::FuncOp buildEpilogueBody(mlir::OpBuilder &builder, llvm::StringRef name, graph::FusionOp fusion);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEBODY_H
