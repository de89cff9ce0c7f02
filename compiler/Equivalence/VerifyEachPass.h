//===- VerifyEachPass.h - Equivalence for a tool that runs any passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_VERIFYEACHPASS_H
#define BOWLINE_COMPILER_EQUIVALENCE_VERIFYEACHPASS_H

#include <memory>

namespace mlir {
class PassManager;
} // namespace mlir

namespace bowline {

/// Compares the module before and after each pass of `manager` (EquivalenceChecker.h); add all passes first. If a pass
/// changes a result, the manager fails at the end, and the returned flag is then true. The manager runs its passes one
/// after the other.
std::shared_ptr<const bool> verifyEachPass(mlir::PassManager &manager);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_VERIFYEACHPASS_H
