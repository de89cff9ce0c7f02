//===- RaceCheck.cpp - conflicts that nothing orders ----------------------===//

#include "checker/RaceCheck.h"

#include "checker/ByteCells.h"
#include "checker/Counterexample.h"
#include "runtime/plan/view/matching.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace bowline {

RaceCheck::RaceCheck(const Timeline &timeline, uint32_t entry, const OrderThroughRanks *through)
    : timeline_(timeline), entry_(entry), order_(timeline.programOf(entry), IssueMode::Asynchronous), through_(through),
      lastUse_(SizeOf(timeline.plan().communicators())) {}

std::string RaceCheck::streamOf(CommandSite site) const {
  return Quoted(timeline_.programOf(entry_).streams()->Get(timeline_.commandAt(site).stream()));
}

std::string RaceCheck::describe(const Access &access) const {
  OperandAccess operand;
  operand.buffer = access.buffer;
  operand.slot = access.slot;
  return absl::StrCat(timeline_.describe(access.site), ", on stream ", streamOf(access.site), ", ",
                      access.writes ? "writes" : "reads", " ", timeline_.describe(operand));
}

absl::Status RaceCheck::checkAfter(const Cells::value_type &cell, ByteRange range, const Access &access) const {
  const auto conflict = [&](const Access &earlier) {
    const ByteRange both{std::max(range.begin, cell.first), std::min(range.end, cell.second.end)};
    const std::string first = streamOf(earlier.site), second = streamOf(access.site);
    return counterexample("no race",
                          absl::StrCat(describe(earlier), "; ", describe(access), "; both touch bytes ",
                                       bowline::describe(both), ", and nothing orders the two: signal an event on ",
                                       first, " after the first and wait for it on ", second, " before the second"));
  };
  if (cell.second.writer.stamp.place > 0 && !order_.precedes(cell.second.writer.stamp, access.stamp.stream))
    return conflict(cell.second.writer);
  if (access.writes)
    for (const Access &reader : cell.second.readers)
      if (!order_.precedes(reader.stamp, access.stamp.stream))
        return conflict(reader);
  return absl::OkStatus();
}

void RaceCheck::addReader(Cell &cell, const Access &access) {
  for (Access &reader : cell.readers)
    if (reader.stamp.stream == access.stamp.stream) {
      reader = access;
      return;
    }
  cell.readers.push_back(access);
}

absl::Status RaceCheck::touch(ByteRange range, const Access &access) {
  if (range.bytes() == 0)
    return absl::OkStatus();
  ++accessFacts_;
  auto cell = cells_.find(range.begin);
  if (cell == cells_.end() || cell->second.end != range.end) {
    splitCells(cells_, range.begin);
    splitCells(cells_, range.end);
    cell = cells_.lower_bound(range.begin);
  }
  for (auto each = cell; each != cells_.end() && each->first < range.end; ++each)
    BOWLINE_RETURN_IF_ERROR(checkAfter(*each, range, access));
  if (access.writes) {
    // The range becomes one cell, which it usually is already.
    if (cell == cells_.end() || cell->first != range.begin || cell->second.end != range.end) {
      cell = cells_.erase(cell, cells_.lower_bound(range.end));
      cell = cells_.emplace_hint(cell, range.begin, Cell{range.end, {}, {}});
    }
    cell->second.writer = access;
    cell->second.readers.clear();
    return absl::OkStatus();
  }
  for (uint64_t at = range.begin; at < range.end; ++cell) {
    if (cell == cells_.end() || cell->first > at) {
      const uint64_t end = cell == cells_.end() ? range.end : std::min(range.end, cell->first);
      cell = cells_.emplace_hint(cell, at, Cell{end, {}, {}});
    }
    addReader(cell->second, access);
    at = cell->second.end;
  }
  return absl::OkStatus();
}

absl::Status RaceCheck::checkSerial(CommandSite site, uint32_t communicator, StreamOrder::Stamp stamp) {
  ++communicatorFacts_;
  LastUse &last = lastUse_[communicator];
  if (last.stamp.place > 0 && !order_.precedes(last.stamp, stamp.stream))
    return counterexample(
        "one stream", absl::StrCat(timeline_.describe(last.site), ", on stream ", streamOf(last.site), "; and ",
                                   timeline_.describe(site), ", on stream ", streamOf(site),
                                   "; nothing orders the two, but a communicator serves one operation at a time: give "
                                   "each stream a communicator of its own, or order the two by an event"));
  last = {stamp, site};
  return absl::OkStatus();
}

absl::Status RaceCheck::checkCommand(CommandSite site, const fbs::Command &command,
                                     absl::Span<const OperandAccess> accesses) {
  const uint32_t slot = timeline_.programOf(entry_).timeline()->Get(site.call)->slot();
  if (const fbs::Signal *signal = command.body_as_Signal()) {
    order_.signal(command.stream(), EventOf(*signal, slot));
    return absl::OkStatus();
  }
  if (const fbs::Wait *wait = command.body_as_Wait()) {
    ++waitFacts_;
    if (order_.wait(command.stream(), EventOf(*wait, slot)))
      return absl::OkStatus();
    return counterexample("events", absl::StrCat(timeline_.describe(site), ": nothing signalled event ",
                                                 EventOf(*wait, slot), " in this entry before"));
  }
  // Accesses are compared with earlier commands before this one gets its place.
  Access access;
  access.stamp = {order_.clock(command.stream())[command.stream()] + 1, command.stream()};
  access.site = site;
  if (const auto communicator = CommunicatorOf(command))
    BOWLINE_RETURN_IF_ERROR(checkSerial(site, *communicator, access.stamp));
  for (const bool writes : {false, true}) {
    for (const OperandAccess &operand : accesses) {
      if (!(writes ? operand.writes : operand.reads))
        continue;
      access.buffer = operand.buffer;
      access.slot = operand.slot;
      access.writes = writes;
      // A command does not race with its own accesses; aliasing is another proof's.
      BOWLINE_RETURN_IF_ERROR(touch(operand.range, access));
    }
  }
  order_.issue(command.stream());
  if (through_ != nullptr && CommunicatesBetweenRoles(timeline_.plan(), command))
    order_.join(command.stream(), through_->of(timeline_.programOf(entry_).role())[nextBetweenRoles_++]);
  return absl::OkStatus();
}

absl::Status RaceCheck::check() {
  absl::Status status;
  timeline_.forEachCommand(
      entry_, [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
        status = checkCommand(site, command, accesses);
        return status.ok();
      });
  return status;
}

} // namespace bowline
