//===- FileAttributes.h - Attributes of the plan dialect that only the file has
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_FILEATTRIBUTES_H
#define BOWLINE_COMPILER_EMIT_FILEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace bowline {

/// Attribute of plan.entry: how many runs a session may start before it waits for the first, 1 (the default) or 2. For
/// 2 the plan has a second buffer for each port, behind the packed arena. The module does not show these.
inline constexpr llvm::StringLiteral kInFlightAttr = "plan.in_flight";
/// Attribute of plan.entry: pairs (output, input) of ports. The output is the next input unless the caller writes that.
inline constexpr llvm::StringLiteral kFeedsAttr = "plan.feeds";
/// Attribute of plan.image: the least processor that runs the code, in the form of the target's `cpu`. A module may
/// have several images; loaders prefer the first that runs.
inline constexpr llvm::StringLiteral kCodeTargetAttr = "plan.code_target";

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_FILEATTRIBUTES_H
