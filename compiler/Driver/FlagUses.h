//===- FlagUses.h - Flags that mean something in some compilations alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_FLAGUSES_H
#define BOWLINE_COMPILER_DRIVER_FLAGUSES_H

#include "compiler/Driver/Compile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace bowline {

/// When a flag of `bowline-compile` takes effect.
struct FlagUse {
  llvm::StringRef flag;            ///< with its dashes
  std::optional<CompileMode> mode; ///< what `--mode` has to be; nothing: any
  bool isAboutPlan = false;        ///< whether the flag is about the plan file, which has to be written then
};

/// The flags that do not always take effect. StrategySource.cpp knows those that a phase reads which may be over.
llvm::ArrayRef<FlagUse> flagUses();

/// "train" or "generate", as `--mode` says it.
llvm::StringRef nameOf(CompileMode mode);

/// kInvalidArgument with the name of the first flag that \p isGiven and that would have no effect on a compilation with
/// \p options: in its mode, before its last phase, or beside other flags.
absl::Status checkFlagUses(const CompileOptions &options, llvm::function_ref<bool(llvm::StringRef flag)> isGiven);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_FLAGUSES_H
