//===- Decompose.h - Layers as elementwise operations and reductions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_DECOMPOSE_H
#define BOWLINE_COMPILER_CODEGEN_DECOMPOSE_H

#include "mlir/IR/Block.h"

namespace bowline::codegen {

/// Replaces the operations in `block` that have decompositions, those of layers, by elementwise operations, reductions
/// and operations that move elements.
void decomposeLayers(mlir::Block &block);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_DECOMPOSE_H
