#include "runtime/plan/view/plan_view.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/view/collective_view.h"

namespace bowline {

absl::optional<uint64_t> DenseBytes(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t bytes = ElementSize(dtype);
  if (bytes == 0) return absl::nullopt;
  bool empty = false;
  for (uint32_t d = 0; d < SizeOf(shape); ++d) {
    const int64_t extent = shape->Get(d);
    if (extent < 0) return absl::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    // The product without the zeros must fit too, so that strides of an empty tensor do.
    if (static_cast<uint64_t>(extent) > kMost / bytes) return absl::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return empty ? 0 : bytes;
}

std::string DescribeType(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape) {
  std::string text =
      dtype <= fbs::DType::MAX ? NameOf(ElementTypeOf(dtype)) : absl::StrCat("dtype ", static_cast<int>(dtype));
  absl::StrAppend(&text, "[");
  for (uint32_t d = 0; d < SizeOf(shape); ++d) absl::StrAppend(&text, d == 0 ? "" : ", ", shape->Get(d));
  return absl::StrCat(text, "]");
}

std::string Quoted(const flatbuffers::String* text) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(TextOf(text)), "'");
}

uint32_t SlotOf(const fbs::Buffer& buffer, uint32_t slot) {
  if (buffer.slots() == 1) return 0;
  return buffer.kind() == fbs::BufferKind::Temporary ? slot % buffer.slots() : slot;
}

uint64_t OffsetOf(const fbs::Buffer& buffer, uint32_t slot) {
  return buffer.offset() + SlotOf(buffer, slot) * buffer.slot_stride();
}

ByteRange RangeOf(const fbs::Buffer& buffer, uint32_t slot) {
  const uint64_t begin = static_cast<uint64_t>(buffer.space()) * kSpaceStride + OffsetOf(buffer, slot);
  return {begin, begin + buffer.bytes()};
}

ByteRange ExtentOf(const fbs::Buffer& buffer) {
  return {RangeOf(buffer, 0).begin, RangeOf(buffer, buffer.slots() - 1).end};
}

std::string DescribeRange(ByteRange range) {
  const fbs::MemorySpace space = SpaceAt(range.begin);
  const uint64_t base = static_cast<uint64_t>(space) * kSpaceStride;
  return absl::StrCat("[", range.begin - base, ", ", range.end - base, ")",
                      space == fbs::MemorySpace::Device ? "" : absl::StrCat(" in ", fbs::EnumNameMemorySpace(space)));
}

absl::optional<fbs::CopyEngine> EngineFor(fbs::MemorySpace source, fbs::MemorySpace destination) {
  const bool from_host = source == fbs::MemorySpace::PinnedHost;
  if (destination != fbs::MemorySpace::PinnedHost) {
    return from_host ? fbs::CopyEngine::ToDevice : fbs::CopyEngine::WithinDevice;
  }
  if (from_host) return absl::nullopt;
  return fbs::CopyEngine::ToHost;
}

bool IsState(fbs::BufferKind kind) { return kind == fbs::BufferKind::Parameter || kind == fbs::BufferKind::State; }

const fbs::Entry* FindEntry(const fbs::Plan& plan, fbs::EntryKind kind) {
  for (const fbs::Entry* entry : *plan.entries()) {
    if (entry->kind() == kind) return entry;
  }
  return nullptr;
}

bool HasBuckets(fbs::EntryKind kind) { return kind == fbs::EntryKind::Step || kind == fbs::EntryKind::Embed; }

std::string DescribeFlags(fbs::StateFlag flags) {
  std::vector<std::string> names;
  for (const fbs::StateFlag flag : fbs::EnumValuesStateFlag()) {
    if (Has(flags, flag)) names.push_back(fbs::EnumNameStateFlag(flag));
  }
  return names.empty() ? "none" : absl::StrJoin(names, "|");
}

bool IsPersistent(fbs::BufferKind kind) {
  return IsState(kind) || kind == fbs::BufferKind::Constant || kind == fbs::BufferKind::Input ||
         kind == fbs::BufferKind::Fault;
}

bool HasCode(const fbs::Plan& plan) {
  for (uint32_t i = 0; i < SizeOf(plan.kernels()); ++i) {
    const fbs::Kernel& kernel = *plan.kernels()->Get(i);
    const bool has_epilogue = kernel.epilogue() != nullptr && kernel.epilogue()->size() > 0;
    if (kernel.origin() != fbs::KernelOrigin::Generated && !has_epilogue) continue;
    for (const fbs::Code* code : *plan.images()->Get(kernel.image())->codes()) {
      if (TextOf(code->format()) == kNoImageFormat) return false;
    }
  }
  return true;
}

absl::optional<uint32_t> CommunicatorOf(const fbs::Command& command) {
  if (const fbs::Collective* collective = command.body_as_Collective()) return collective->communicator();
  if (const fbs::Send* send = command.body_as_Send()) return send->communicator();
  if (const fbs::Receive* receive = command.body_as_Receive()) return receive->communicator();
  return absl::nullopt;
}

bool HasScratchOperand(const fbs::Plan& plan, const fbs::Launch& launch) {
  if (plan.kernels()->Get(launch.kernel())->origin() != fbs::KernelOrigin::Registered) return false;
  const uint32_t count = SizeOf(launch.operands());
  return count > 0 &&
         plan.buffers()->Get(launch.operands()->Get(count - 1)->buffer())->kind() == fbs::BufferKind::Scratch;
}

template <typename SignalOrWait>
static std::string DescribeEvent(const SignalOrWait& command) {
  if (command.slots() == 1) return absl::StrCat("event ", command.event());
  return absl::StrCat("event ", command.event(), " + slot modulo ", command.slots());
}

std::string DescribeCommand(const fbs::Plan& plan, const fbs::Command& command) {
  const auto on = [&](uint32_t communicator) { return Quoted(plan.communicators()->Get(communicator)->name()); };
  switch (command.body_type()) {
    case fbs::CommandBody::Launch:
      return absl::StrCat("launch of ", Quoted(plan.kernels()->Get(command.body_as_Launch()->kernel())->name()));
    case fbs::CommandBody::Copy:
      switch (command.body_as_Copy()->engine()) {
        case fbs::CopyEngine::ToDevice:
          return "copy to the device";
        case fbs::CopyEngine::ToHost:
          return "copy to the host";
        case fbs::CopyEngine::WithinDevice:
          break;
      }
      return "copy";
    case fbs::CommandBody::Collective: {
      const fbs::Collective& collective = *command.body_as_Collective();
      return absl::StrCat(DefinitionOf(collective.kind()).name, " on ", on(collective.communicator()));
    }
    case fbs::CommandBody::Send:
      return absl::StrCat("send to place ", command.body_as_Send()->peer(), " of ",
                          on(command.body_as_Send()->communicator()));
    case fbs::CommandBody::Receive:
      return absl::StrCat("receive from place ", command.body_as_Receive()->peer(), " of ",
                          on(command.body_as_Receive()->communicator()));
    case fbs::CommandBody::Signal:
      return absl::StrCat("signal of ", DescribeEvent(*command.body_as_Signal()));
    case fbs::CommandBody::Wait:
      return absl::StrCat("wait for ", DescribeEvent(*command.body_as_Wait()));
    case fbs::CommandBody::NONE:
      break;
  }
  return "no command";
}

std::string DescribeSource(const fbs::Plan& plan, uint32_t source) {
  const fbs::Source* s = plan.sources()->Get(source);
  const absl::string_view pass = TextOf(s->pass()), reason = TextOf(s->reason());
  std::string text = absl::Utf8SafeCEscape(TextOf(s->location()));
  if (!pass.empty()) absl::StrAppend(&text, " (by ", absl::Utf8SafeCEscape(pass), reason.empty() ? ")" : "");
  if (!reason.empty()) absl::StrAppend(&text, pass.empty() ? " (" : ": ", absl::Utf8SafeCEscape(reason), ")");
  return text;
}

}  // namespace bowline
