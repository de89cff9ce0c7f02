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

/// Compares the module before and after each pass of a manager that has all its passes (EquivalenceChecker.h), and lets
/// the manager fail at the end where a pass changes a computed value. The manager then runs one pass after the other.
/// The returned flag is true after the run where a pass changed a value.
std::shared_ptr<const bool> verifyEachPass(mlir::PassManager &manager);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_VERIFYEACHPASS_H
