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

/// Maps each receive of the roles to the send whose messages it receives, in the timelines of all entries: the n-th
/// receive on a channel gets the n-th message sent on it. Fails with a diagnostic where a message has no receive, or
/// where a receive gets no message, one of another microbatch, or messages of several sends.
llvm::FailureOr<llvm::DenseMap<mlir::Operation *, mlir::Operation *>>
pairMessages(llvm::ArrayRef<mlir::ModuleOp> roles);

/// Checks that entries of the roles call the functions of the whole program, or fragments of its microbatch, in its
/// order and once per microbatch, and that they read stashes for the microbatch for which these were written. Fails
/// with a diagnostic.
llvm::LogicalResult checkTimelines(llvm::ArrayRef<mlir::ModuleOp> roles, mlir::ModuleOp whole);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_TIMELINES_H
