//===- ValidRows.h - Results whose rows code can leave out
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PROGRAM_VALIDROWS_H
#define BOWLINE_DIALECTS_PROGRAM_VALIDROWS_H

#include "mlir/IR/TypeRange.h"

namespace bowline {

/// Returns whether code can leave out rows of all tensors of these types together, and checks find a program that uses
/// the rows nevertheless: equal numbers of rows, more than one, which are pieces of memory of several elements, and
/// elements that may be NaN.
bool haveRowsToLeaveOut(mlir::TypeRange types);

/// The message of verifiers for types that have no such rows.
inline constexpr llvm::StringLiteral kRowsToLeaveOut("leaves rows out, so that all its results must be floating-point "
                                                     "tensors with the same first dimension of 2 or more, "
                                                     "and with several elements in each row; leave 'rows' out");

} // namespace bowline

#endif // BOWLINE_DIALECTS_PROGRAM_VALIDROWS_H
