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

/// Returns whether generated code may skip rows of results of these types. The tensors must have the same number of
/// rows, more than one, with several elements each, and elements that can be NaN, so that checks can find a program
/// that uses skipped rows.
bool haveRowsToLeaveOut(mlir::TypeRange types);

/// The diagnostic of verifiers for types for which haveRowsToLeaveOut is false.
inline constexpr llvm::StringLiteral kRowsToLeaveOut("leaves rows out, so that all its results must be floating-point "
                                                     "tensors with the same first dimension of 2 or more, "
                                                     "and with several elements in each row; leave 'rows' out");

} // namespace bowline

#endif // BOWLINE_DIALECTS_PROGRAM_VALIDROWS_H
