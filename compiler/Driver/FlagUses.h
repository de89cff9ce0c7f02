//===- FlagUses.h - Flags that take effect in some compilations alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_FLAGUSES_H
#define BOWLINE_COMPILER_DRIVER_FLAGUSES_H

#include "compiler/Driver/CompileOptions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace bowline {

/// The conditions under which a flag of `bowline-compile` takes effect.
struct FlagUse {
  llvm::StringRef flag;            ///< with its dashes
  std::optional<CompileMode> mode; ///< the required value of `--mode`; absent: any
  /// The last phase that reads the flag: it has no effect with `--compile-from` this phase or a later one. Phase::Input
  /// means that only the import of a directory reads it, not of a .mlir file. Absent: no phase is too late for it.
  std::optional<Phase> lastRead;
  bool isAboutPlan = false; ///< it concerns the plan file, which the compilation must write then
};

/// Returns all flags that have an effect only in some compilations. `--target`, its level and `--threads` are not among
/// them: a flag may repeat the value in the IR, and compileModule refuses other values.
llvm::ArrayRef<FlagUse> flagUses();

/// Returns the last phase that reads a line of a strategy, given the line's first word: that of the equivalent flag, if
/// there is one. Returns nothing for an unknown word.
std::optional<Phase> lastReadOfLine(llvm::StringRef line);

/// Returns kInvalidArgument naming the first flag that \p isGiven and would have no effect on a compilation with
/// \p options, because of its phases, its mode, the missing plan, or other flags.
absl::Status checkFlagUses(const CompileOptions &options, llvm::function_ref<bool(llvm::StringRef flag)> isGiven);

/// Returns kInvalidArgument if a compilation with \p options starts after the last phase that reads \p flag.
absl::Status checkFlagPhase(const CompileOptions &options, llvm::StringRef flag);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_FLAGUSES_H
