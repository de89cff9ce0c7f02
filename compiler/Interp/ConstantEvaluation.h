//===- ConstantEvaluation.h - Constants as their types round them -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_CONSTANTEVALUATION_H
#define BOWLINE_COMPILER_INTERP_CONSTANTEVALUATION_H

#include "mlir/IR/Operation.h"

namespace bowline {

/// Folds operations inside `root` whose operands are all constants into constants, rounded as their types
/// require. Only the arithmetic of the types gives the constant that a conversion of f64 to f32 has, and
/// passes may compute such constants.
void evaluateConstants(mlir::Operation *root);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_CONSTANTEVALUATION_H
