//===- ModeFlags.h - Flags that mean something in one mode alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MODEFLAGS_H
#define BOWLINE_COMPILER_DRIVER_MODEFLAGS_H

#include "compiler/Driver/Compile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace bowline {

/// A flag of `bowline-compile` that `--mode` has to be `mode` for.
struct ModeFlag {
  llvm::StringRef flag; ///< with its dashes
  CompileMode mode;
};

/// All of them; every other flag has a meaning in both modes.
llvm::ArrayRef<ModeFlag> modeFlags();

/// "train" or "generate", as `--mode` says it.
llvm::StringRef nameOf(CompileMode mode);

/// kInvalidArgument with the name of the first flag that \p isGiven and that \p mode has no use for.
absl::Status checkModeFlags(CompileMode mode, llvm::function_ref<bool(llvm::StringRef flag)> isGiven);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MODEFLAGS_H
