//===- LimitAdvice.cpp - A way to meet a memory limit
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/LimitAdvice.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/Driver/CompileSetup.h"
#include "compiler/Driver/MemoryReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace bowline;

namespace {

/// Looks for choices of a training step that meet the limit.
class LimitAdvice {
public:
  LimitAdvice(const CompileOptions &options, const CompileResult &result) : options(options), result(result) {}

  std::string take() {
    if (bytesOfModel(*result.plan) > options.memoryLimit) {
      // Only the smallest step says how many bytes the model needs beside its parameters.
      tryChoice(smallestStep());
      return describeModel();
    }
    for (const Choice &choice : {gatherEach(), Choice{}, moreMicrobatches(), smallestStep()})
      if (std::optional<Choice> found = tryChoice(choice))
        return absl::StrCat("; use ", nameOf(*found), ", with which it needs at most ", formatBytes(leastBytes));
    return describeLeast();
  }

private:
  /// Flags that differ from the given ones.
  struct Choice {
    int64_t batch = 0, microbatches = 0, seq = 0; // 0: as given
    std::string recompute = {}, mesh = {};        // empty: as given
    bool isZero3 = false, isZeroEach = false;
    bool isPossible = true;

    bool changesStep() const { return batch > 0 || microbatches > 0 || seq > 0 || !mesh.empty() || isZeroEach; }
  };

  /// Whole parameters and gradients of one microbatch at a time, where the schedule keeps those of a pass by default.
  Choice gatherEach() const {
    const StrategyFlags &flags = options.strategy;
    const llvm::StringRef schedule = flags.schedule;
    return {.isZeroEach = true,
            .isPossible = flags.zero == 3 && !flags.zeroOnce && !flags.zeroEach &&
                          (schedule == "gpipe" || schedule.starts_with("breadth_first"))};
  }

  /// Microbatches of one sequence a rank: the same step in less memory.
  Choice moreMicrobatches() const {
    Choice choice{.isPossible = false};
    if (!result.leastSizes)
      return choice;
    const int64_t sequences = result.leastSizes->batch / result.leastSizes->microbatches;
    choice.microbatches = options.batch / sequences;
    choice.isPossible =
        options.batch % sequences == 0 && choice.microbatches > options.strategy.microbatches.value_or(1);
    return choice;
  }

  Choice smallestStep() const {
    Choice choice{.isPossible = false};
    if (!result.leastSizes || result.leastSizes->batch >= options.batch)
      return choice;
    choice.batch = result.leastSizes->batch;
    if (result.leastSizes->microbatches != options.strategy.microbatches.value_or(1))
      choice.microbatches = result.leastSizes->microbatches;
    choice.isPossible = true;
    return choice;
  }

  /// "--batch 2, --microbatches 1 and --recompute auto".
  static std::string nameOf(const Choice &choice) {
    std::vector<std::string> flags;
    if (!choice.mesh.empty())
      flags.push_back("--mesh " + choice.mesh);
    if (choice.isZero3)
      flags.push_back("--zero 3");
    if (choice.isZeroEach)
      flags.push_back("--zero-each");
    if (choice.seq > 0)
      flags.push_back(absl::StrCat("--seq ", choice.seq));
    if (choice.batch > 0)
      flags.push_back(absl::StrCat("--batch ", choice.batch));
    if (choice.microbatches > 0)
      flags.push_back(absl::StrCat("--microbatches ", choice.microbatches));
    if (!choice.recompute.empty())
      flags.push_back("--recompute " + choice.recompute);
    const std::string last = flags.back();
    flags.pop_back();
    return flags.empty() ? last : absl::StrCat(absl::StrJoin(flags, ", "), " and ", last);
  }

  /// The choice with the kind of recomputation that meets the limit at the least work; nothing where none does. `auto`
  /// takes many compilations, so that `full` is tried before it.
  std::optional<Choice> tryChoice(Choice choice) {
    if (!choice.isPossible)
      return std::nullopt;
    std::optional<Choice> found;
    for (const char *recompute : {"", "full", "auto"}) {
      const bool isWorthIt =
          *recompute == '\0' ? choice.changesStep() : options.from < Phase::Fuse && result.recompute != recompute;
      const bool isAuto = llvm::StringRef(recompute) == "auto";
      if (!isWorthIt || (isAuto && (!found || !choice.mesh.empty())))
        continue;
      choice.recompute = recompute;
      if (!compile(choice))
        continue;
      found = choice;
      if (*recompute == '\0')
        return found; // as it was asked for
    }
    return found;
  }

  /// Compiles with a choice, and says whether the arena is within the limit. A choice that is refused is not.
  bool compile(const Choice &choice) {
    CompileOptions tried = options;
    if (choice.batch > 0)
      tried.batch = choice.batch;
    if (choice.microbatches > 0)
      tried.strategy.microbatches = choice.microbatches;
    if (choice.seq > 0)
      tried.seq = choice.seq;
    if (!choice.recompute.empty())
      tried.strategy.recompute = choice.recompute;
    if (!choice.mesh.empty())
      tried.strategy.mesh = choice.mesh;
    if (choice.isZero3)
      tried.strategy.zero = 3;
    if (choice.isZeroEach)
      tried.strategy.zeroEach = true;
    const std::optional<uint64_t> arena = arenaBytesWith(tried);
    if (!arena)
      return false;
    const uint64_t bytes = *arena;
    const bool isWithin = bytes <= options.memoryLimit;
    if (isWithin || bytes < leastBytes) {
      leastBytes = bytes;
      leastChoice = choice;
    }
    return isWithin;
  }

  bool hasRanks() const {
    return llvm::any_of(result.plan->mesh, [](const auto &axis) { return axis->size > 1; });
  }

  /// A mesh over which the model was divided, or else a count of ranks below which no division of the model meets the
  /// limit.
  std::string divide(uint64_t bytes) {
    if (options.from >= Phase::Train)
      return "";
    const uint64_t ranks = (bytes - 1) / options.memoryLimit + 1;
    if (std::optional<Choice> found = findMesh(static_cast<int64_t>(std::min<uint64_t>(ranks, INT64_MAX))))
      return absl::StrCat(": divide them by ", nameOf(*found), ", with which a rank needs at most ",
                          formatBytes(leastBytes));
    return absl::StrCat(": at least ", ranks, hasRanks() ? " times as many" : "",
                        " ranks are needed to hold them, along an axis tp or pp of --mesh, or fsdp with --zero 3");
  }

  using Axis = std::pair<std::string, int64_t>;

  /// The axes of --mesh; nothing where one is not "pp", "dp", "fsdp" or "tp", whose uses the command line alone
  /// decides.
  std::optional<std::vector<Axis>> givenAxes() const {
    std::vector<Axis> axes;
    if (options.strategy.mesh.empty())
      return axes;
    for (const absl::string_view text : absl::StrSplit(options.strategy.mesh, ',')) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
      int64_t size = 0;
      if (!absl::SimpleAtoi(parts.second, &size) || size < 1 ||
          !llvm::is_contained({"pp", "dp", "fsdp", "tp"}, parts.first))
        return std::nullopt;
      axes.emplace_back(parts.first, size);
    }
    return axes;
  }

  /// The axes with \p factor times as many ranks along \p name, as --mesh.
  static std::vector<Axis> scaled(std::vector<Axis> axes, llvm::StringRef name, int64_t factor) {
    const auto axis = llvm::find_if(axes, [&](const Axis &each) { return each.first == name; });
    if (axis == axes.end())
      axes.emplace_back(name.str(), factor);
    else
      axis->second *= factor;
    return axes;
  }

  static std::string toText(const std::vector<Axis> &axes) {
    return absl::StrJoin(
        axes, ",", [](std::string *out, const Axis &axis) { absl::StrAppend(out, axis.first, "=", axis.second); });
  }

  /// The first mesh with \p factor times as many ranks, or with the next power of two, with which a rank meets the
  /// limit. Every try is a compilation.
  std::optional<Choice> findMesh(int64_t factor) {
    constexpr int64_t kMost = 64;
    constexpr int kTries = 3;
    const std::optional<std::vector<Axis>> axes = givenAxes();
    if (!axes || options.from != Phase::Input || !options.strategyFile.empty())
      return std::nullopt;
    int64_t ranks = 1;
    for (const Axis &axis : *axes)
      ranks *= std::min(axis.second, kMost + 1);
    const bool hasDp = llvm::any_of(*axes, [](const Axis &axis) { return axis.first == "dp"; });
    const bool hasFsdp = llvm::any_of(*axes, [](const Axis &axis) { return axis.first == "fsdp"; });
    for (int tries = 0; tries < kTries && factor <= kMost / std::min(ranks, kMost); ++tries) {
      const std::vector<Axis> parts = scaled(*axes, hasDp && !hasFsdp ? "dp" : "fsdp", factor);
      int64_t step = options.strategy.microbatches.value_or(1);
      for (const Axis &axis : parts)
        step *= axis.first == "dp" || axis.first == "fsdp" ? axis.second : 1;
      Choice sharded{.mesh = toText(parts), .isZero3 = options.strategy.zero != 3};
      if (options.batch % step != 0)
        sharded.batch = step;
      for (const Choice &choice : {Choice{.mesh = toText(scaled(*axes, "tp", factor))}, sharded})
        if (std::optional<Choice> found = tryChoice(choice))
          return found;
      factor = static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(factor) + 1));
    }
    return std::nullopt;
  }

  /// The longest sequence of half, a quarter and so on of the length that meets the limit.
  std::optional<Choice> findSequence() {
    const Choice shortest{.batch = leastChoice ? leastChoice->batch : 0,
                          .microbatches = leastChoice ? leastChoice->microbatches : 0,
                          .seq = 1,
                          .recompute = leastChoice ? leastChoice->recompute : ""};
    if (options.from != Phase::Input || options.seq <= 1 || !compile(shortest))
      return std::nullopt;
    Choice choice = shortest;
    for (choice.seq = options.seq / 2; choice.seq > 1; choice.seq /= 2)
      if (compile(choice))
        return choice;
    return Choice(shortest);
  }

  std::string describeModel() {
    const uint64_t model = bytesOfModel(*result.plan);
    std::string text = absl::StrCat("; parameters and states of the optimizer alone take ", formatBytes(model),
                                    hasRanks() ? " on a rank" : "", ", whatever the sizes of a step");
    if (leastChoice)
      absl::StrAppend(&text, ", and ", formatBytes(leastBytes), " with gradients and activations of the smallest step");
    return text + divide(leastChoice ? std::max(leastBytes, model) : model);
  }

  std::string describeLeast() {
    const bool isLess = leastChoice && leastBytes < result.plan->arena_bytes;
    std::string text =
        isLess
            ? absl::StrCat("; with ", nameOf(*leastChoice), " it still needs ", formatBytes(leastBytes), ", of which ",
                           formatBytes(bytesOfModel(*result.plan)), " are parameters and states of the optimizer")
            : "; no recomputation and no smaller batch gets lower";
    const uint64_t least = isLess ? leastBytes : result.plan->arena_bytes;
    if (std::optional<Choice> found = findSequence())
      return absl::StrCat(text, "; use ", nameOf(*found), ", with which it needs at most ", formatBytes(leastBytes));
    return text + divide(least);
  }

  const CompileOptions &options;
  const CompileResult &result;
  uint64_t leastBytes = std::numeric_limits<uint64_t>::max();
  std::optional<Choice> leastChoice;
};

} // namespace

std::string bowline::adviseOnLimit(const CompileOptions &options, const CompileResult &result,
                                   const std::string &limit) {
  // Somebody meant the gigabytes of a device.
  constexpr uint64_t kForgottenUnit = 4096;
  if (options.memoryLimit < kForgottenUnit && llvm::all_of(limit, llvm::isDigit))
    return absl::StrCat("; a --memory-limit without a unit is in bytes: give one, as in --memory-limit ",
                        options.memoryLimit, "GiB");
  if (trains(options.mode))
    return LimitAdvice(options, result).take();
  const bool isIr = llvm::StringRef(options.model).ends_with(".mlir");
  if (const uint64_t model = bytesOfModel(*result.plan); model > options.memoryLimit) {
    const bool hasRanks = llvm::any_of(result.plan->mesh, [](const auto &axis) { return axis->size > 1; });
    return absl::StrCat("; weights alone take ", formatBytes(model), hasRanks ? " on a rank" : "",
                        ", whatever the sizes of a step",
                        options.from < Phase::Train
                            ? absl::StrCat(": divide them over at least ", (model - 1) / options.memoryLimit + 1,
                                           hasRanks ? " times as many" : "", " ranks by --mesh with an axis tp")
                            : "");
  }
  if (isIr)
    return "";
  return options.mode == CompileMode::Serve
             ? "; use a smaller --max-context, --max-batch or largest of --buckets, or --kv-dtype of fewer bits"
             : "; use a smaller --seq";
}

std::string bowline::describeExcess(uint64_t bytes, uint64_t limitBytes, const std::string &limit) {
  const bool looksEqual = formatBytes(bytes) == formatBytes(limitBytes);
  return absl::StrCat(formatBytes(bytes), looksEqual ? absl::StrCat(" (", bytes, " bytes)") : "",
                      ", more than --memory-limit ", limit,
                      looksEqual ? absl::StrCat(" (", limitBytes, " bytes)") : "");
}
