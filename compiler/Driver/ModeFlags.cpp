//===- ModeFlags.cpp - Flags that mean something in one mode alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/ModeFlags.h"
#include "absl/strings/str_cat.h"

using namespace bowline;

static constexpr ModeFlag kModeFlags[] = {{"--batch", CompileMode::Train},
                                          {"--microbatches", CompileMode::Train},
                                          {"--zero", CompileMode::Train},
                                          {"--zero-axis", CompileMode::Train},
                                          {"--prefetch", CompileMode::Train},
                                          {"--schedule", CompileMode::Train},
                                          {"--stages", CompileMode::Train},
                                          {"--recompute", CompileMode::Train},
                                          {"--bucket-bytes", CompileMode::Train},
                                          {"--optimizer", CompileMode::Train},
                                          {"--lr", CompileMode::Train},
                                          {"--beta1", CompileMode::Train},
                                          {"--beta2", CompileMode::Train},
                                          {"--eps", CompileMode::Train},
                                          {"--weight-decay", CompileMode::Train},
                                          {"--clip-norm", CompileMode::Train},
                                          {"--lr-schedule", CompileMode::Train},
                                          {"--warmup-steps", CompileMode::Train},
                                          {"--decay-steps", CompileMode::Train},
                                          {"--min-lr", CompileMode::Train},
                                          {"--runs-in-flight", CompileMode::Train},
                                          {"--map-weights", CompileMode::Generate}};

llvm::ArrayRef<ModeFlag> bowline::modeFlags() { return kModeFlags; }

llvm::StringRef bowline::nameOf(CompileMode mode) { return mode == CompileMode::Train ? "train" : "generate"; }

absl::Status bowline::checkModeFlags(CompileMode mode, llvm::function_ref<bool(llvm::StringRef)> isGiven) {
  for (const ModeFlag &flag : kModeFlags)
    if (flag.mode != mode && isGiven(flag.flag))
      return absl::InvalidArgumentError(
          absl::StrCat(flag.flag.str(), " has no effect with --mode ", nameOf(mode).str(),
                       mode == CompileMode::Train ? ", which computes steps of training"
                                                  : ", which has no steps of training and makes one text at a time",
                       "; leave it out, or add --mode ", nameOf(flag.mode).str()));
  return absl::OkStatus();
}
