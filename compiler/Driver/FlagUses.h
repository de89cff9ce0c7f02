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

/// When a flag of `bowline-compile` takes effect.
struct FlagUse {
  llvm::StringRef flag;            ///< with its dashes
  std::optional<CompileMode> mode; ///< the value that `--mode` must have; nothing: any
  /// The last phase that reads the flag, so that it is too late with `--compile-from` this phase or a later one; Input:
  /// the import of a directory reads it, which a .mlir file is past. Nothing: it is never too late.
  std::optional<Phase> lastRead;
  bool isAboutPlan = false; ///< whether the flag is about the plan file, which has to be written then
};

/// All flags that do not always take effect. Flags may repeat values that a program states itself, `--target` with its
/// level and `--threads`: compileModule refuses other values.
llvm::ArrayRef<FlagUse> flagUses();

/// The last phase that reads a line of a strategy, by its first word: that of the flag that says the same, or for a
/// line that no flag says one of its own. Nothing: there is no such line.
std::optional<Phase> lastReadOfLine(llvm::StringRef line);

/// kInvalidArgument with the name of the first flag that \p isGiven and that would have no effect on a compilation with
/// \p options: after its last phase, in its mode, before the plan, or beside other flags.
absl::Status checkFlagUses(const CompileOptions &options, llvm::function_ref<bool(llvm::StringRef flag)> isGiven);

/// kInvalidArgument where the last phase that reads the flag is over when a compilation with \p options begins.
absl::Status checkFlagPhase(const CompileOptions &options, llvm::StringRef flag);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_FLAGUSES_H
