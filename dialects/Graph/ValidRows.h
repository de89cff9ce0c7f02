//===- ValidRows.h - Operations whose kernels leave rows out
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_VALIDROWS_H
#define BOWLINE_DIALECTS_GRAPH_VALIDROWS_H

#include "dialects/Graph/GraphOps.h"

namespace bowline::graph {

/// The operation with a kernel of its own that the fusion is, where that leaves rows out; null where the fusion is none
/// or becomes code.
KernelModel kernelThatLeavesRowsOut(FusionOp fusion);

/// The count behind which the operation makes the rows of its operand zeros; null where it does something else.
mlir::Value countOfZeroedRows(mlir::Operation *op);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_VALIDROWS_H
