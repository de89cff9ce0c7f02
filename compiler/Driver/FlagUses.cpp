//===- FlagUses.cpp - Flags that mean something in some compilations alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/FlagUses.h"
#include "absl/strings/str_cat.h"

using namespace bowline;

static constexpr std::optional<CompileMode> kTrain = CompileMode::Train, kGenerate = CompileMode::Generate,
                                            kAnyMode = std::nullopt;

static constexpr FlagUse kFlagUses[] = {
    {"--batch", kTrain},
    {"--microbatches", kTrain},
    {"--zero", kTrain},
    {"--zero-axis", kTrain},
    {"--prefetch", kTrain},
    {"--schedule", kTrain},
    {"--stages", kTrain},
    {"--recompute", kTrain},
    {"--bucket-bytes", kTrain},
    {"--optimizer", kTrain},
    {"--lr", kTrain},
    {"--beta1", kTrain},
    {"--beta2", kTrain},
    {"--eps", kTrain},
    {"--weight-decay", kTrain},
    {"--clip-norm", kTrain},
    {"--lr-schedule", kTrain},
    {"--warmup-steps", kTrain},
    {"--decay-steps", kTrain},
    {"--min-lr", kTrain},
    {"--map-weights", kGenerate},
    {"--runs-in-flight", kTrain, /*isAboutPlan=*/true},
    {"--report", kAnyMode, /*isAboutPlan=*/true},
};

llvm::ArrayRef<FlagUse> bowline::flagUses() { return kFlagUses; }

llvm::StringRef bowline::nameOf(CompileMode mode) { return mode == CompileMode::Train ? "train" : "generate"; }

/// Why a flag has no effect, and what to do about it; empty if it has one.
static std::string whyUnused(const FlagUse &use, const CompileOptions &options) {
  if (use.mode && *use.mode != options.mode)
    return absl::StrCat("with --mode ", nameOf(options.mode).str(),
                        options.mode == CompileMode::Train
                            ? ", which computes steps of training"
                            : ", which has no steps of training and makes one text at a time",
                        "; leave it out, or add --mode ", nameOf(*use.mode).str());
  if (use.isAboutPlan && options.to != Phase::Plan)
    return absl::StrCat("with --compile-to=", nameOf(options.to).str(),
                        ": it is about the plan, which is not written; leave it out, or go on to the plan");
  return "";
}

/// Flags that depend on what others say.
static std::string whyUnusedBesideOthers(llvm::StringRef flag, const CompileOptions &options) {
  if ((flag == "--decay-steps" || flag == "--min-lr") && options.lrSchedule != "cosine")
    return "without --lr-schedule cosine; leave it out, or add that";
  if ((flag == "--beta1" || flag == "--beta2" || flag == "--eps" || flag == "--weight-decay") &&
      options.optimizer != "adamw")
    return absl::StrCat("with --optimizer ", options.optimizer, "; leave it out, or use adamw");
  return "";
}

absl::Status bowline::checkFlagUses(const CompileOptions &options, llvm::function_ref<bool(llvm::StringRef)> isGiven) {
  for (const FlagUse &use : kFlagUses) {
    if (!isGiven(use.flag))
      continue;
    std::string why = whyUnused(use, options);
    if (why.empty())
      why = whyUnusedBesideOthers(use.flag, options);
    if (!why.empty())
      return absl::InvalidArgumentError(absl::StrCat(use.flag.str(), " has no effect ", why));
  }
  return absl::OkStatus();
}
