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

/// On a maximum: its result where an element is NaN does not matter.
inline constexpr llvm::StringLiteral kIgnoresNan = "ignores_nan";

/// Replaces activations, norms, rope and the loss in `block` by elementwise operations, reductions and movements. The
/// formulas do not overflow where their result does not.
void decomposeLayers(mlir::Block &block);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_DECOMPOSE_H
