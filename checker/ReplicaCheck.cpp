//===- ReplicaCheck.cpp - copies that ranks keep stay equal ---------------===//

#include "checker/ReplicaCheck.h"

#include "checker/ByteCells.h"
#include "checker/Counterexample.h"
#include "runtime/plan/view/matching.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/preparation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <numeric>

namespace bowline {

void ByteAxes::set(ByteRange range, AxisSet axes, const Origin &origin) {
  if (range.bytes() == 0)
    return;
  auto cell = cells_.find(range.begin);
  if (cell != cells_.end() && cell->second.end == range.end) { // as it usually is
    cell->second = {range.end, axes, origin};
    return;
  }
  splitCells(cells_, range.begin);
  splitCells(cells_, range.end);
  cell = cells_.erase(cells_.lower_bound(range.begin), cells_.lower_bound(range.end));
  cells_.emplace_hint(cell, range.begin, Cell{range.end, axes, origin});
}

AxisSet ByteAxes::get(ByteRange range) const {
  AxisSet axes = 0;
  auto cell = cells_.upper_bound(range.begin);
  if (cell != cells_.begin())
    --cell;
  for (; cell != cells_.end() && cell->first < range.end; ++cell)
    if (cell->second.end > range.begin)
      axes |= cell->second.axes;
  return axes;
}

ByteAxes::Origin ByteAxes::originOf(ByteRange range, AxisSet axes) const {
  auto cell = cells_.upper_bound(range.begin);
  if (cell != cells_.begin())
    --cell;
  for (; cell != cells_.end() && cell->first < range.end; ++cell)
    if (cell->second.end > range.begin && (cell->second.axes & axes) != 0)
      return cell->second.origin;
  return {};
}

static AxisSet setOf(const flatbuffers::Vector<uint8_t> *axes) {
  AxisSet set = 0;
  for (uint32_t i = 0; i < SizeOf(axes); ++i)
    set |= AxisSet{1} << axes->Get(i);
  return set;
}

ReplicaCheck::ReplicaCheck(const Timeline &timeline, absl::string_view entry, const Communications &communications,
                           absl::Span<const uint32_t> numbers, PreparedAxes &prepared)
    : timeline_(timeline), plan_(timeline.plan()), communications_(communications), numbers_(numbers),
      prepared_(prepared), walks_(RoleCount(plan_)), areResults_(FindPreparedBuffers(plan_)) {
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i)
    if (TextOf(plan_.entries()->Get(i)->name()) == entry)
      walks_[timeline.programOf(i).role()].entry = i;
  for (uint32_t i = 0; i < SizeOf(plan_.mesh()); ++i)
    if (plan_.mesh()->Get(i)->size() > 1 && !(walks_.size() > 1 && i == plan_.role_axis()))
      axes_ |= AxisSet{1} << i;
}

AxisSet ReplicaCheck::layoutAxes(const fbs::Buffer &buffer) const {
  const fbs::Layout *layout = buffer.layout();
  if (!layout)
    return 0;
  AxisSet axes = setOf(layout->flat_axes());
  for (uint32_t i = 0; i < SizeOf(layout->dim_shardings()); ++i)
    axes |= setOf(layout->dim_shardings()->Get(i)->axes());
  return axes & axes_;
}

void ReplicaCheck::begin(Walk &walk) const {
  const auto set = [&](uint32_t index, AxisSet axes) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
    if (buffer.role() != timeline_.programOf(walk.entry).role())
      return;
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
      walk.bytes.set(RangeOf(buffer, slot), axes & axes_);
  };
  const fbs::Entry &entry = *plan_.entries()->Get(walk.entry);
  if (entry.kind() != fbs::EntryKind::Init)
    for (const fbs::State *state : *plan_.states())
      set(state->buffer(), layoutAxes(*plan_.buffers()->Get(state->buffer())));
  for (uint32_t i = 0; i < SizeOf(plan_.coordinates()); ++i)
    set(plan_.coordinates()->Get(i)->buffer(), setOf(plan_.coordinates()->Get(i)->axes()));
  for (const auto &[buffer, axes] : prepared_)
    set(buffer, axes);
  for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
    const uint32_t buffer = entry.inputs()->Get(i)->buffer();
    set(buffer, layoutAxes(*plan_.buffers()->Get(buffer)));
  }
}

AxisSet ReplicaCheck::placeAxes(const OperandAccess &access) const {
  return access.byRank ? setOf(plan_.buffers()->Get(*access.byRank)->view()->axes()) & axes_ : 0;
}

AxisSet ReplicaCheck::readAt(const Walk &walk, const OperandAccess &access) const {
  return walk.bytes.get(access.range) | placeAxes(access);
}

void ReplicaCheck::writeAt(Walk &walk, const OperandAccess &access, AxisSet axes,
                           const ByteAxes::Origin &origin) const {
  // Other ranks have other bytes of the range from now on; earlier bytes that no rank overwrites stay.
  if (access.byRank)
    axes |= walk.bytes.get(access.range) | placeAxes(access);
  walk.bytes.set(access.range, axes, origin);
}

std::vector<AxisSet> ReplicaCheck::read(const Walk &walk, CommandSite site) {
  timeline_.accessesOf(site, accesses_);
  std::vector<AxisSet> pieces;
  for (const OperandAccess &access : accesses_)
    if (access.reads)
      pieces.push_back(readAt(walk, access));
  return pieces;
}

void ReplicaCheck::write(Walk &walk, CommandSite site, const std::vector<AxisSet> &pieces) {
  timeline_.accessesOf(site, accesses_);
  size_t next = 0;
  for (const OperandAccess &access : accesses_)
    if (access.writes)
      writeAt(walk, access, pieces[next++], {site, std::nullopt});
}

/// The axes along which the results of a collective differ, of which those of the sources are given. `group` is the
/// axes of its communicator, without the one that tells roles apart.
static AxisSet resultAxes(const fbs::Collective &collective, AxisSet sources, AxisSet group, bool spansRoles) {
  switch (collective.kind()) {
  case fbs::CollectiveKind::AllReduce:
  case fbs::CollectiveKind::AllGather:
    return sources & ~group;
  case fbs::CollectiveKind::ReduceScatter:
  case fbs::CollectiveKind::AllToAll:
    return sources | group;
  case fbs::CollectiveKind::Permute:
    // Places are numbered along all axes of the group at once, and a shift of them moves along each. Neighbours of one
    // role have sources of several roles.
    return (sources & group) != 0 || spansRoles ? sources | group : sources;
  }
  return sources | group;
}

void ReplicaCheck::execute(Walk &walk, CommandSite site, const fbs::Command &command) {
  if (const fbs::Collective *collective = command.body_as_Collective()) {
    const AxisSet group = setOf(plan_.communicators()->Get(collective->communicator())->axes()) & axes_;
    std::vector<AxisSet> pieces = read(walk, site);
    for (AxisSet &piece : pieces)
      piece = resultAxes(*collective, piece, group, SpansRoles(plan_, collective->communicator()));
    return write(walk, site, pieces);
  }
  timeline_.accessesOf(site, accesses_);
  const Dependences *dependences = nullptr;
  if (const fbs::Launch *launch = command.body_as_Launch()) {
    const auto [known, isNew] = dependences_.try_emplace(launch->kernel());
    if (isNew)
      known->second = dependencesOf(*plan_.kernels()->Get(launch->kernel()));
    dependences = &known->second;
  }
  // All results are computed before one of them is written, maybe over what is read.
  struct Result {
    OperandAccess written;
    AxisSet axes = 0;
    ByteAxes::Origin origin;
  };
  std::vector<Result> results;
  const auto add = [&](Result &result, uint32_t input) {
    const OperandAccess &access = accesses_[input];
    const AxisSet differs = access.reads ? readAt(walk, access) : 0;
    if ((differs & ~result.axes) != 0)
      result.origin.operand = access;
    result.axes |= differs;
  };
  for (uint32_t output = 0; output < accesses_.size(); ++output) {
    if (!accesses_[output].writes)
      continue;
    Result &result = results.emplace_back(Result{accesses_[output], 0, {site, std::nullopt}});
    const auto known = dependences ? dependences->find(output) : Dependences::const_iterator();
    const bool isKnown = dependences && known != dependences->end();
    for (uint32_t i = 0; i < (isKnown ? known->second.size() : accesses_.size()); ++i)
      add(result, isKnown ? known->second[i] : i);
  }
  for (const Result &result : results)
    writeAt(walk, result.written, result.axes, result.origin);
}

void ReplicaCheck::advance(Walk &walk, std::optional<CommandSite> site) {
  const fbs::Program &program = timeline_.programOf(walk.entry);
  for (; walk.call < SizeOf(program.timeline()); ++walk.call, walk.command = 0) {
    const fbs::Segment &segment = *program.segments()->Get(program.timeline()->Get(walk.call)->segment());
    for (; walk.command < SizeOf(segment.commands()); ++walk.command) {
      if (site && site->call == walk.call && site->command == walk.command)
        return;
      execute(walk, {walk.entry, walk.call, walk.command}, *segment.commands()->Get(walk.command));
    }
  }
}

void ReplicaCheck::exchange(uint32_t operation) {
  const std::vector<Participation> &members = communications_.membersOf(operation);
  std::vector<AxisSet> pieces;
  const fbs::Collective *collective = nullptr;
  for (const Participation member : members) {
    const Communications::Part &part = communications_.at(member);
    Walk &walk = walks_[member.role];
    advance(walk, part.site);
    collective = part.command->body_as_Collective();
    const std::vector<AxisSet> given = read(walk, part.site);
    pieces.resize(std::max(pieces.size(), given.size()));
    for (size_t i = 0; i < given.size(); ++i)
      pieces[i] |= given[i];
  }
  if (collective) {
    const AxisSet group = setOf(plan_.communicators()->Get(collective->communicator())->axes()) & axes_;
    for (AxisSet &piece : pieces)
      piece = resultAxes(*collective, piece, group, SpansRoles(plan_, collective->communicator()));
  }
  for (const Participation member : members) {
    Walk &walk = walks_[member.role];
    write(walk, communications_.at(member).site, pieces);
    ++walk.command;
  }
}

std::string ReplicaCheck::nameAxes(AxisSet axes) const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < SizeOf(plan_.mesh()); ++i)
    if ((axes >> i & 1) != 0)
      names.push_back(Quoted(plan_.mesh()->Get(i)->name()));
  return absl::StrJoin(names, ", ");
}

absl::Status ReplicaCheck::compare(const Walk &walk, uint32_t index, const std::string &what) {
  const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
  const AxisSet equal = axes_ & ~layoutAxes(buffer);
  for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
    const ByteRange range = RangeOf(buffer, slot);
    const AxisSet wrong = walk.bytes.get(range) & equal;
    if (wrong == 0)
      continue;
    const ByteAxes::Origin origin = walk.bytes.originOf(range, wrong);
    return counterexample(
        "replicas",
        absl::StrCat("entry ", Quoted(plan_.entries()->Get(walk.entry)->name()), " leaves ", what, " (buffer ", index,
                     ") different along ", nameAxes(wrong), ", where its layout says that all ranks have the same: ",
                     origin.writer ? absl::StrCat(timeline_.describe(*origin.writer), " wrote it")
                                   : std::string("it was so before"),
                     origin.operand
                         ? absl::StrCat(", which reads ", timeline_.describe(*origin.operand), ", which differs there")
                         : std::string(),
                     "; reduce or gather its operands along these axes first"));
  }
  facts_ += static_cast<uint64_t>(__builtin_popcountll(equal));
  return absl::OkStatus();
}

absl::Status ReplicaCheck::finish(const Walk &walk) {
  const fbs::Entry &entry = *plan_.entries()->Get(walk.entry);
  const uint16_t role = timeline_.programOf(walk.entry).role();
  for (const fbs::State *state : *plan_.states())
    if (plan_.buffers()->Get(state->buffer())->role() == role)
      BOWLINE_RETURN_IF_ERROR(compare(walk, state->buffer(), absl::StrCat("state ", Quoted(state->key()))));
  for (uint32_t i = 0; i < SizeOf(entry.feeds()); ++i) {
    const fbs::Port &output = *entry.outputs()->Get(entry.feeds()->Get(i)->output());
    const fbs::Port &input = *entry.inputs()->Get(entry.feeds()->Get(i)->input());
    const AxisSet wrong = walk.bytes.get(ExtentOf(*plan_.buffers()->Get(output.buffer()))) & axes_ &
                          ~layoutAxes(*plan_.buffers()->Get(input.buffer()));
    if (wrong != 0)
      return counterexample("replicas",
                            absl::StrCat("entry ", Quoted(entry.name()), " gives output ", Quoted(output.name()),
                                         ", which differs along ", nameAxes(wrong), ", to input ", Quoted(input.name()),
                                         " of its next run, which all ranks have the same of"));
  }
  if (entry.kind() == fbs::EntryKind::Custom)
    return absl::OkStatus(); // its results are unknown
  for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i) {
    const fbs::Port &port = *entry.outputs()->Get(i);
    BOWLINE_RETURN_IF_ERROR(compare(walk, port.buffer(), absl::StrCat("output ", Quoted(port.name()))));
  }
  return absl::OkStatus();
}

absl::Status ReplicaCheck::check() {
  for (Walk &walk : walks_)
    begin(walk);
  std::vector<uint32_t> order(communications_.operations());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return numbers_[a] < numbers_[b]; });
  for (const uint32_t operation : order)
    exchange(operation);
  for (Walk &walk : walks_) {
    advance(walk, std::nullopt);
    BOWLINE_RETURN_IF_ERROR(finish(walk));
    if (plan_.entries()->Get(walk.entry)->kind() == fbs::EntryKind::Prepare)
      for (uint32_t i = 0; i < areResults_.size(); ++i) {
        const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
        if (areResults_[i] && buffer.role() == timeline_.programOf(walk.entry).role())
          prepared_[i] = walk.bytes.get(ExtentOf(buffer));
      }
  }
  return absl::OkStatus();
}

} // namespace bowline
