//===- ProductEpilogueBody.h - Graph operations of a library's product epilogue
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_PRODUCTEPILOGUEBODY_H
#define BOWLINE_COMPILER_INTERP_PRODUCTEPILOGUEBODY_H

#include "dialects/Graph/KernelCall.h"
#include "kernels/registry/product_epilogue.h"

namespace bowline {

/// Returns the library epilogue that `config` of a registered kernel names; null if it names no known one.
const kernels::ProductEpilogue *libraryEpilogueOf(mlir::DictionaryAttr config);

/// Builds the operations of `epilogue` (kernels/registry/product_epilogue.h) on `product`, [m, n] in f32. `operands`
/// are all arguments that the kernel reads. Sets `results` to those of `use`, in its order. Fails without a diagnostic
/// if the arguments do not match the epilogue.
llvm::LogicalResult buildProductEpilogue(mlir::ImplicitLocOpBuilder &builder, const graph::KernelUse &use,
                                         const kernels::ProductEpilogue &epilogue, mlir::Value product,
                                         mlir::ValueRange operands, llvm::SmallVectorImpl<mlir::Value> &results);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PRODUCTEPILOGUEBODY_H
