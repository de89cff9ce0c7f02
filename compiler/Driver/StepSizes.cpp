//===- StepSizes.cpp - Batches, microbatches and sequences that go together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/StepSizes.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/hf/Import.h"
#include "passes/Stages/Schedules/ScheduleTable.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace bowline;

StepSizeRules::StepSizeRules(Strategy given, std::optional<int64_t> maxPositions, std::string source)
    : strategy(std::move(given)), maxPositions(maxPositions), positionsSource(std::move(source)) {
  for (const std::string &axis : strategy.batchAxes)
    batchRanks *= strategy.getSize(axis);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// ` along "dp", "fsdp"`, of those axes that have several ranks.
static std::string describeAxes(const Strategy &strategy) {
  std::vector<std::string> names;
  for (const std::string &axis : strategy.batchAxes)
    if (strategy.getSize(axis) > 1)
      names.push_back(absl::StrCat("\"", axis, "\""));
  return absl::StrCat(" along ", absl::StrJoin(names, ", "));
}

/// How a message names a number of microbatches.
static std::string describeMicrobatches(absl::string_view number, const StepFlags &flags) {
  return flags.areMicrobatchesInFile ? absl::StrCat("the line 'microbatches ", number, "'")
                                     : absl::StrCat("--microbatches ", number);
}

absl::Status StepSizeRules::checkSlots(const StepSizes &sizes, const StepFlags &flags) const {
  if (sizes.microbatches <= kMaxSlots)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(describeMicrobatches(absl::StrCat(sizes.microbatches), flags),
                                                 " is above ", kMaxSlots,
                                                 ", the slots that a plan's buffers may have"));
}

absl::Status StepSizeRules::checkDivision(const StepSizes &sizes) const {
  const auto [batch, microbatches, seq] = sizes;
  // Both factors are at most 2^20 here.
  if (batch == 0 || (microbatches <= kMaxSlots && batch % (microbatches * batchRanks) == 0))
    return absl::OkStatus();
  if (batchRanks == 1)
    return absl::InvalidArgumentError(
        absl::StrCat("--batch ", batch, " must be a multiple of the ", microbatches, " microbatches"));
  std::string ranks = absl::StrCat("the ", batchRanks, " ranks", describeAxes(strategy));
  if (microbatches == 1)
    return absl::InvalidArgumentError(absl::StrCat("--batch ", batch, " does not divide over ", ranks));
  return absl::InvalidArgumentError(absl::StrCat("--batch ", batch, " must be a multiple of ",
                                                 microbatches * batchRanks, ": each of the ", microbatches,
                                                 " microbatches divides over ", ranks));
}

absl::Status StepSizeRules::checkLength(const StepSizes &sizes) const {
  const auto [batch, microbatches, seq] = sizes;
  if (batch == 0 || seq == 0 || batch / microbatches <= hf::kMaxTokens / seq)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--batch ", batch, ": ", microbatches == 1 ? "a batch" : "a microbatch", " of ", batch / microbatches,
      " sequences of ", seq, " positions is not supported: both together may be ", hf::kMaxTokens, " positions"));
}

absl::Status StepSizeRules::checkPipeline(const StepSizes &sizes) const {
  const int64_t ranks = strategy.getSize(strategy.stageAxis);
  if (ranks == 1)
    return absl::OkStatus();
  const ScheduleChoice choice = strategy.schedule.value_or(ScheduleChoice());
  // Below 2^20 both.
  const int stages = static_cast<int>(ranks), microbatches = static_cast<int>(sizes.microbatches);
  if (choice.kind != ScheduleKind::Table)
    return checkSchedule(choice, stages, microbatches);
  return parseScheduleTable(strategy.scheduleTable, choice.file, stages, microbatches).status();
}

absl::Status StepSizeRules::checkPositions(const StepSizes &sizes) const {
  if (sizes.seq == 0)
    return absl::OkStatus();
  if (maxPositions && sizes.seq > *maxPositions)
    return absl::InvalidArgumentError(
        absl::StrCat("--seq ", sizes.seq, ": the model has ", *maxPositions, " positions, ", positionsSource));
  const int64_t ranks = strategy.getSize(strategy.sequenceAxis);
  if (sizes.seq % ranks != 0)
    return absl::InvalidArgumentError(absl::StrCat("--seq ", sizes.seq, " does not divide over the ", ranks,
                                                   " ranks along \"", strategy.sequenceAxis,
                                                   "\", along which sequences are"));
  return absl::OkStatus();
}

absl::Status StepSizeRules::check(const StepSizes &sizes, const StepFlags &flags, bool advises) const {
  absl::Status status = checkSlots(sizes, flags);
  if (status.ok())
    status = checkPipeline(sizes);
  if (status.ok())
    status = checkDivision(sizes);
  if (status.ok())
    status = checkLength(sizes);
  if (status.ok() || !advises)
    return status;
  return absl::InvalidArgumentError(absl::StrCat(status.message(), advise(sizes, flags)));
}

absl::Status StepSizeRules::check(const StepSizes &sizes, const StepFlags &flags) const {
  return check(sizes, flags, /*advises=*/true);
}

absl::Status StepSizeRules::checkBesideSchedule(const StepSizes &sizes) const {
  absl::Status status = checkPositions(sizes);
  if (status.ok())
    status = checkSlots(sizes, {});
  if (status.ok())
    status = checkDivision(sizes);
  return status.ok() ? checkLength(sizes) : status;
}

int64_t StepSizeRules::longestBelow(int64_t seq) const {
  const int64_t ranks = strategy.getSize(strategy.sequenceAxis);
  return std::min(seq, maxPositions.value_or(hf::kMaxTokens)) / ranks * ranks;
}

absl::Status StepSizeRules::checkSequence(const StepSizes &sizes, bool isStep) const {
  absl::Status status = checkPositions(sizes);
  if (status.ok())
    return status;
  const int64_t ranks = strategy.getSize(strategy.sequenceAxis), below = longestBelow(sizes.seq);
  std::vector<int64_t> nearest;
  for (int64_t seq : {below, below + ranks}) {
    StepSizes tried = sizes;
    tried.seq = seq;
    if (seq > 0 && checkPositions(tried).ok() && checkLength(tried).ok())
      nearest.push_back(seq);
  }
  if (nearest.empty())
    return status;
  // The batch may be wrong too.
  std::string others;
  StepSizes tried = sizes;
  tried.seq = nearest.front();
  if (isStep && !check(tried, {}, /*advises=*/false).ok()) {
    others = advise(tried, {});
    if (llvm::StringRef rest = others; rest.consume_front("; use "))
      others = ", with " + rest.str();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(status.message(), "; use --seq ", absl::StrJoin(nearest, " or "), others));
}

//===----------------------------------------------------------------------===//
// Advice
//===----------------------------------------------------------------------===//

/// A table has as many microbatches as its forwards say.
int64_t StepSizeRules::mostMicrobatches() const {
  if (!strategy.schedule || strategy.schedule->kind != ScheduleKind::Table)
    return kMaxSlots;
  int64_t most = 0;
  llvm::StringRef text = strategy.scheduleTable;
  for (size_t at = text.find('F'); at != text.npos; at = text.find('F', at + 1)) {
    int64_t index = 0;
    if (!text.drop_front(at + 1).take_while(llvm::isDigit).getAsInteger(10, index))
      most = std::max(most, std::min<int64_t>(index, kMaxSlots) + 1);
  }
  return std::min<int64_t>(most, kMaxSlots);
}

/// The nearest below and above with which the batch goes.
std::vector<int64_t> StepSizeRules::nearestMicrobatches(const StepSizes &sizes) const {
  if (sizes.batch % batchRanks != 0)
    return {};
  const int64_t most = mostMicrobatches(), perRank = sizes.batch / batchRanks;
  auto find = [&](int64_t from, int64_t step) -> std::optional<int64_t> {
    for (int64_t count = from; count >= 1 && count <= most; count += step)
      if (perRank % count == 0 && allows({sizes.batch, count, sizes.seq}))
        return count;
    return std::nullopt;
  };
  std::vector<int64_t> nearest;
  if (auto below = find(std::min(sizes.microbatches - 1, most), -1))
    nearest.push_back(*below);
  if (sizes.microbatches < most)
    if (auto above = find(sizes.microbatches + 1, 1))
      nearest.push_back(*above);
  return nearest;
}

/// The nearest below and above that go with the microbatches.
std::vector<int64_t> StepSizeRules::nearestBatches(const StepSizes &sizes) const {
  const auto [batch, microbatches, seq] = sizes;
  if (batch == 0 || microbatches > kMaxSlots)
    return {};
  const int64_t unit = microbatches * batchRanks;
  const int64_t perRank = (seq == 0 ? hf::kMaxTokens : hf::kMaxTokens / seq) / batchRanks;
  const int64_t below = std::min(batch / unit, perRank) * unit;
  std::vector<int64_t> nearest;
  for (int64_t count : {below, below + unit})
    if (count > 0 && allows({count, microbatches, seq}))
      nearest.push_back(count);
  return nearest;
}

/// Where neither alone helps: the nearest number of microbatches that some batch goes with, and the nearest such batch.
std::optional<StepSizes> StepSizeRules::nearestPair(const StepSizes &sizes) const {
  const int64_t most = mostMicrobatches(), from = std::min(sizes.microbatches, most);
  for (int64_t away = 0; away <= most; ++away)
    for (int64_t count : {from - away, from + away}) {
      if (count < 1 || count > most)
        continue;
      StepSizes tried{sizes.batch, count, sizes.seq};
      if (!checkPipeline(tried).ok())
        continue;
      std::vector<int64_t> batches = nearestBatches(tried);
      if (batches.empty())
        continue;
      tried.batch = *std::min_element(batches.begin(), batches.end(), [&](int64_t lhs, int64_t rhs) {
        return std::abs(lhs - sizes.batch) < std::abs(rhs - sizes.batch);
      });
      return tried;
    }
  return std::nullopt;
}

std::optional<StepSizes> StepSizeRules::least(int64_t seq) const {
  for (int64_t count = 1, most = mostMicrobatches(); count <= most; ++count) {
    const StepSizes sizes{count * batchRanks, count, seq};
    if (checkPipeline(sizes).ok())
      return allows(sizes) ? std::optional(sizes) : std::nullopt;
  }
  return std::nullopt;
}

/// Another schedule of the same stages with which the sizes go as they are.
std::optional<std::string> StepSizeRules::otherSchedule(const StepSizes &sizes) const {
  std::optional<ScheduleChoice> other =
      strategy.schedule && strategy.getSize(strategy.stageAxis) > 1 ? laxerSchedule(*strategy.schedule) : std::nullopt;
  if (!other || checkPipeline(sizes).ok())
    return std::nullopt;
  StepSizeRules laxer(*this);
  laxer.strategy.schedule = other;
  return laxer.allows(sizes) ? std::optional(toString(*other)) : std::nullopt;
}

std::string StepSizeRules::advise(const StepSizes &sizes, const StepFlags &flags) const {
  std::vector<std::string> ways, tooLarge;
  auto accepts = [&](const StepSizes &advised, llvm::StringRef schedule = "") {
    return !isAccepted || isAccepted(advised, schedule);
  };
  // One of the lists gets a way with the counts that are accepted, the other one with those that are not.
  auto sort = [&](const std::vector<int64_t> &counts, llvm::function_ref<StepSizes(int64_t)> sizesWith,
                  llvm::function_ref<std::string(const std::string &)> describe) {
    std::vector<int64_t> accepted, refused;
    for (int64_t count : counts)
      (accepts(sizesWith(count)) ? accepted : refused).push_back(count);
    if (!accepted.empty())
      ways.push_back(describe(absl::StrJoin(accepted, " or ")));
    if (!refused.empty())
      tooLarge.push_back(describe(absl::StrJoin(refused, " or ")));
  };
  const std::vector<int64_t> counts = nearestMicrobatches(sizes), batches = nearestBatches(sizes);
  sort(
      counts, [&](int64_t count) { return StepSizes{sizes.batch, count, sizes.seq}; },
      [&](const std::string &list) { return describeMicrobatches(list, flags); });
  sort(
      batches, [&](int64_t batch) { return StepSizes{batch, sizes.microbatches, sizes.seq}; },
      [&](const std::string &list) { return absl::StrCat("--batch ", list); });
  if (counts.empty() && batches.empty() && sizes.batch > 0)
    if (std::optional<StepSizes> pair = nearestPair(sizes))
      (accepts(*pair) ? ways : tooLarge)
          .push_back(absl::StrCat("--batch ", pair->batch, " with ",
                                  describeMicrobatches(absl::StrCat(pair->microbatches), flags)));
  if (std::optional<std::string> schedule = otherSchedule(sizes))
    (accepts(sizes, *schedule) ? ways : tooLarge)
        .push_back(flags.isScheduleInFile ? absl::StrCat("the line 'schedule \"", *schedule, "\"'")
                                          : absl::StrCat("--schedule ", *schedule));
  if (!ways.empty())
    return absl::StrCat("; use ", absl::StrJoin(ways, ", or "));
  if (!tooLarge.empty())
    return absl::StrCat("; with ", absl::StrJoin(tooLarge, ", or "), " the plan needs more than --memory-limit");
  return "";
}
