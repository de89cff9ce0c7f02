//===- F16Conversion.h - f16 without instructions for it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_F16CONVERSION_H
#define BOWLINE_COMPILER_CODEGEN_F16CONVERSION_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bowline::codegen {

/// The f32 of an f16 or of a vector of them, in integers: LLVM would call a library for each. Exact.
mlir::Value widenF16(mlir::ImplicitLocOpBuilder &b, mlir::Value half);

/// The reverse: to nearest even; infinity from 65520 on; a NaN stays one.
mlir::Value roundToF16(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_F16CONVERSION_H
