//===- StepActivities.cpp - how the ranks of an entry spend their time ----===//

#include "checker/StepActivities.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace bowline {
namespace {

const fbs::Segment &segmentAt(const Timeline &timeline, CommandSite site) {
  const fbs::Program &program = timeline.programOf(site.entry);
  return *program.segments()->Get(program.timeline()->Get(site.call)->segment());
}

/// The activity of a launch of a training step.
Activity activityOfTraining(absl::string_view segment, absl::string_view source) {
  if (absl::StartsWith(segment, "forward."))
    return Activity::Forward;
  if (absl::StartsWith(segment, "backward_input."))
    return Activity::BackwardInput;
  if (absl::StartsWith(segment, "backward_weight."))
    return Activity::BackwardWeight;
  if (absl::StartsWith(segment, "backward."))
    return Activity::Backward;
  if (absl::EndsWith(segment, "_update"))
    return Activity::Update;
  if (segment == "begin" || absl::EndsWith(segment, "_begin"))
    return Activity::Other;
  return absl::StartsWith(source, "gradient of ") ? Activity::Backward : Activity::Forward;
}

absl::Status checkTime(const Timeline &timeline, const PredictedCommand &command) {
  if (std::isfinite(command.begin) && std::isfinite(command.end) && command.begin <= command.end)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(timeline.describe(command.site),
                                                 ": the cost model gives no finite time for it; the plan's costs of "
                                                 "its kernel are wrong, so compile it again"));
}

} // namespace

std::optional<Activity> activityOf(const Timeline &timeline, CommandSite site) {
  const fbs::Plan &plan = timeline.plan();
  const fbs::Command &command = timeline.commandAt(site);
  switch (command.body_type()) {
  case fbs::CommandBody::Signal:
  case fbs::CommandBody::Wait:
    return std::nullopt;
  case fbs::CommandBody::Copy:
    return Activity::Copy;
  case fbs::CommandBody::Launch:
    break;
  default:
    return Activity::Communication;
  }
  switch (plan.entries()->Get(site.entry)->kind()) {
  case fbs::EntryKind::TrainStep:
    return activityOfTraining(TextOf(segmentAt(timeline, site).name()),
                              TextOf(plan.sources()->Get(command.source())->location()));
  case fbs::EntryKind::Init:
  case fbs::EntryKind::Prepare:
  case fbs::EntryKind::Custom:
    return Activity::Other;
  default:
    return Activity::Forward;
  }
}

/// The seconds in which one of `rows` communicates and none does other work: those of all work without those of work
/// that is no communication.
static double exposedSeconds(absl::Span<const ActivityRow> rows) {
  std::vector<std::pair<double, double>> all, others;
  for (const ActivityRow &row : rows) {
    for (const ActivityBlock &block : row.blocks) {
      all.emplace_back(block.begin, block.end);
      if (block.activity != Activity::Communication)
        others.emplace_back(block.begin, block.end);
    }
  }
  const auto covered = [](std::vector<std::pair<double, double>> &intervals) {
    std::sort(intervals.begin(), intervals.end());
    double seconds = 0, reached = 0;
    for (const auto &[begin, end] : intervals) {
      seconds += std::max(0.0, end - std::max(begin, reached));
      reached = std::max(reached, end);
    }
    return seconds;
  };
  return std::max(0.0, covered(all) - covered(others));
}

std::optional<uint32_t> stageOf(const fbs::Segment &segment) {
  const absl::string_view name = TextOf(segment.name());
  const size_t dot = name.rfind('.');
  uint32_t stage = 0;
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(name.substr(dot + 1), &stage))
    return std::nullopt;
  return stage;
}

absl::StatusOr<StepActivities> StepActivities::of(const Timeline &timeline, absl::Span<const uint32_t> entries,
                                                  absl::Span<const std::vector<PredictedCommand>> predicted) {
  StepActivities result;
  result.busy_.resize(predicted.size());
  for (uint32_t role = 0; role < predicted.size(); ++role) {
    const size_t firstRow = result.rows_.size();
    for (uint32_t stream = 0; stream < SizeOf(timeline.programOf(entries[role]).streams()); ++stream)
      result.rows_.push_back({role, stream, {}});
    for (const PredictedCommand &command : predicted[role]) {
      BOWLINE_RETURN_IF_ERROR(checkTime(timeline, command));
      result.seconds_ = std::max(result.seconds_, command.end);
      const uint32_t stream = timeline.commandAt(command.site).stream();
      const std::optional<Activity> activity = activityOf(timeline, command.site);
      if (!activity)
        continue;
      if (stream == 0)
        result.busy_[role] += command.end - command.begin;
      std::vector<ActivityBlock> &blocks = result.rows_[firstRow + stream].blocks;
      if (blocks.empty() || blocks.back().activity != *activity || blocks.back().end != command.begin ||
          blocks.back().commands.back().site.call != command.site.call)
        blocks.push_back({*activity, command.begin, command.end, {}});
      blocks.back().end = command.end;
      blocks.back().commands.push_back(command);
    }
    result.exposed_.push_back(exposedSeconds(absl::MakeConstSpan(result.rows_).subspan(firstRow)));
  }
  return result;
}

double StepActivities::idleShare(uint32_t role) const {
  return seconds_ > 0 ? std::max(0.0, 1 - busy_[role] / seconds_) : 0;
}

double StepActivities::exposedShare(uint32_t role) const { return seconds_ > 0 ? exposed_[role] / seconds_ : 0; }

bool StepActivities::communicates() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const ActivityRow &row) {
    return std::any_of(row.blocks.begin(), row.blocks.end(),
                       [](const ActivityBlock &block) { return block.activity == Activity::Communication; });
  });
}

} // namespace bowline
