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

/// Replaces values that are computed from constants alone, anywhere inside of `root`, by constants, rounded as their
/// types are: no arithmetic but that of the types gives the constant of f32 after a conversion from f64, and passes may
/// compute it.
void evaluateConstants(mlir::Operation *root);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_CONSTANTEVALUATION_H
