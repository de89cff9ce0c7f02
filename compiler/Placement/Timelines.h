//===- Timelines.h - Order of the calls and messages of entries
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_TIMELINES_H
#define BOWLINE_COMPILER_PLACEMENT_TIMELINES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// Pairs each receive of the roles with the send that it gets messages of, along the timelines of all entries: the n-th
/// message of a channel is the n-th that the other rank receives from it. Fails with a diagnostic at a receive that
/// gets none, gets one of another microbatch than it runs for, or gets messages of several sends.
llvm::FailureOr<llvm::DenseMap<mlir::Operation *, mlir::Operation *>>
pairMessages(llvm::ArrayRef<mlir::ModuleOp> roles);

/// Whether entries of the roles call the functions of the whole program, or fragments of its microbatch, in its order
/// and once for each microbatch, and read stashes for the microbatch for which they were written. Fails with a
/// diagnostic.
llvm::LogicalResult checkTimelines(llvm::ArrayRef<mlir::ModuleOp> roles, mlir::ModuleOp whole);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_TIMELINES_H
