#include "runtime/plan/meaning/role_values.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/plan/meaning/digest_tags.h"
#include "runtime/plan/meaning/meaning_interface.h"
#include "runtime/plan/view/buffer_view.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/matching.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/preparation.h"

namespace bowline {
namespace {

// The most pieces kept at once: those in the arenas, and those sent and not yet received.
constexpr uint64_t kMostPieces = uint64_t{1} << 21;

// Replaces `pieces` by those of the `bytes` from `begin` on of the value whose pieces are `from`.
void Slice(const ValuePieces& from, uint64_t begin, uint64_t bytes, ValuePieces& pieces) {
  pieces.clear();
  for (const ValuePiece& piece : from) {
    const uint64_t skipped = std::min(begin, piece.bytes), taken = std::min(bytes, piece.bytes - skipped);
    if (taken > 0) Append(pieces, {piece.value, piece.offset + skipped, taken});
    begin -= skipped;
    bytes -= taken;
  }
}

void AddView(const fbs::View& view, DigestBuilder& builder) {
  builder.Add(view.stride()).Add(SizeOf(view.axes()));
  for (const uint8_t axis : *view.axes()) builder.Add(axis);
}

}  // namespace

PlanDigests::PlanDigests(const fbs::Plan& p)
    : plan(p),
      meter(kMostMeaningSteps, kMostPieces),
      kernels(p, meter),
      buffers_of_role(RoleCount(p)),
      state_of_buffer(p.buffers()->size()),
      contents(p.buffers()->size()),
      interfaces(InterfacesOfRoles(p)),
      same_views(FindSameViews(p)) {
  for (uint32_t i = 0; i < p.buffers()->size(); ++i) buffers_of_role[p.buffers()->Get(i)->role()].push_back(i);
  for (const fbs::State* state : *p.states()) state_of_buffer[state->buffer()] = state;
  for (uint32_t i = 0; i < SizeOf(p.constants()); ++i) {
    const fbs::ConstantData& constant = *p.constants()->Get(i);
    contents[constant.buffer()] = DigestBuilder(kConstantTag)
                                      .Add(DigestOfData({constant.data()->data(), constant.data()->size()}, meter))
                                      .Finish();
  }
  for (uint32_t i = 0; i < SizeOf(p.coordinates()); ++i) {
    const fbs::Coordinate& coordinate = *p.coordinates()->Get(i);
    DigestBuilder builder(kCoordinateTag);
    builder.Add(p.buffers()->Get(coordinate.buffer())->role()).Add(SizeOf(coordinate.axes()));
    for (uint32_t a = 0; a < SizeOf(coordinate.axes()); ++a) builder.Add(coordinate.axes()->Get(a));
    contents[coordinate.buffer()] = builder.Finish();
  }
}

RoleValues::RoleValues(PlanDigests& shared, uint32_t entry)
    : shared_(shared),
      plan_(shared.plan),
      entry_(*plan_.entries()->Get(entry)),
      program_(*plan_.programs()->Get(entry_.program())),
      role_(program_.role()),
      values_(shared.meter),
      segments_(SizeOf(program_.segments())) {
  SetInitial();
}

void RoleValues::SetInitial() {
  // Pairs of an input's buffer and name, sorted, so that a buffer with several names has its least name first.
  std::vector<std::pair<uint32_t, absl::string_view>> inputs;
  for (uint32_t i = 0; i < SizeOf(entry_.inputs()); ++i) {
    inputs.emplace_back(entry_.inputs()->Get(i)->buffer(), TextOf(entry_.inputs()->Get(i)->name()));
  }
  std::sort(inputs.begin(), inputs.end());
  // States without a name in checkpoints are told apart by the names of their buffers, then by their order.
  std::map<absl::string_view, uint64_t> unnamed;
  for (const uint32_t index : shared_.buffers_of_role[role_]) {
    shared_.meter.Spend(1);
    if (shared_.meter.exhausted()) return;
    const fbs::Buffer& buffer = *plan_.buffers()->Get(index);
    // Faults change no result, and are over when a run has none.
    if (!IsPersistent(buffer.kind()) || buffer.kind() == fbs::BufferKind::Fault || buffer.bytes() == 0) continue;
    Digest content = shared_.contents[index];
    if (buffer.kind() == fbs::BufferKind::Input) {
      const auto port = std::lower_bound(inputs.begin(), inputs.end(), std::make_pair(index, absl::string_view()));
      const bool is_port = port != inputs.end() && port->first == index;
      DigestBuilder builder(is_port ? kInputTag : kForeignInputTag);
      builder.Add(role_);
      content = (is_port ? builder.Add(port->second) : builder.Add(index)).Finish();
    } else if (const fbs::State* state = shared_.state_of_buffer[index]) {
      DigestBuilder builder(kStateTag);
      content = builder.Add(role_).Add(static_cast<uint64_t>(state->flags())).Add(TextOf(state->key())).Finish();
    } else if (IsState(buffer.kind())) {
      DigestBuilder builder(kUnnamedStateTag);
      content = builder.Add(role_).Add(TextOf(buffer.name())).Add(unnamed[TextOf(buffer.name())]++).Finish();
    }
    for (uint32_t slot = 0; slot < buffer.slots() && !shared_.meter.exhausted(); ++slot) {
      const Digest value = buffer.slots() == 1 ? content : DigestBuilder(kResultTag).Add(slot).Add(content).Finish();
      values_.Write(RangeOf(buffer, slot), value);
      initial_.push_back({index, slot, value});
    }
  }
}

void RoleValues::Store(const fbs::Command& command, Segment& segment) {
  Stored stored{&command, static_cast<uint32_t>(segment.uses.size()), 0, CommunicatesBetweenRoles(plan_, command)};
  const fbs::Launch* launch = command.body_as_Launch();
  std::vector<OperandUse> uses;
  AppendOperands(plan_, command, uses);
  for (const OperandUse& use : uses) {
    const uint32_t buffer = use.operand->buffer();
    const bool scratch = plan_.buffers()->Get(buffer)->kind() == fbs::BufferKind::Scratch;
    const bool fault = plan_.buffers()->Get(buffer)->kind() == fbs::BufferKind::Fault;
    segment.uses.push_back({buffer, use.operand->offset(), use.bytes, use.access, scratch, /*workspace=*/fault,
                            SpreadOf(plan_, *plan_.buffers()->Get(buffer))});
  }
  if (launch != nullptr) {
    if (HasScratchOperand(plan_, *launch)) segment.uses.back().workspace = true;
    const absl::optional<Digest>& promises = shared_.kernels.Promises(*launch);
    if (promises.has_value()) promises_.insert(*promises);
  }
  stored.count = static_cast<uint32_t>(segment.uses.size()) - stored.first;
  const bool waits_or_signals = stored.count == 0 && launch == nullptr;
  if (!waits_or_signals) segment.commands.push_back(stored);
  shared_.meter.Spend(1 + stored.count);
}

const RoleValues::Segment& RoleValues::SegmentAt(uint32_t index) {
  Segment& segment = segments_[index];
  if (!segment.known) {
    segment.known = true;
    const auto* commands = program_.segments()->Get(index)->commands();
    for (uint32_t i = 0; i < SizeOf(commands) && !shared_.meter.exhausted(); ++i) {
      Store(*commands->Get(i), segment);
    }
  }
  return segment;
}

void RoleValues::Enter(const Segment& segment, const Stored& stored) {
  const uint32_t slot = program_.timeline()->Get(call_)->slot();
  uses_ = absl::MakeConstSpan(segment.uses).subspan(stored.first, stored.count);
  ranges_.clear();
  for (const Use& use : uses_) {
    const uint64_t begin = RangeOf(*plan_.buffers()->Get(use.buffer), slot).begin + use.offset;
    ranges_.push_back({begin, begin + use.spread + use.bytes});
  }
}

void RoleValues::Advance() {
  pending_ = nullptr;
  for (; call_ < SizeOf(program_.timeline()) && !shared_.meter.exhausted(); ++call_, next_ = 0) {
    const Segment& segment = SegmentAt(program_.timeline()->Get(call_)->segment());
    shared_.meter.Spend(1);
    while (next_ < segment.commands.size() && !shared_.meter.exhausted()) {
      const Stored& stored = segment.commands[next_++];
      Enter(segment, stored);
      if (stored.between_roles) {
        pending_ = stored.command;
        return;
      }
      switch (stored.command->body_type()) {
        case fbs::CommandBody::Launch:
          Launch(*stored.command);
          break;
        case fbs::CommandBody::Copy:
          Copy(*stored.command);
          break;
        case fbs::CommandBody::Collective:
          Collective(*stored.command);
          break;
        case fbs::CommandBody::Send:
        case fbs::CommandBody::Receive:
          break;  // between roles, and so pending
        case fbs::CommandBody::Signal:
        case fbs::CommandBody::Wait:
        case fbs::CommandBody::NONE:
          break;  // not stored
      }
    }
  }
}

std::string RoleValues::DescribePlace() const {
  const fbs::Segment& segment = *program_.segments()->Get(program_.timeline()->Get(call_)->segment());
  return absl::StrCat("call ", call_, ": segment ", Quoted(segment.name()), ": ", DescribeCommand(plan_, *pending_));
}

bool RoleValues::MayShare(const fbs::Command& command, uint32_t output, uint32_t input) {
  if (const fbs::Launch* launch = command.body_as_Launch()) {
    return shared_.kernels.MayShare(launch->kernel(), output, input) &&
           LieAlike(*plan_.buffers()->Get(uses_[output].buffer), *plan_.buffers()->Get(uses_[input].buffer));
  }
  const fbs::Collective* collective = command.body_as_Collective();
  if (collective == nullptr || input % 2 != 0 || output != input + 1) return false;
  const uint64_t part = collective->pieces()->Get(input / 2)->count() * ElementSize(collective->dtype());
  return MayBeInPlace(plan_, *collective, part, *plan_.buffers()->Get(uses_[input].buffer),
                      *plan_.buffers()->Get(uses_[output].buffer));
}

// Operands in the order of their bytes. Those with equal bytes are one group, in which a write needs a promise for each
// other operand; a group that overlaps another one must not write, nor may the other.
bool RoleValues::Overlaps(const fbs::Command& command) {
  order_.clear();
  for (uint32_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].bytes() > 0) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(ranges_[a].begin, ranges_[a].end) < std::tie(ranges_[b].begin, ranges_[b].end);
  });
  uint64_t end = 0, written_end = 0;
  for (size_t first = 0, last = 0; first < order_.size(); first = last) {
    const ByteRange range = ranges_[order_[first]];
    uint32_t writer = 0, writers = 0;
    for (; last < order_.size() && ranges_[order_[last]] == range; ++last) {
      if (!Writes(uses_[order_[last]].access)) continue;
      writer = order_[last];
      ++writers;
    }
    if (range.begin < written_end || (writers > 0 && range.begin < end) || writers > 1) return true;
    for (size_t i = first; i < last && writers == 1; ++i) {
      if (order_[i] != writer && !MayShare(command, writer, order_[i])) return true;
    }
    end = std::max(end, range.end);
    if (writers > 0) written_end = std::max(written_end, range.end);
  }
  return false;
}

void RoleValues::ForgetParts(ByteRange range) {
  shared_.meter.Spend(parts_.size());
  for (const Part& part : parts_) {
    if (part.range.Overlaps(range)) shared_.meter.Drop(part.pieces.size());
  }
  std::erase_if(parts_, [&](const Part& part) { return part.range.Overlaps(range); });
}

void RoleValues::Read(size_t i, ValuePieces& pieces) {
  const fbs::Buffer& buffer = *plan_.buffers()->Get(uses_[i].buffer);
  if (!LiesByRank(buffer)) return values_.Read(ranges_[i], pieces);
  shared_.meter.Spend(parts_.size());
  for (const Part& part : parts_) {
    if (part.view != shared_.same_views[uses_[i].buffer] || part.range.begin > ranges_[i].begin ||
        part.range.end < ranges_[i].end) {
      continue;
    }
    // Both ranges begin and end as far from the rank's own bytes.
    Slice(part.pieces, ranges_[i].begin - part.range.begin, uses_[i].bytes, pieces);
    return;
  }
  DigestBuilder builder(kPartTag);
  AddView(*buffer.view(), builder);
  pieces = {{builder.Add(uses_[i].bytes).Add(values_.DigestOf(ranges_[i])).Finish(), 0, uses_[i].bytes}};
}

Digest RoleValues::DigestOf(size_t i) {
  if (!LiesByRank(*plan_.buffers()->Get(uses_[i].buffer))) return values_.DigestOf(ranges_[i]);
  ValuePieces pieces;
  Read(i, pieces);
  return bowline::DigestOf(pieces);
}

void RoleValues::Write(size_t i, absl::Span<const ValuePiece> pieces) {
  const fbs::Buffer& buffer = *plan_.buffers()->Get(uses_[i].buffer);
  ForgetParts(ranges_[i]);
  if (!LiesByRank(buffer)) return values_.Write(ranges_[i], pieces);
  DigestBuilder builder(kPartWrittenTag);
  AddView(*buffer.view(), builder);
  builder.Add(values_.DigestOf(ranges_[i])).Add(bowline::DigestOf(pieces));
  values_.Write(ranges_[i], builder.Finish());
  parts_.push_back({shared_.same_views[uses_[i].buffer], ranges_[i], {pieces.begin(), pieces.end()}});
  shared_.meter.Keep(pieces.size());
}

void RoleValues::Erase(size_t i) {
  ForgetParts(ranges_[i]);
  values_.Erase(ranges_[i]);
}

void RoleValues::Launch(const fbs::Command& command) {
  const bool overlaps = Overlaps(command);
  DigestBuilder builder(kLaunchTag);
  builder.Add(shared_.kernels.Of(*command.body_as_Launch()));
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (Reads(uses_[i].access) && !uses_[i].workspace) builder.Add(DigestOf(i));
  }
  const Digest digest = builder.Finish();
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!Writes(uses_[i].access)) continue;
    if (overlaps) {
      Erase(i);
    } else {
      const ValuePiece result = {DigestBuilder(kResultTag).Add(i).Add(digest).Finish(), 0, uses_[i].bytes};
      Write(i, {&result, 1});
    }
  }
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].scratch) Erase(i);
  }
}

void RoleValues::Copy(const fbs::Command& command) {
  Read(0, pieces_);
  if (Overlaps(command)) {
    Erase(1);
  } else {
    Write(1, pieces_);
  }
}

Offer RoleValues::ReadOffer(const fbs::Command& command) {
  Offer offer;
  offer.overlaps = Overlaps(command);
  for (size_t i = 0; i < uses_.size() && !shared_.meter.exhausted(); ++i) {
    if (!Reads(uses_[i].access)) continue;
    Read(i, offer.pieces.emplace_back());
    offer.kept += offer.pieces.back().size();
    shared_.meter.Keep(offer.pieces.back().size());
  }
  return offer;
}

void RoleValues::WriteReceived(absl::Span<const ValuePieces> received, bool overlaps) {
  size_t next = 0;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!Writes(uses_[i].access)) continue;
    if (overlaps || next >= received.size()) {
      Erase(i);
    } else {
      Write(i, received[next++]);
    }
  }
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].scratch) Erase(i);
  }
}

void RoleValues::Collective(const fbs::Command& command) {
  const Offer offer = ReadOffer(command);
  const Exchange exchange(plan_, *command.body_as_Collective(), {&offer, 1}, shared_.meter);
  WriteReceived(exchange.For(0), exchange.overlaps());
  shared_.meter.Drop(offer.kept);
}

void RoleValues::AddOutputs(RoleMeaning& meaning) {
  std::vector<const fbs::Port*> outputs;
  for (uint32_t i = 0; i < SizeOf(entry_.outputs()); ++i) outputs.push_back(entry_.outputs()->Get(i));
  std::sort(outputs.begin(), outputs.end(),
            [](const fbs::Port* a, const fbs::Port* b) { return TextOf(a->name()) < TextOf(b->name()); });
  for (const fbs::Port* port : outputs) {
    if (shared_.meter.exhausted()) return;
    const fbs::Buffer& buffer = *plan_.buffers()->Get(port->buffer());
    Digest all = DigestBuilder(kOutputTag).Add(TextOf(port->name())).Add(buffer.slots()).Finish();
    for (uint32_t slot = 0; slot < buffer.slots() && !shared_.meter.exhausted(); ++slot) {
      shared_.meter.Spend(1);
      all = DigestBuilder(kOutputTag).Add(all).Add(values_.DigestOf(RangeOf(buffer, slot))).Finish();
    }
    meaning.values.push_back({absl::StrCat("output ", Quoted(port->name())), all});
  }
}

void RoleValues::AddChanges(RoleMeaning& meaning) {
  struct Change {
    uint64_t kind;  // states by their flags, then all else
    const flatbuffers::String* name;
    Digest digest;
    bool operator<(const Change& other) const {
      const absl::string_view a = TextOf(name), b = TextOf(other.name);
      return std::tie(kind, a, digest) < std::tie(other.kind, b, other.digest);
    }
  };
  constexpr uint64_t kNoState = 1 << 8;
  std::vector<Change> changes;
  for (const Initial& initial : initial_) {
    if (shared_.meter.exhausted()) return;
    shared_.meter.Spend(1);
    const fbs::Buffer& buffer = *plan_.buffers()->Get(initial.buffer);
    const Digest value = values_.DigestOf(RangeOf(buffer, initial.slot));
    if (value == initial.value) continue;
    const fbs::State* state = shared_.state_of_buffer[initial.buffer];
    const uint64_t kind = state == nullptr ? kNoState : static_cast<uint64_t>(state->flags());
    const flatbuffers::String* name = state == nullptr ? buffer.name() : state->key();
    changes.push_back({kind, name, DigestBuilder(kFinalTag).Add(initial.value).Add(value).Finish()});
  }
  std::sort(changes.begin(), changes.end());
  for (const Change& change : changes) {
    const char* what = change.kind == kNoState ? "buffer " : "state ";
    meaning.values.push_back({absl::StrCat(what, Quoted(change.name)), change.digest});
  }
}

RoleMeaning RoleValues::Finish() {
  RoleMeaning meaning;
  DigestBuilder builder(kInterfaceTag);
  builder.Add(shared_.interfaces[role_]).Add(InterfaceOfEntry(plan_, entry_)).Add(promises_.size());
  for (const Digest& promise : promises_) builder.Add(promise);
  meaning.values.push_back({"interface", builder.Finish()});
  AddOutputs(meaning);
  AddChanges(meaning);
  return meaning;
}

}  // namespace bowline
