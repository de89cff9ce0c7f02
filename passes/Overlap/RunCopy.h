//===- RunCopy.h - A copy of the commands of a segment in one run
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_RUNCOPY_H
#define BOWLINE_PASSES_OVERLAP_RUNCOPY_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/SymbolTable.h"

namespace bowline {

/// Puts a copy of the commands of `segment` to the beginning of `into`. Temporary buffers that every run of the segment
/// has for itself are copies too, so that they still share memory with buffers of others. No command is an event.
void copyRun(plan::SegmentOp segment, mlir::Block &into, mlir::SymbolTable &symbols);

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_RUNCOPY_H
