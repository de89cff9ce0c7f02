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

/// The epilogue of a library that `config`, of a registered kernel, names; null where it names none that there is.
const kernels::ProductEpilogue *libraryEpilogueOf(mlir::DictionaryAttr config);

/// Builds the operations of `epilogue`, which kernels/registry/product_epilogue.h defines, on `product`, [m, n] in f32.
/// `operands` are all that the kernel reads. Results are those of `use`, in its order. Fails without a diagnostic where
/// the arguments are not those of the epilogue.
llvm::LogicalResult buildProductEpilogue(mlir::ImplicitLocOpBuilder &builder, const graph::KernelUse &use,
                                         const kernels::ProductEpilogue &epilogue, mlir::Value product,
                                         mlir::ValueRange operands, llvm::SmallVectorImpl<mlir::Value> &results);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PRODUCTEPILOGUEBODY_H
