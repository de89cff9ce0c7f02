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

/// Inserts clones of the commands of `segment` at the beginning of `into`. Also clones temporary buffers whose values
/// stay in one run, so that these can still share memory. The segment must have no signals or waits.
void copyRun(plan::SegmentOp segment, mlir::Block &into, mlir::SymbolTable &symbols);

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_RUNCOPY_H
