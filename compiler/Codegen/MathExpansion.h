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

/// Emits `op`, a `math` operation, on scalars or vectors. f32 exp, log, tanh, erf and rsqrt become polynomials
/// for all inputs, including infinities, NaN and, on threads that keep them, subnormal numbers. Their tested
/// errors in units in the last place are at most: exp 1.25, log 1, tanh 2.5, erf 2 (2.75 without fused
/// multiply-add), rsqrt 1.5. sqrt, rounding functions and sign changes are exact. An f32 erf marked
/// graph::kBesideOne has an absolute error below 2.5e-7 and never exceeds one, but small results have a large
/// relative error. sin, cos, pow and all f64 functions call the C library's f64 function per element. Returns
/// null if the operation has no expansion.
mlir::Value expandMath(mlir::ImplicitLocOpBuilder &builder, const TargetCpu &cpu, mlir::Operation *op,
                       mlir::ValueRange operands);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_MATHEXPANSION_H
