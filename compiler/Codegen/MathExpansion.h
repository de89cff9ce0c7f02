//===- MathExpansion.h - Transcendental functions as vector arithmetic
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_MATHEXPANSION_H
#define BOWLINE_COMPILER_CODEGEN_MATHEXPANSION_H

#include "compiler/Codegen/TargetCpu.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bowline::codegen {

/// The result of `op`, a `math` operation, on scalars or vectors. f32 exp, log, tanh, erf and rsqrt become polynomials
/// over the whole range, infinities, NaN and, on a thread that keeps them, subnormal numbers included, within this many
/// units in the last place of the exact value (tested): exp 1.25, log 1, tanh 2.5, erf 2 (2.75 without fused
/// multiply-add), rsqrt 1.5. sqrt and the functions that only round or change signs are exact. An erf that is marked
/// graph::kBesideOne is, in f32, within 2.5e-7 of the exact value and never beyond one; relative to small results its
/// error is large. sin, cos and pow, and every function of f64, call the C library's f64 function per element. Null
/// where the operation has no expansion.
mlir::Value expandMath(mlir::ImplicitLocOpBuilder &builder, const TargetCpu &cpu, mlir::Operation *op,
                       mlir::ValueRange operands);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_MATHEXPANSION_H
