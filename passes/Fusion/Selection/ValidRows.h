//===- ValidRows.h - Rows that no operation reads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_SELECTION_VALIDROWS_H
#define BOWLINE_PASSES_FUSION_SELECTION_VALIDROWS_H

#include "dialects/Graph/GraphOps.h"

namespace bowline {

/// The inputs of which a row of the results needs the same row alone, where every result has such rows and code can
/// leave some of them out. None where a result needs other rows, or has one element per row.
std::optional<llvm::SmallVector<int64_t>> findRowInputs(graph::FusionOp fusion);

/// The count behind which no user of the operation's results reads rows; null where there is none, or it is not there
/// yet where the operation stands. Users are those that know a count: kernels for which the registry has one, and
/// fusions that leave rows out already.
mlir::Value findRowCount(mlir::Operation *op);

/// Whether the operand is the count behind which the operation of its use leaves rows out.
bool isRowCount(mlir::OpOperand &use);

/// Makes the fusion leave out the rows behind `count`, and ask for no rows of `rowInputs` behind it.
void leaveRowsOut(graph::FusionOp fusion, mlir::Value count, llvm::ArrayRef<int64_t> rowInputs);

/// The count behind which the kernel of the operation may leave rows out, in its form that does so, without a
/// change of results: no operation reads rows of the result, or the added rows are zeros there. Null where there is
/// none.
mlir::Value findKernelRowCount(graph::KernelModel op);

/// Puts a fusion that leaves out the rows behind `count` in the place of the operation. The registry has that form of
/// the kernel.
void leaveRowsOut(graph::KernelModel op, mlir::Value count);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_SELECTION_VALIDROWS_H
