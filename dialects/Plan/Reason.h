//===- Reason.h - Why a command communicates
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PLAN_REASON_H
#define BOWLINE_DIALECTS_PLAN_REASON_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace bowline::plan {

/// A discardable string attribute of communication commands: the reason for the communication, for readers.
inline constexpr llvm::StringLiteral kReasonAttr = "plan.reason";

/// The reason of `command`; empty where it has none.
inline llvm::StringRef reasonOf(mlir::Operation *command) {
  auto reason = command->getAttrOfType<mlir::StringAttr>(kReasonAttr);
  return reason ? reason.getValue() : llvm::StringRef();
}

inline void setReason(mlir::Operation *command, llvm::StringRef reason) {
  if (!reason.empty())
    command->setAttr(kReasonAttr, mlir::StringAttr::get(command->getContext(), reason));
}

} // namespace bowline::plan

#endif // BOWLINE_DIALECTS_PLAN_REASON_H
