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

/// Replaces what is computed from constants alone, anywhere inside of `root`, by its value, rounded as its type is: no
/// arithmetic but that of the types says what a constant of f32 is after a conversion from f64, and passes may compute
/// it.
void evaluateConstants(mlir::Operation *root);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_CONSTANTEVALUATION_H
