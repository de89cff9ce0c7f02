//===- FlagUses.cpp - Flags that take effect in some compilations alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/FlagUses.h"
#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace bowline;

static constexpr std::optional<CompileMode> kTrain = CompileMode::Train, kServe = CompileMode::Serve,
                                            kAnyMode = std::nullopt;

static constexpr FlagUse kFlagUses[] = {
    {"--mode", kAnyMode, Phase::Fuse},
    {"--batch", kTrain, Phase::Input},
    {"--seq", kAnyMode, Phase::Input},
    {"--dtype", kAnyMode, Phase::Train},
    {"--strategy", kAnyMode, Phase::Train},
    {"--mesh", kAnyMode, Phase::Train},
    {"--microbatches", kTrain, Phase::Train},
    {"--sequence-parallel", kAnyMode, Phase::Shard},
    {"--zero", kTrain, Phase::Local},
    {"--zero-axis", kTrain, Phase::Local},
    {"--prefetch", kTrain, Phase::Local},
    {"--zero-once", kTrain, Phase::Local},
    {"--zero-each", kTrain, Phase::Local},
    {"--schedule", kTrain, Phase::Train},
    {"--stages", kTrain, Phase::Train},
    {"--recompute", kTrain, Phase::Fuse},
    {"--bucket-bytes", kTrain, Phase::Local},
    {"--overlap-chunks", kAnyMode, Phase::Local},
    {"--optimizer", kTrain, Phase::Train},
    {"--lr", kTrain, Phase::Train},
    {"--beta1", kTrain, Phase::Train},
    {"--beta2", kTrain, Phase::Train},
    {"--eps", kTrain, Phase::Train},
    {"--weight-decay", kTrain, Phase::Train},
    {"--clip-norm", kTrain, Phase::Train},
    {"--lr-schedule", kTrain, Phase::Train},
    {"--warmup-steps", kTrain, Phase::Train},
    {"--decay-steps", kTrain, Phase::Train},
    {"--min-lr", kTrain, Phase::Train},
    // Programs say their seed from the first phase on.
    {"--seed", kAnyMode, Phase::Graph},
    {"--f32-products", kAnyMode, Phase::Fuse},
    {"--no-codegen", kAnyMode, Phase::Codegen},
    {"--kernel-cache", kAnyMode, Phase::Codegen},
    {"--kernel-listing", kAnyMode, Phase::Codegen},
    {"--link", kAnyMode, Phase::Overlap},
    {"--buckets", kServe, Phase::Input},
    {"--max-batch", kServe, Phase::Input},
    {"--max-context", kServe, Phase::Input},
    {"--block-tokens", kServe, Phase::Input},
    {"--kv-blocks", kServe, Phase::Input},
    {"--kv-memory", kServe, Phase::Input},
    {"--kv-dtype", kServe, Phase::Input},
    {"--with-logits", kServe, Phase::Input},
    {"--weights-dtype", kServe, Phase::Input},
    {"--map-weights", kAnyMode, Phase::Hoist},
    {"--remarks", kAnyMode, Phase::Memory},
    {"--mlir-print-ir-after-all", kAnyMode, Phase::Memory},
    {"--mlir-print-ir-after-change", kAnyMode, Phase::Memory},
    {"--runs-in-flight", kTrain, std::nullopt, /*isAboutPlan=*/true},
    {"--report", kAnyMode, std::nullopt, /*isAboutPlan=*/true},
};

namespace {
/// A line of a strategy and the flag that says the same; one without a flag has its last phase here.
struct LineUse {
  llvm::StringRef line, flag;
  std::optional<Phase> lastRead;
};
} // namespace

static constexpr LineUse kLineUses[] = {
    {"mesh", "--mesh", std::nullopt},
    // Which axis is that of the stages depends on the axes that these take.
    {"batch", "", Phase::Train},
    {"tensor_parallel", "", Phase::Train},
    {"shard", "", Phase::Shard},
    {"zero", "--zero", std::nullopt},
    {"sequence_parallel", "--sequence-parallel", std::nullopt},
    {"microbatches", "--microbatches", std::nullopt},
    {"stages", "--stages", std::nullopt},
    {"schedule", "--schedule", std::nullopt},
    {"recompute", "--recompute", std::nullopt},
    {"bucket_bytes", "--bucket-bytes", std::nullopt},
    {"overlap_chunks", "--overlap-chunks", std::nullopt},
};

llvm::ArrayRef<FlagUse> bowline::flagUses() { return kFlagUses; }

static const FlagUse *findUse(llvm::StringRef flag) {
  const FlagUse *found = llvm::find_if(kFlagUses, [&](const FlagUse &use) { return use.flag == flag; });
  return found == std::end(kFlagUses) ? nullptr : found;
}

std::optional<Phase> bowline::lastReadOfLine(llvm::StringRef line) {
  for (const LineUse &use : kLineUses)
    if (use.line == line)
      return use.flag.empty() ? use.lastRead : findUse(use.flag)->lastRead;
  return std::nullopt;
}

static bool isOver(const FlagUse &use, const CompileOptions &options) {
  if (!use.lastRead)
    return false;
  return *use.lastRead == Phase::Input ? llvm::StringRef(options.model).ends_with(".mlir")
                                       : options.from >= *use.lastRead;
}

absl::Status bowline::checkFlagPhase(const CompileOptions &options, llvm::StringRef flag) {
  const FlagUse *use = findUse(flag);
  if (!use || !isOver(*use, options))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag.str(), ": the program", options.model.empty() ? "" : absl::StrCat(" of ", options.model), " is past phase '",
      nameOf(*use->lastRead).str(), "', the last one that reads it; leave it out, or compile from ",
      *use->lastRead == Phase::Input ? "a directory" : "an earlier phase"));
}

/// Says in words, for messages, how programs of the mode compute.
static llvm::StringRef describe(CompileMode mode) {
  switch (mode) {
  case CompileMode::Train:
    return "computes steps of training";
  case CompileMode::Generate:
    return "has no training steps and generates one sequence at a time";
  case CompileMode::Serve:
    return "has no steps of training and serves sequences of any length up to --max-context";
  }
  llvm_unreachable("modes are those of the list");
}

/// Why a flag has no effect, and how to give it one; empty if it has one.
static std::string whyUnused(const FlagUse &use, const CompileOptions &options) {
  // Past the phases that read the mode, a compilation does not know it.
  if (use.mode && *use.mode != options.mode && !isOver(*findUse("--mode"), options))
    return absl::StrCat("with --mode ", nameOf(options.mode).str(), ", which ", describe(options.mode).str(),
                        "; leave it out, or add --mode ", nameOf(*use.mode).str());
  if (use.isAboutPlan && options.to != Phase::Plan)
    return absl::StrCat("with --compile-to=", nameOf(options.to).str(),
                        ": it is about the plan, which is not written; leave it out, or go on to the plan");
  return "";
}

/// Flags that depend on the values of other flags.
static std::string whyUnusedBesideOthers(llvm::StringRef flag, const CompileOptions &options) {
  if ((flag == "--decay-steps" || flag == "--min-lr") && options.lrSchedule != "cosine")
    return "without --lr-schedule cosine; leave it out, or add that";
  if (flag == "--seq" && options.mode == CompileMode::Serve && !isOver(*findUse("--mode"), options))
    return absl::StrCat("with --mode serve, which ", describe(options.mode).str(), "; leave it out");
  if ((flag == "--beta1" || flag == "--beta2" || flag == "--eps" || flag == "--weight-decay") &&
      options.optimizer != "adamw")
    return absl::StrCat("with --optimizer ", options.optimizer, "; leave it out, or use adamw");
  return "";
}

absl::Status bowline::checkFlagUses(const CompileOptions &options, llvm::function_ref<bool(llvm::StringRef)> isGiven) {
  for (const FlagUse &use : kFlagUses) {
    if (!isGiven(use.flag))
      continue;
    if (absl::Status late = checkFlagPhase(options, use.flag); !late.ok())
      return late;
    std::string why = whyUnused(use, options);
    if (why.empty())
      why = whyUnusedBesideOthers(use.flag, options);
    if (!why.empty())
      return absl::InvalidArgumentError(absl::StrCat(use.flag.str(), " has no effect ", why));
  }
  return absl::OkStatus();
}
