#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline::verifier {
namespace {

absl::Status VerifyPort(const fbs::Plan& plan, absl::string_view place, uint32_t role, const fbs::Port& port,
                        bool input) {
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "buffer", port.buffer(), plan.buffers()->size()));
  const fbs::Buffer& buffer = *plan.buffers()->Get(port.buffer());
  if (buffer.role() != role) {
    return Broken(place, ": buffer ", Quoted(buffer.name()), " is of role ", buffer.role(), ", the program of role ",
                  role);
  }
  const bool fits = input ? buffer.kind() == fbs::BufferKind::Input
                          : buffer.kind() == fbs::BufferKind::Output || IsState(buffer.kind());
  if (!fits) {
    return Broken(place, ": buffer ", Quoted(buffer.name()), " is of kind ", fbs::EnumNameBufferKind(buffer.kind()),
                  "; the port needs ", input ? "Input" : "Output, State or Parameter");
  }
  if (port.limit() < 0) return Broken(place, ": limit ", port.limit(), " is negative");
  const bool limited = IsInteger(ElementTypeOf(buffer.dtype())) || buffer.dtype() == fbs::DType::F32;
  if (port.limit() > 0 && !(input && limited)) {
    return Broken(place, ": limit ", port.limit(), " on a port that is no input of integers or F32");
  }
  return absl::OkStatus();
}

bool SameType(const fbs::Buffer& a, const fbs::Buffer& b) {
  const auto equal = [](const auto* x, const auto* y) {
    return SizeOf(x) == SizeOf(y) && (SizeOf(x) == 0 || std::equal(x->begin(), x->end(), y->begin()));
  };
  return a.dtype() == b.dtype() && equal(a.shape(), b.shape()) && a.slots() == b.slots();
}

// Ports whose buffers runs take in turn, by buffer: the place of the port.
using AlternatingBuffers = std::map<uint32_t, std::string>;

// The second buffer of a port, which is there where runs overlap. `taken` has the buffers of other such ports.
absl::Status VerifySecond(const fbs::Plan& plan, absl::string_view place, const fbs::Entry& entry,
                          const fbs::Port& port, AlternatingBuffers& taken) {
  if (entry.in_flight() == 1) {
    if (port.second() == 0) return absl::OkStatus();
    return Broken(place, ": it has a second buffer, but the entry has one run in flight");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "second buffer", port.second(), plan.buffers()->size()));
  const fbs::Buffer& first = *plan.buffers()->Get(port.buffer());
  const fbs::Buffer& second = *plan.buffers()->Get(port.second());
  if (first.kind() != fbs::BufferKind::Input && first.kind() != fbs::BufferKind::Output) {
    return Broken(place, ": buffer ", Quoted(first.name()), " is of kind ", fbs::EnumNameBufferKind(first.kind()),
                  ", which the next run changes; with two runs in flight a port needs Input or Output");
  }
  if (second.kind() != first.kind() || second.role() != first.role() || second.space() != first.space() ||
      second.alignment() != first.alignment() || !SameType(first, second) ||
      first.slot_stride() != second.slot_stride()) {
    return Broken(place, ": its buffers ", Quoted(first.name()), " and ", Quoted(second.name()),
                  " differ in kind, role, memory space, alignment, type or slots");
  }
  for (const uint32_t buffer : {port.buffer(), port.second()}) {
    const auto [other, is_new] = taken.emplace(buffer, place);
    if (is_new) continue;
    return Broken(place, ": buffer ", Quoted(plan.buffers()->Get(buffer)->name()), " is that of ", other->second,
                  " too; with two runs in flight each port has its own");
  }
  return absl::OkStatus();
}

absl::Status VerifyFeeds(const fbs::Plan& plan, absl::string_view place, const fbs::Entry& entry) {
  std::set<uint32_t> fed;
  for (uint32_t i = 0; i < SizeOf(entry.feeds()); ++i) {
    const fbs::Feed& feed = *entry.feeds()->Get(i);
    const std::string feed_place = absl::StrCat(place, ": feed ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(feed_place, "output", feed.output(), SizeOf(entry.outputs())));
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(feed_place, "input", feed.input(), SizeOf(entry.inputs())));
    const fbs::Port& output = *entry.outputs()->Get(feed.output());
    const fbs::Port& input = *entry.inputs()->Get(feed.input());
    if (!fed.insert(feed.input()).second) {
      return Broken(feed_place, ": input ", Quoted(input.name()), " has two feeds");
    }
    const fbs::Buffer& from = *plan.buffers()->Get(output.buffer());
    const fbs::Buffer& to = *plan.buffers()->Get(input.buffer());
    if (!SameType(from, to)) {
      return Broken(feed_place, ": output ", Quoted(output.name()), " is ", DescribeType(from.dtype(), from.shape()),
                    " in ", from.slots(), " slots, input ", Quoted(input.name()), " ",
                    DescribeType(to.dtype(), to.shape()), " in ", to.slots());
    }
    for (const fbs::Buffer* buffer : {&from, &to}) {
      if (buffer->space() == fbs::MemorySpace::Device) continue;
      return Broken(feed_place, ": buffer ", Quoted(buffer->name()), " is in memory space ",
                    fbs::EnumNameMemorySpace(buffer->space()),
                    "; a value that a run hands to the next one stays in Device");
    }
    if (input.limit() != 0) {
      return Broken(feed_place, ": input ", Quoted(input.name()), " has the limit ", input.limit(),
                    ", which nobody checks in the output of a run");
    }
  }
  return absl::OkStatus();
}

// The inputs of a promise about sequences: i32 of one slot, [R + 1], [R] and [R, M].
absl::Status VerifySequences(const fbs::Plan& plan, absl::string_view place, const fbs::Entry& entry) {
  const fbs::Sequences* sequences = entry.sequences();
  if (sequences == nullptr) return absl::OkStatus();
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  for (const auto& [what, number] :
       {std::pair{"tokens", sequences->tokens()}, std::pair{"block_tokens", sequences->block_tokens()},
        std::pair{"block_count", sequences->block_count()}}) {
    if (number >= 1 && number <= kMost) continue;
    return Broken(place, ": sequences: ", what, " is ", number, "; it must be 1 to ", kMost);
  }
  const fbs::Buffer* buffers[3];
  const uint32_t inputs[] = {sequences->rows(), sequences->lengths(), sequences->blocks()};
  for (int i = 0; i < 3; ++i) {
    const uint32_t ranks[] = {1, 1, 2};
    BOWLINE_RETURN_IF_ERROR(
        VerifyIndex(absl::StrCat(place, ": sequences"), "input", inputs[i], SizeOf(entry.inputs())));
    const fbs::Port& port = *entry.inputs()->Get(inputs[i]);
    buffers[i] = plan.buffers()->Get(port.buffer());
    if (buffers[i]->dtype() != fbs::DType::I32 || SizeOf(buffers[i]->shape()) != ranks[i] || buffers[i]->slots() != 1) {
      return Broken(place, ": sequences: input ", Quoted(port.name()), " is ",
                    DescribeType(buffers[i]->dtype(), buffers[i]->shape()), " in ", buffers[i]->slots(),
                    " slots; it must be i32 with ", ranks[i], " dimensions in one");
    }
    if (buffers[i]->layout() != nullptr) {
      return Broken(place, ": sequences: input ", Quoted(port.name()), " is divided among ranks; each needs all of it");
    }
  }
  for (uint32_t i = 0; i < SizeOf(entry.feeds()); ++i) {
    const auto* found = std::find(std::begin(inputs), std::end(inputs), entry.feeds()->Get(i)->input());
    if (found == std::end(inputs)) continue;
    return Broken(place, ": sequences: feed ", i, " gives input ", *found, " the output of a run, which nobody checks");
  }
  const int64_t count = buffers[1]->shape()->Get(0);
  if (buffers[0]->shape()->Get(0) != count + 1 || buffers[2]->shape()->Get(0) != count) {
    return Broken(place, ": sequences: inputs have ", buffers[0]->shape()->Get(0), " rows, ", count, " lengths and ",
                  buffers[2]->shape()->Get(0), " tables; it must be one more row, and as many tables as lengths");
  }
  return absl::OkStatus();
}

absl::Status VerifyKind(absl::string_view place, const fbs::Entry& entry) {
  if (entry.kind() > fbs::EntryKind::MAX) return Broken(place, ": unknown kind ", static_cast<int>(entry.kind()));
  const char* kind = fbs::EnumNameEntryKind(entry.kind());
  if (HasBuckets(entry.kind()) && entry.bucket() == 0) {
    return Broken(place, ": is of kind ", kind, ", which needs a bucket of 1 or more tokens");
  }
  if (!HasBuckets(entry.kind()) && entry.bucket() != 0) {
    return Broken(place, ": has bucket ", entry.bucket(), ", which entries of kind ", kind, " do not have");
  }
  return absl::OkStatus();
}

// Ports of entries whose runs do not overlap do not share buffers that the host accesses during runs of others.
absl::Status VerifyApart(const fbs::Plan& plan, absl::string_view place, const fbs::Entry& entry,
                         const AlternatingBuffers& taken) {
  for (const auto* ports : {entry.inputs(), entry.outputs()}) {
    for (uint32_t i = 0; i < SizeOf(ports) && entry.in_flight() == 1; ++i) {
      const auto other = taken.find(ports->Get(i)->buffer());
      if (other == taken.end()) continue;
      return Broken(place, ": port ", Quoted(ports->Get(i)->name()), ": buffer ",
                    Quoted(plan.buffers()->Get(other->first)->name()), " is that of ", other->second,
                    " too, of which two runs are in flight");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyEntry(const fbs::Plan& plan, absl::string_view place, const fbs::Entry& entry,
                         AlternatingBuffers& taken) {
  BOWLINE_RETURN_IF_ERROR(VerifyKind(place, entry));
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "program", entry.program(), plan.programs()->size()));
  const uint32_t role = plan.programs()->Get(entry.program())->role();
  if (entry.in_flight() < 1 || entry.in_flight() > 2) {
    return Broken(place, ": ", static_cast<int>(entry.in_flight()), " runs in flight; it must be 1 or 2");
  }
  NameSet inputs("input name"), outputs("output name");
  for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
    const std::string port_place = absl::StrCat(place, ": input ", i, " ", Quoted(entry.inputs()->Get(i)->name()));
    BOWLINE_RETURN_IF_ERROR(inputs.Insert(port_place, entry.inputs()->Get(i)->name()));
    BOWLINE_RETURN_IF_ERROR(VerifyPort(plan, port_place, role, *entry.inputs()->Get(i), /*input=*/true));
    BOWLINE_RETURN_IF_ERROR(VerifySecond(plan, port_place, entry, *entry.inputs()->Get(i), taken));
  }
  for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i) {
    const std::string port_place = absl::StrCat(place, ": output ", i, " ", Quoted(entry.outputs()->Get(i)->name()));
    BOWLINE_RETURN_IF_ERROR(outputs.Insert(port_place, entry.outputs()->Get(i)->name()));
    BOWLINE_RETURN_IF_ERROR(VerifyPort(plan, port_place, role, *entry.outputs()->Get(i), /*input=*/false));
    BOWLINE_RETURN_IF_ERROR(VerifySecond(plan, port_place, entry, *entry.outputs()->Get(i), taken));
  }
  BOWLINE_RETURN_IF_ERROR(VerifySequences(plan, place, entry));
  return VerifyFeeds(plan, place, entry);
}

}  // namespace

absl::Status VerifyEntries(const fbs::Plan& plan) {
  std::vector<NameSet> names(RoleCount(plan), NameSet("entry name"));
  std::map<absl::string_view, uint32_t> roles_with;
  std::map<absl::string_view, const fbs::Entry*> first_named;
  std::set<std::tuple<uint32_t, fbs::EntryKind, uint32_t>> kinds;  // role, kind, bucket
  AlternatingBuffers taken;
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const fbs::Entry& entry = *plan.entries()->Get(i);
    const std::string place = absl::StrCat("entry ", i, " ", Quoted(entry.name()));
    BOWLINE_RETURN_IF_ERROR(VerifyEntry(plan, place, entry, taken));
    BOWLINE_RETURN_IF_ERROR(names[plan.programs()->Get(entry.program())->role()].Insert(place, entry.name()));
    ++roles_with[TextOf(entry.name())];
    const uint32_t role = plan.programs()->Get(entry.program())->role();
    if (entry.kind() != fbs::EntryKind::Custom && !kinds.insert({role, entry.kind(), entry.bucket()}).second) {
      return Broken(place, ": is of kind ", fbs::EnumNameEntryKind(entry.kind()),
                    ", as another entry is; there may be one entry of a kind and bucket");
    }
    const fbs::Entry& first = *first_named.emplace(TextOf(entry.name()), &entry).first->second;
    if (first.kind() != entry.kind() || first.bucket() != entry.bucket()) {
      return Broken(place, ": is of kind ", fbs::EnumNameEntryKind(entry.kind()), ", bucket ", entry.bucket(),
                    ", but in another role of kind ", fbs::EnumNameEntryKind(first.kind()), ", bucket ",
                    first.bucket());
    }
  }
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const fbs::Entry& entry = *plan.entries()->Get(i);
    BOWLINE_RETURN_IF_ERROR(VerifyApart(plan, absl::StrCat("entry ", i, " ", Quoted(entry.name())), entry, taken));
  }
  for (const auto& [name, roles] : roles_with) {
    if (roles == RoleCount(plan)) continue;
    return Broken("entry '", name, "': ", roles, " of ", RoleCount(plan), " roles have it; all ranks run an entry");
  }
  return absl::OkStatus();
}

}  // namespace bowline::verifier
