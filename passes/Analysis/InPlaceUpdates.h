//===- InPlaceUpdates.h - Values that operations change in place
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_INPLACEUPDATES_H
#define BOWLINE_PASSES_ANALYSIS_INPLACEUPDATES_H

#include "dialects/Graph/GraphOps.h"

namespace bowline {

/// Checks that each in-place update of the function (graph::InPlaceUpdate, or a call of a kernel with a read_write
/// argument) needs no copy. The updated operand must be a read of a variable or the result of another such update, and
/// the result must be written to that variable. Between the update and the write no operation may use the old value or
/// read the variable. Fails with a diagnostic at the operation.
llvm::LogicalResult verifyInPlaceUpdates(graph::FuncOp function);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_INPLACEUPDATES_H
