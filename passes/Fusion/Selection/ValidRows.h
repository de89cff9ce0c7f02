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

/// The inputs that the fusion reads row by row: row r of the results depends only on row r of these. None unless every
/// result has such rows and generated code can skip some of them; none also if a row has a single element.
std::optional<llvm::SmallVector<int64_t>> findRowInputs(graph::FusionOp fusion);

/// The count from which on no user reads rows of the operation's results. All users must be kernels whose registry
/// entry has a count, or fusions that already skip rows. Null if they have no common count, or if the count is not
/// computed before the operation.
mlir::Value findRowCount(mlir::Operation *op);

/// Returns whether the operand is the count from which on its user skips rows.
bool isRowCount(mlir::OpOperand &use);

/// Makes the fusion skip rows from `count` on, in its results and in its inputs `rowInputs`.
void leaveRowsOut(graph::FusionOp fusion, mlir::Value count, llvm::ArrayRef<int64_t> rowInputs);

/// The count from which on the operation's kernel may skip rows without changing what other operations read, because
/// no operation reads these rows of the result, or because the rows that it adds up are zeros. Null if there is no such
/// count.
mlir::Value findKernelRowCount(graph::KernelModel op);

/// Replaces the operation by a fusion that skips rows from `count` on. The registry must have a form of the kernel with
/// a count.
void leaveRowsOut(graph::KernelModel op, mlir::Value count);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_SELECTION_VALIDROWS_H
