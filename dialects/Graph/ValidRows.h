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

/// The kernel operation in a fusion that has `valid_rows` and whose body is this operation alone; null for any other
/// fusion.
KernelModel kernelThatLeavesRowsOut(FusionOp fusion);

/// The count of an operation that zeroes its operand's rows from that count on; null for any other operation.
mlir::Value countOfZeroedRows(mlir::Operation *op);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_VALIDROWS_H
