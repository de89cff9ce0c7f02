//===- ScheduleChoice.cpp - The schedule that a user asks for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "passes/Stages/Schedules/Generators.h"
#include "runtime/base/edit_distance.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>

using namespace bowline;

const char bowline::kScheduleSyntax[] = "gpipe|1f1b|interleaved:V|breadth_first:V|zb_h1|zb_h2|zb_v|dualpipe_v|FILE.csv";

namespace {
struct NamedSchedule {
  const char *name;
  ScheduleKind kind;
  bool takesChunks; // ":V" follows
  int chunks;       // else
};
} // namespace

static constexpr NamedSchedule kSchedules[] = {
    {"gpipe", ScheduleKind::GPipe, false, 1},
    {"1f1b", ScheduleKind::OneForwardOneBackward, false, 1},
    {"interleaved", ScheduleKind::Interleaved, true, 0},
    {"breadth_first", ScheduleKind::BreadthFirst, true, 0},
    {"zb_h1", ScheduleKind::ZbH1, false, 1},
    {"zb_h2", ScheduleKind::ZbH2, false, 1},
    {"zb_v", ScheduleKind::ZbV, false, 2},
    {"dualpipe_v", ScheduleKind::DualPipeV, false, 2},
};

/// The number of chunks that was given, the nearest valid one, or 2 where no number was.
static int nearestChunks(std::optional<absl::string_view> text) {
  double number = 0; // which reads digits of any length
  if (!text || !absl::SimpleAtod(*text, &number) || !(number >= 1))
    return 2;
  return static_cast<int>(std::min<double>(number, UINT16_MAX));
}

static absl::Status unknownSchedule(absl::string_view text, absl::string_view name,
                                    std::optional<absl::string_view> chunks) {
  const NamedSchedule &nearest =
      *FindNearest(absl::AsciiStrToLower(name.substr(0, 256)), kSchedules, &NamedSchedule::name);
  std::string suggestion = nearest.name;
  if (nearest.takesChunks)
    absl::StrAppend(&suggestion, ":", nearestChunks(chunks));
  return absl::InvalidArgumentError(absl::StrCat("there is no schedule '", text.substr(0, 200), "'; the nearest is '",
                                                 suggestion, "', of ", kScheduleSyntax));
}

absl::StatusOr<ScheduleChoice> bowline::parseScheduleChoice(absl::string_view text) {
  if (absl::EndsWithIgnoreCase(text, ".csv"))
    return ScheduleChoice{ScheduleKind::Table, 0, std::string(text)};
  size_t colon = text.find(':');
  absl::string_view name = text.substr(0, colon);
  std::optional<absl::string_view> number;
  if (colon != absl::string_view::npos)
    number = text.substr(colon + 1);

  const auto *found = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                   [&](const NamedSchedule &schedule) { return name == schedule.name; });
  if (found == std::end(kSchedules))
    return unknownSchedule(text, name, number);
  if (!found->takesChunks) {
    if (!number)
      return ScheduleChoice{found->kind, found->chunks, ""};
    std::string nearest =
        found->kind == ScheduleKind::OneForwardOneBackward
            ? absl::StrCat("1f1b', or, if each rank has so many layers, 'interleaved:", nearestChunks(number))
            : std::string(found->name);
    return absl::InvalidArgumentError(absl::StrCat("schedule '", name, "' takes no number of chunks, as in '",
                                                   text.substr(0, 200), "'; the nearest is '", nearest, "'"));
  }
  int chunks = 0;
  if (!number)
    return absl::InvalidArgumentError(
        absl::StrCat("schedule '", name,
                     "' needs the number of chunks that each rank holds, at most its layers, as in '", name, ":2'"));
  if (!absl::SimpleAtoi(*number, &chunks) || chunks < 1 || chunks > UINT16_MAX)
    return absl::InvalidArgumentError(absl::StrCat("schedule '", name, "' needs a number of chunks from 1 to ",
                                                   UINT16_MAX, " and at most the layers of a rank, not '",
                                                   number->substr(0, 200), "', as in '", name, ":",
                                                   nearestChunks(number), "'"));
  return ScheduleChoice{found->kind, chunks, ""};
}

std::string bowline::toString(const ScheduleChoice &choice) {
  for (const NamedSchedule &schedule : kSchedules)
    if (schedule.kind == choice.kind)
      return schedule.takesChunks ? absl::StrCat(schedule.name, ":", choice.chunks) : schedule.name;
  return choice.file;
}

absl::Status bowline::checkSchedule(const ScheduleChoice &choice, int ranks, int microbatches) {
  switch (choice.kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::OneForwardOneBackward:
  case ScheduleKind::BreadthFirst:
  case ScheduleKind::ZbH1:
  case ScheduleKind::ZbH2:
    return verifyScheduleSize(ranks, microbatches, choice.chunks);
  case ScheduleKind::Interleaved:
    return verifyInterleaved(ranks, microbatches, choice.chunks);
  case ScheduleKind::ZbV:
    return verifyZbV(ranks, microbatches);
  case ScheduleKind::DualPipeV:
    return verifyDualPipeV(ranks, microbatches);
  case ScheduleKind::Table:
    break;
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule '", choice.file, "' is a table, to be read from its file"));
}

std::optional<ScheduleChoice> bowline::laxerSchedule(const ScheduleChoice &choice) {
  if (choice.kind == ScheduleKind::Interleaved)
    return ScheduleChoice{ScheduleKind::BreadthFirst, choice.chunks, ""};
  if (choice.kind == ScheduleKind::DualPipeV)
    return ScheduleChoice{ScheduleKind::ZbV, choice.chunks, ""};
  return std::nullopt;
}

bool bowline::dividesBackwards(const ScheduleChoice &choice) {
  switch (choice.kind) {
  case ScheduleKind::ZbH1:
  case ScheduleKind::ZbH2:
  case ScheduleKind::ZbV:
  case ScheduleKind::DualPipeV:
    return true;
  case ScheduleKind::GPipe:
  case ScheduleKind::OneForwardOneBackward:
  case ScheduleKind::BreadthFirst:
  case ScheduleKind::Interleaved:
  case ScheduleKind::Table:
    return false;
  }
  return false;
}

absl::StatusOr<Schedule> bowline::makeSchedule(const ScheduleChoice &choice, int ranks, int microbatches) {
  switch (choice.kind) {
  case ScheduleKind::GPipe:
    return makeGPipe(ranks, microbatches);
  case ScheduleKind::OneForwardOneBackward:
    return make1F1B(ranks, microbatches);
  case ScheduleKind::Interleaved:
    return makeInterleaved(ranks, microbatches, choice.chunks);
  case ScheduleKind::BreadthFirst:
    return makeBreadthFirst(ranks, microbatches, choice.chunks);
  case ScheduleKind::ZbH1:
    return makeZbH1(ranks, microbatches);
  case ScheduleKind::ZbH2:
    return makeZbH2(ranks, microbatches);
  case ScheduleKind::ZbV:
    return makeZbV(ranks, microbatches);
  case ScheduleKind::DualPipeV:
    return makeDualPipeV(ranks, microbatches);
  case ScheduleKind::Table:
    break;
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule '", choice.file, "' is a table, to be read from its file"));
}
