#include <bit>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/mesh_view.h"
#include "types/block_formats.h"

namespace bowline::verifier {
namespace {

std::string BufferPlace(const fbs::Plan& plan, uint32_t index) {
  return absl::StrCat("buffer ", index, " ", Quoted(plan.buffers()->Get(index)->name()));
}

// Memory in the space External holds weights, which no command writes.
absl::Status VerifyExternal(absl::string_view place, const fbs::Buffer& buffer) {
  if (buffer.kind() != fbs::BufferKind::Parameter) {
    return Broken(place, ": is in memory space External, which only parameters may be, but is of kind ",
                  fbs::EnumNameBufferKind(buffer.kind()));
  }
  if (buffer.slots() != 1) {
    return Broken(place, ": is in memory space External, but has ", buffer.slots(), " slots; it must have one");
  }
  return absl::OkStatus();
}

// A view lies in the viewed buffer, on each rank, in each slot. The buffer itself was verified, and those before it.
absl::Status VerifyView(const fbs::Plan& plan, absl::string_view place, uint32_t index) {
  const fbs::Buffer& buffer = *plan.buffers()->Get(index);
  if (buffer.view() == nullptr) return absl::OkStatus();
  const fbs::View& view = *buffer.view();
  if (view.of() >= index) return Broken(place, ": is a view of buffer ", view.of(), ", which must stand before it");
  const fbs::Buffer& of = *plan.buffers()->Get(view.of());
  const std::string viewed = BufferPlace(plan, view.of());
  if (of.view() != nullptr) return Broken(place, ": is a view of ", viewed, ", which is a view itself");
  if (buffer.kind() != fbs::BufferKind::Temporary || of.kind() != fbs::BufferKind::Temporary) {
    return Broken(place, ": is of kind ", fbs::EnumNameBufferKind(buffer.kind()), " and a view of ", viewed,
                  " of kind ", fbs::EnumNameBufferKind(of.kind()), "; both must be Temporary");
  }
  if (buffer.role() != of.role() || buffer.space() != of.space() || buffer.dtype() != of.dtype() ||
      buffer.slots() != of.slots() || buffer.slot_stride() != of.slot_stride()) {
    return Broken(place, ": is a view of ", viewed,
                  ", but differs from it in role, memory space, type of elements or slots");
  }
  if (buffer.offset() < of.offset() || buffer.offset() - of.offset() > of.bytes() ||
      buffer.bytes() > of.bytes() - (buffer.offset() - of.offset())) {
    return Broken(place, ": is a view of ", viewed, ", but reaches out of it");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyAxes(plan, place, view.axes()));
  if (SizeOf(view.axes()) == 0) {
    if (view.stride() == 0) return absl::OkStatus();
    return Broken(place, ": stride ", view.stride(), " of its view must be 0 without axes");
  }
  for (const uint8_t axis : *view.axes()) {
    if (RoleCount(plan) == 1 || axis != plan.role_axis()) continue;
    return Broken(place, ": its view is along axis ", Quoted(plan.mesh()->Get(axis)->name()),
                  ", along which all ranks of a role have the same coordinate");
  }
  if (view.stride() < buffer.bytes() || view.stride() % buffer.alignment() != 0) {
    return Broken(place, ": stride ", view.stride(), " of its view must be a multiple of ", buffer.alignment(),
                  " and at least its ", buffer.bytes(), " bytes");
  }
  const uint64_t steps = SizeAlong(plan, view.axes()) - 1;
  const uint64_t room = of.bytes() - (buffer.offset() - of.offset()) - buffer.bytes();
  if (steps == 0 || view.stride() <= room / steps) return absl::OkStatus();
  return Broken(place, ": is a view of ", viewed, ", but the views of ", steps + 1, " ranks, ", view.stride(),
                " bytes apart, reach out of it");
}

absl::Status VerifyBuffer(const fbs::Plan& plan, uint32_t index) {
  const fbs::Buffer& buffer = *plan.buffers()->Get(index);
  const std::string place = BufferPlace(plan, index);
  if (buffer.name()->size() == 0) return Broken(place, ": the name is empty");
  if (buffer.kind() > fbs::BufferKind::MAX) {
    return Broken(place, ": unknown buffer kind ", static_cast<int>(buffer.kind()));
  }
  if (buffer.space() > fbs::MemorySpace::MAX) {
    return Broken(place, ": unknown memory space ", static_cast<int>(buffer.space()));
  }
  BOWLINE_RETURN_IF_ERROR(VerifyType(place, buffer.dtype(), buffer.shape()));
  const uint64_t dense = *DenseBytes(buffer.dtype(), buffer.shape());
  if (buffer.bytes() != dense) {
    return Broken(place, ": states ", buffer.bytes(), " bytes, but ", DescribeType(buffer.dtype(), buffer.shape()),
                  " has ", dense);
  }
  BOWLINE_RETURN_IF_ERROR(VerifyAlignment(place, buffer.alignment()));
  if (buffer.offset() % buffer.alignment() != 0) {
    return Broken(place, ": offset ", buffer.offset(), " is no multiple of its alignment ", buffer.alignment());
  }
  if (buffer.slots() < 1 || buffer.slots() > kMaxSlots) {
    return Broken(place, ": ", buffer.slots(), " slots; it must be 1 to ", kMaxSlots);
  }
  const uint64_t stride = buffer.slot_stride();
  if (buffer.slots() == 1 && stride != 0) {
    return Broken(place, ": slot_stride ", stride, " must be 0 for a buffer with one slot");
  }
  if (buffer.slots() > 1 && (stride < buffer.bytes() || stride % buffer.alignment() != 0)) {
    return Broken(place, ": slot_stride ", stride, " must be a multiple of ", buffer.alignment(), " and at least the ",
                  buffer.bytes(), " bytes of a slot");
  }
  // Each term is at most 2^62 once compared, so nothing wraps.
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "role", buffer.role(), RoleCount(plan)));
  const uint64_t arena = ArenaBytes(plan, buffer.role(), buffer.space());
  const uint64_t steps = buffer.slots() - 1;
  if (buffer.bytes() > arena || buffer.offset() > arena - buffer.bytes() ||
      (steps > 0 && stride > (arena - buffer.bytes() - buffer.offset()) / steps)) {
    return Broken(place, ": ", buffer.slots(), " slot(s) of ", buffer.bytes(), " bytes at offset ", buffer.offset(),
                  ", ", stride, " bytes apart, end beyond the arena of ", arena, " bytes",
                  buffer.space() == fbs::MemorySpace::Device
                      ? ""
                      : absl::StrCat(" in ", fbs::EnumNameMemorySpace(buffer.space())));
  }
  if (buffer.space() == fbs::MemorySpace::External) BOWLINE_RETURN_IF_ERROR(VerifyExternal(place, buffer));
  BOWLINE_RETURN_IF_ERROR(VerifyLayout(plan, place, buffer));
  BOWLINE_RETURN_IF_ERROR(VerifyView(plan, place, index));
  if (buffer.kind() == fbs::BufferKind::Fault &&
      (buffer.dtype() != fbs::DType::I32 || buffer.slots() != 1 || buffer.space() != fbs::MemorySpace::Device)) {
    return Broken(place, ": is of kind Fault, which holds words of i32 in one slot in memory space Device");
  }
  return VerifyIndex(place, "source", buffer.source(), plan.sources()->size());
}

// Weights in blocks of bits are bytes, [rows, blocks of a row, bytes of a block].
absl::Status VerifyFormat(absl::string_view place, const fbs::State& state, const fbs::Buffer& buffer) {
  if (state.format() == nullptr || state.format()->size() == 0) return absl::OkStatus();
  const absl::string_view name = TextOf(state.format());
  const std::optional<ElementType> format = BlockFormatFromName({name.data(), name.size()});
  if (!format.has_value()) {
    return Broken(place, ": there is no format ", Quoted(state.format()), " of blocks; there are ", BlockFormatNames());
  }
  if (!Has(state, fbs::StateFlag::Weight) || Has(state, fbs::StateFlag::Trained)) {
    return Broken(place, ": has a format, but only weights that are not trained may have one");
  }
  if (buffer.dtype() != fbs::DType::U8 || SizeOf(buffer.shape()) != 3 ||
      buffer.shape()->Get(2) != InfoOf(*format).block_bytes) {
    return Broken(place, ": is ", DescribeType(buffer.dtype(), buffer.shape()), ", but a matrix of format ",
                  Quoted(state.format()), " is u8 with three dimensions, the last one of ",
                  InfoOf(*format).block_bytes);
  }
  return absl::OkStatus();
}

// Flags that together have a meaning, on a buffer that fits them.
absl::Status VerifyFlags(const fbs::Plan& plan, absl::string_view place, const fbs::State& state) {
  const fbs::StateFlag flags = state.flags();
  const auto unknown = static_cast<uint32_t>(flags & ~fbs::StateFlag::ANY);
  if (unknown != 0) return Broken(place, ": unknown flags ", absl::Hex(unknown));
  const fbs::Buffer& buffer = *plan.buffers()->Get(state.buffer());
  const auto broken = [&](const auto&... why) { return Broken(place, ": is ", DescribeFlags(flags), ", ", why...); };
  const fbs::BufferKind needed =
      Has(state, fbs::StateFlag::Weight) ? fbs::BufferKind::Parameter : fbs::BufferKind::State;
  if (buffer.kind() != needed) {
    return broken("which needs a buffer of kind ", fbs::EnumNameBufferKind(needed), ", but ",
                  BufferPlace(plan, state.buffer()), " is of kind ", fbs::EnumNameBufferKind(buffer.kind()));
  }
  const fbs::StateFlag origins =
      fbs::StateFlag::Saved | fbs::StateFlag::Mirror | fbs::StateFlag::PerRequest | fbs::StateFlag::Cache;
  if (std::popcount(static_cast<uint32_t>(flags & origins)) != 1) {
    return broken("but must be one of ", DescribeFlags(origins), ": the flag says how a resumed run gets the value");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyFormat(place, state, buffer));
  if (Has(state, fbs::StateFlag::Trained) && !Has(state, fbs::StateFlag::Weight)) {
    return broken("but only a Weight is Trained");
  }
  if (Has(state, fbs::StateFlag::Step) && (Has(state, fbs::StateFlag::Weight) || !Has(state, fbs::StateFlag::Saved) ||
                                           buffer.dtype() != fbs::DType::I32 || buffer.bytes() != sizeof(int32_t))) {
    return broken("but steps are counted by one i32 that is Saved and no Weight, not by ",
                  DescribeType(buffer.dtype(), buffer.shape()));
  }
  if ((Has(state, fbs::StateFlag::PerRequest) || Has(state, fbs::StateFlag::Cache)) &&
      Has(state, fbs::StateFlag::Weight)) {
    return broken("but a Weight serves all requests, and none writes it");
  }
  return absl::OkStatus();
}

// Each mirror has something to be loaded from.
absl::Status VerifyMirrors(const fbs::Plan& plan) {
  std::set<absl::string_view> saved;
  for (const fbs::State* state : *plan.states()) {
    if (Has(*state, fbs::StateFlag::Saved)) saved.insert(TextOf(state->key()));
  }
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    const fbs::State& state = *plan.states()->Get(i);
    if (!Has(state, fbs::StateFlag::Mirror) || saved.count(TextOf(state.key())) > 0) continue;
    return Broken("state ", i, " ", Quoted(state.key()), ": is a Mirror, but no state of its key is Saved");
  }
  return absl::OkStatus();
}

// A checkpoint has one tensor of a key, and each role counts its steps.
absl::Status VerifySavedKey(absl::string_view place, const fbs::State& state, std::set<absl::string_view>& saved) {
  if (TextOf(state.key()) == "__metadata__") {
    return Broken(place, ": safetensors files reserve this key; use another one");
  }
  if (Has(state, fbs::StateFlag::Step)) return absl::OkStatus();
  if (saved.insert(TextOf(state.key())).second) return absl::OkStatus();
  return Broken(place, ": another role saves a tensor of this key");
}

absl::Status VerifyStates(const fbs::Plan& plan) {
  // A role saves a tensor once; a mirror has the key of the tensor that it mirrors.
  std::vector<NameSet> keys(RoleCount(plan), NameSet("key"));
  std::vector<bool> listed(plan.buffers()->size(), false);
  std::set<absl::string_view> saved;
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    const fbs::State& state = *plan.states()->Get(i);
    const std::string place = absl::StrCat("state ", i, " ", Quoted(state.key()));
    if (state.key()->size() == 0) return Broken(place, ": the key is empty");
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "buffer", state.buffer(), plan.buffers()->size()));
    const fbs::Buffer& buffer = *plan.buffers()->Get(state.buffer());
    BOWLINE_RETURN_IF_ERROR(VerifyFlags(plan, place, state));
    if (!Has(state, fbs::StateFlag::Mirror)) {
      BOWLINE_RETURN_IF_ERROR(keys[buffer.role()].Insert(place, state.key()));
    }
    if (Has(state, fbs::StateFlag::Saved)) BOWLINE_RETURN_IF_ERROR(VerifySavedKey(place, state, saved));
    if (buffer.slots() != 1) return Broken(place, ": ", BufferPlace(plan, state.buffer()), " has more than one slot");
    if (listed[state.buffer()]) return Broken(place, ": ", BufferPlace(plan, state.buffer()), " has two states");
    listed[state.buffer()] = true;
  }
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    if (plan.buffers()->Get(i)->space() == fbs::MemorySpace::External && !listed[i]) {
      return Broken(BufferPlace(plan, i), ": is in memory space External, but no state names the key of its tensor");
    }
  }
  return VerifyMirrors(plan);
}

absl::Status VerifyCoordinates(const fbs::Plan& plan, std::vector<bool>& filled) {
  for (uint32_t i = 0; i < SizeOf(plan.coordinates()); ++i) {
    const fbs::Coordinate& coordinate = *plan.coordinates()->Get(i);
    const std::string place = absl::StrCat("coordinate ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "buffer", coordinate.buffer(), plan.buffers()->size()));
    BOWLINE_RETURN_IF_ERROR(VerifyAxes(plan, place, coordinate.axes()));
    const fbs::Buffer& buffer = *plan.buffers()->Get(coordinate.buffer());
    if (buffer.kind() != fbs::BufferKind::Constant || buffer.dtype() != fbs::DType::I32 || buffer.bytes() != 4 ||
        buffer.slots() != 1) {
      return Broken(place, ": ", BufferPlace(plan, coordinate.buffer()), " is not a constant of one i32");
    }
    if (filled[coordinate.buffer()])
      return Broken(place, ": ", BufferPlace(plan, coordinate.buffer()), " is filled twice");
    filled[coordinate.buffer()] = true;
  }
  return absl::OkStatus();
}

absl::Status VerifyConstants(const fbs::Plan& plan) {
  std::vector<bool> filled(plan.buffers()->size(), false);
  BOWLINE_RETURN_IF_ERROR(VerifyCoordinates(plan, filled));
  for (uint32_t i = 0; i < SizeOf(plan.constants()); ++i) {
    const fbs::ConstantData& constant = *plan.constants()->Get(i);
    const std::string place = absl::StrCat("constant ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "buffer", constant.buffer(), plan.buffers()->size()));
    const fbs::Buffer& buffer = *plan.buffers()->Get(constant.buffer());
    const std::string target = BufferPlace(plan, constant.buffer());
    if (buffer.kind() != fbs::BufferKind::Constant) {
      return Broken(place, ": ", target, " is of kind ", fbs::EnumNameBufferKind(buffer.kind()), ", not Constant");
    }
    if (buffer.slots() != 1) return Broken(place, ": ", target, " has more than one slot");
    if (constant.data()->size() != buffer.bytes()) {
      return Broken(place, ": ", constant.data()->size(), " bytes for ", target, " of ", buffer.bytes(), " bytes");
    }
    if (filled[constant.buffer()]) return Broken(place, ": ", target, " is filled twice");
    filled[constant.buffer()] = true;
  }
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    if (plan.buffers()->Get(i)->kind() == fbs::BufferKind::Constant && !filled[i]) {
      return Broken(BufferPlace(plan, i), ": is of kind Constant, but no constant fills it");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAlignment(absl::string_view place, uint32_t alignment) {
  if (std::has_single_bit(alignment) && alignment <= kMaxAlignment) return absl::OkStatus();
  return Broken(place, ": alignment ", alignment, " is no power of two up to ", kMaxAlignment);
}

absl::Status VerifyMemory(const fbs::Plan& plan) {
  std::map<uint32_t, uint32_t> faults;  // by role
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    BOWLINE_RETURN_IF_ERROR(VerifyBuffer(plan, i));
    const fbs::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.kind() != fbs::BufferKind::Fault) continue;
    const auto [other, is_first] = faults.emplace(buffer.role(), i);
    if (is_first) continue;
    return Broken("buffer ", i, " ", Quoted(buffer.name()), ": is of kind Fault, as buffer ", other->second,
                  " of the same role is; a role has one buffer of this kind");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyStates(plan));
  return VerifyConstants(plan);
}

}  // namespace bowline::verifier
