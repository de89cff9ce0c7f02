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

/// Converts f16 values, or a vector of them, to f32 with integer operations, because LLVM would call a library. Exact.
mlir::Value widenF16(mlir::ImplicitLocOpBuilder &b, mlir::Value half);

/// Converts f32 to f16: rounds to nearest even, gives infinity from 65520 on, and keeps NaN.
mlir::Value roundToF16(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_F16CONVERSION_H
