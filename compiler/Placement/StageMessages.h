//===- StageMessages.h - Which receive gets what a stage sends
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_STAGEMESSAGES_H
#define BOWLINE_COMPILER_PLACEMENT_STAGEMESSAGES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// Pairs each receive of the roles with the send that it gets messages of, along the timelines of all entries: the n-th
/// message of a channel is the n-th that the other rank receives from it. Fails with a diagnostic at a receive that
/// gets none, gets one of another microbatch than it runs for, or gets messages of several sends.
llvm::FailureOr<llvm::DenseMap<mlir::Operation *, mlir::Operation *>>
pairMessages(llvm::ArrayRef<mlir::ModuleOp> roles);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_STAGEMESSAGES_H
