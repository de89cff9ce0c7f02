//===- ValidRows.h - Functions whose code leaves rows out
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_VALIDROWS_H
#define BOWLINE_DIALECTS_GRAPH_VALIDROWS_H

#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/StringRef.h"

namespace bowline::graph {

/// An attribute of a function that becomes a kernel: the numbers that the fusion that it was has in `valid_rows`.
inline constexpr llvm::StringLiteral kValidRows = "valid_rows";

/// The operation with a kernel of its own that the fusion is, where that leaves rows out; null where the fusion is none
/// or becomes code.
KernelModel kernelThatLeavesRowsOut(FusionOp fusion);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_VALIDROWS_H
