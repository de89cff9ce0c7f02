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

/// Checks that each operation of the function that changes an operand in place (graph::InPlaceUpdate, or a call of a
/// kernel with a read_write argument) can do so without a copy: the operand is the value read of a variable, or the
/// result of such an operation; that variable gets the result; and no operation uses the old value, or reads the
/// variable again, between the change and the write. Fails with a diagnostic at the operation.
llvm::LogicalResult verifyInPlaceUpdates(graph::FuncOp function);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_INPLACEUPDATES_H
