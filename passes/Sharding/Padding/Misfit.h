//===- Misfit.h - Messages about sizes that ranks do not divide
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_PADDING_MISFIT_H
#define BOWLINE_PASSES_SHARDING_PADDING_MISFIT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

namespace bowline {

/// Appends ` of 6 does not divide over the 4 ranks along "dp"`. The two parts of a divided axis are named as that axis.
void describeMisfit(mlir::InFlightDiagnostic &diagnostic, int64_t size, llvm::ArrayRef<mlir::StringAttr> axes,
                    int64_t ranks);

/// Appends `; the nearest valid sizes are 4 and 8`, which are multiples of \p multiple.
void suggestSizes(mlir::InFlightDiagnostic &diagnostic, int64_t size, int64_t multiple);

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PADDING_MISFIT_H
