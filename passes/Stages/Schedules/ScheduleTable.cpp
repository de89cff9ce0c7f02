//===- ScheduleTable.cpp - Schedules that users write as tables
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleTable.h"
#include "passes/Stages/Schedules/Generators.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

using namespace bowline;

namespace {

/// A cell as it is written.
struct Cell {
  ActionKind kind;
  int microbatch;
  std::optional<int> stage, chunk;
  bool overlapsNext = false;
  int line, column; // from 1
};

/// Takes texts apart and puts their cells together to a schedule.
class TableParser {
public:
  TableParser(absl::string_view name, int ranks, int microbatches)
      : name(name), numRanks(ranks), numMicrobatches(microbatches) {}

  absl::StatusOr<Schedule> parse(absl::string_view text);

private:
  absl::Status refuse(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
  }
  absl::Status refuseCell(int line, int column, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ":", column, ": ", what));
  }
  absl::Status parseLine(absl::string_view text, int line);
  absl::Status parseCell(absl::string_view text, int line, int column, std::vector<Cell> &cells);
  absl::Status parseAction(absl::string_view text, int line, int column, std::vector<Cell> &cells);
  absl::StatusOr<Placement> placeByStages() const;
  absl::StatusOr<Placement> placeByChunks() const;

  absl::string_view name;
  int numRanks, numMicrobatches;
  std::vector<std::vector<Cell>> ranks;
};

} // namespace

/// Takes a number from the front. None when there is none or it is too large to mean anything.
static std::optional<int> takeNumber(absl::string_view &text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits]))
    ++digits;
  int number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number))
    return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

static std::optional<ActionKind> kindOf(char letter) {
  for (ActionKind kind :
       {ActionKind::Forward, ActionKind::Backward, ActionKind::BackwardInput, ActionKind::BackwardWeight})
    if (letterOf(kind) == letter)
      return kind;
  return std::nullopt;
}

absl::Status TableParser::parseAction(absl::string_view text, int line, int column, std::vector<Cell> &cells) {
  absl::string_view rest = text;
  Cell cell = {};
  cell.line = line;
  cell.column = column;
  cell.stage = takeNumber(rest);
  std::optional<ActionKind> kind = rest.empty() ? std::nullopt : kindOf(rest[0]);
  std::optional<int> microbatch;
  if (kind) {
    rest.remove_prefix(1);
    microbatch = takeNumber(rest);
  }
  if (microbatch && !cell.stage && absl::ConsumePrefix(&rest, ".")) {
    cell.chunk = takeNumber(rest);
    if (!cell.chunk)
      microbatch = std::nullopt;
  }
  if (!microbatch || !rest.empty()) {
    bool isCommunication = absl::StrContains(text, "_") || absl::StrContains(text, "SHARD");
    return refuseCell(line, column,
                      absl::StrCat("'", text.substr(0, 80), "' is no action",
                                   isCommunication ? "; leave communication out, it is added to the table"
                                                   : "; write F0, B0, I0 or W0, F0.1 for chunk 1, or 5F0 for stage 5"));
  }
  cell.kind = *kind;
  cell.microbatch = *microbatch;
  if (cell.microbatch >= numMicrobatches)
    return refuseCell(line, column,
                      absl::StrCat("'", text, "' is of microbatch ", cell.microbatch, ", but the step has ",
                                   numMicrobatches,
                                   ", counted from 0; the number of microbatches must be that of the table"));
  cells.push_back(cell);
  return absl::OkStatus();
}

absl::Status TableParser::parseCell(absl::string_view text, int line, int column, std::vector<Cell> &cells) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2));
  if (text.empty())
    return absl::OkStatus();
  char separator = '&';
  absl::string_view inner = text;
  if (absl::ConsumePrefix(&inner, "(") && absl::ConsumeSuffix(&inner, ")OVERLAP_F_B")) {
    text = inner;
    separator = ';';
  }
  std::vector<absl::string_view> actions = absl::StrSplit(text, absl::MaxSplits(separator, 2));
  if (actions.size() > 2)
    return refuseCell(line, column, "more than two actions overlap; a forward and a backward may");
  for (absl::string_view action : actions)
    if (absl::Status status = parseAction(absl::StripAsciiWhitespace(action), line, column, cells); !status.ok())
      return status;
  if (actions.size() == 2)
    cells[cells.size() - 2].overlapsNext = true;
  return absl::OkStatus();
}

absl::Status TableParser::parseLine(absl::string_view text, int line) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text.front() == '#')
    return absl::OkStatus();
  if (ranks.size() == static_cast<size_t>(numRanks))
    return refuseCell(line, 1,
                      absl::StrCat("the table has more than ", numRanks,
                                   " lines, but the pipeline has that many ranks; write one line per rank"));
  std::vector<Cell> &cells = ranks.emplace_back();
  int column = 0;
  for (absl::string_view cell : absl::StrSplit(text, ','))
    if (absl::Status status = parseCell(cell, line, ++column, cells); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<Placement> TableParser::placeByStages() const {
  std::vector<std::vector<int>> stages;
  for (const std::vector<Cell> &cells : ranks) {
    std::set<int> held;
    for (const Cell &cell : cells)
      held.insert(*cell.stage);
    stages.emplace_back(held.begin(), held.end());
  }
  if (absl::Status status = Placement::verify(stages); !status.ok())
    return refuse(status.message());
  return Placement(std::move(stages));
}

absl::StatusOr<Placement> TableParser::placeByChunks() const {
  int numChunks = 1;
  for (const std::vector<Cell> &cells : ranks)
    for (const Cell &cell : cells) {
      int chunk = cell.chunk.value_or(0);
      // A step has every chunk at least once, so that there are no more than cells.
      if (chunk >= UINT16_MAX || static_cast<size_t>(chunk) >= cells.size())
        return refuseCell(
            cell.line, cell.column,
            absl::StrCat("chunk ", chunk, " is more than the rank's ", cells.size(), " actions can be of"));
      numChunks = std::max(numChunks, chunk + 1);
    }
  return Placement::roundRobin(numRanks, numChunks);
}

absl::StatusOr<Schedule> TableParser::parse(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF"); // the mark that spreadsheets begin a file with
  int line = 0;
  for (absl::string_view row : absl::StrSplit(text, '\n'))
    if (absl::Status status = parseLine(row, ++line); !status.ok())
      return status;
  if (ranks.size() != static_cast<size_t>(numRanks))
    return refuse(absl::StrCat("the pipeline has ", numRanks, " ranks, but lines with actions in the table are ",
                               ranks.size(), "; write one line per rank"));

  const Cell *first = nullptr;
  for (const std::vector<Cell> &cells : ranks)
    for (const Cell &cell : cells) {
      if (!first)
        first = &cell;
      if (cell.stage.has_value() != first->stage.has_value())
        return refuseCell(cell.line, cell.column,
                          "only some actions begin with a stage, as in 5F0; write it "
                          "everywhere or nowhere");
    }
  absl::StatusOr<Placement> placement = first && first->stage ? placeByStages() : placeByChunks();
  if (!placement.ok())
    return placement.status();
  if (absl::Status status = verifyScheduleSize(numRanks, numMicrobatches, placement->numChunks()); !status.ok())
    return refuse(status.message());

  Schedule schedule{*std::move(placement), numMicrobatches, {}};
  for (const std::vector<Cell> &cells : ranks) {
    std::vector<Action> &actions = schedule.ranks.emplace_back();
    for (const Cell &cell : cells) {
      int chunk = cell.stage ? schedule.placement.chunkOf(*cell.stage) : cell.chunk.value_or(0);
      actions.push_back({cell.kind, cell.overlapsNext, static_cast<uint16_t>(chunk), cell.microbatch});
    }
  }
  if (absl::Status status = validateSchedule(schedule); !status.ok())
    return refuse(status.message());
  return schedule;
}

absl::StatusOr<Schedule> bowline::parseScheduleTable(absl::string_view text, absl::string_view name, int ranks,
                                                     int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 1); !status.ok())
    return status;
  return TableParser(name, ranks, microbatches).parse(text);
}

std::string bowline::formatScheduleTable(const Schedule &schedule) {
  const Placement &placement = schedule.placement;
  bool isRoundRobin = placement == Placement::roundRobin(placement.numRanks(), placement.numChunks());
  std::string text;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const char *separator = "";
    for (const Action &action : schedule.ranks[rank]) {
      absl::StrAppend(&text, separator);
      if (!isRoundRobin)
        absl::StrAppend(&text, schedule.stageOf(static_cast<int>(rank), action));
      text += letterOf(action.kind);
      absl::StrAppend(&text, action.microbatch);
      if (isRoundRobin && placement.numChunks() > 1)
        absl::StrAppend(&text, ".", action.chunk);
      separator = action.overlapsNext ? "&" : ",";
    }
    text += '\n';
  }
  return text;
}
