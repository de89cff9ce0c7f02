#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/operand_uses.h"

namespace bowline::verifier {
namespace {

template <typename SignalOrWait>
absl::Status VerifyEvent(absl::string_view place, const fbs::Program& program, const SignalOrWait& command) {
  if (command.slots() == 0) return Broken(place, ": 0 slots; it must be at least 1");
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "event", command.event(), program.events()));
  if (command.slots() <= program.events() - command.event()) return absl::OkStatus();
  return Broken(place, ": ", command.slots(), " slots from event ", command.event(), " on; there are ",
                program.events(), " events");
}

// The type of the elements that a collective, a send or a receive moves.
fbs::DType TypeOfCommunication(const fbs::Command& command) {
  if (const fbs::Collective* collective = command.body_as_Collective()) return collective->dtype();
  if (const fbs::Send* send = command.body_as_Send()) return send->dtype();
  return command.body_as_Receive()->dtype();
}

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const fbs::Plan& plan) : plan_(plan), scratch_(plan.kernels()->size(), Scratch::kUnknown) {}

  absl::Status Verify(uint32_t index);

 private:
  // Whether the launches of a kernel so far give it a scratch operand: all must agree, for the kernel is bound once.
  enum class Scratch : uint8_t { kUnknown, kAbsent, kPresent };

  absl::Status VerifySegment(const fbs::Program& program, uint32_t index);
  absl::Status VerifyCommand(const fbs::Program& program, const fbs::Command& command);
  absl::Status VerifyLaunch(const fbs::Launch& launch);
  absl::Status VerifyLaunchOperand(const std::string& kernel_place, const fbs::Kernel& kernel, uint32_t index,
                                   const fbs::Operand& operand);
  absl::Status VerifyCopy(const fbs::Copy& copy);
  absl::Status VerifyTransfers(const fbs::Command& command);
  absl::Status VerifyElements(absl::string_view place, const fbs::Operand& operand, fbs::DType dtype);
  // The buffer exists and has `bytes` bytes from the operand's offset on.
  absl::Status VerifyOperand(absl::string_view place, const fbs::Operand& operand, uint64_t bytes);
  absl::Status VerifyWritable(absl::string_view place, const fbs::Operand& operand);
  // The operand is where the device's kernels, or its communications, work.
  absl::Status VerifyReached(absl::string_view place, const fbs::Operand& operand, bool by_kernel);
  absl::Status VerifyTimeline(absl::string_view place, const fbs::Program& program);

  const fbs::Plan& plan_;
  uint32_t role_ = 0;  // the role of the current program
  std::vector<Scratch> scratch_;
  // Per segment of the current program: slots that every buffer with several slots has; the first such buffer.
  std::vector<uint32_t> segment_slots_;
  std::vector<uint32_t> segment_slot_buffer_;
};

absl::Status ProgramVerifier::VerifyOperand(absl::string_view place, const fbs::Operand& operand, uint64_t bytes) {
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "buffer", operand.buffer(), plan_.buffers()->size()));
  const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
  if (buffer.role() != role_) {
    return Broken(place, ": buffer ", Quoted(buffer.name()), " is of role ", buffer.role(), ", the program of role ",
                  role_);
  }
  if (operand.offset() > buffer.bytes() || bytes > buffer.bytes() - operand.offset()) {
    return Broken(place, ": ", bytes, " bytes at offset ", operand.offset(), " reach beyond buffer ",
                  Quoted(buffer.name()), " of ", buffer.bytes(), " bytes");
  }
  if (buffer.slots() > 1 && buffer.kind() != fbs::BufferKind::Temporary && buffer.slots() < segment_slots_.back()) {
    segment_slots_.back() = buffer.slots();
    segment_slot_buffer_.back() = operand.buffer();
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyWritable(absl::string_view place, const fbs::Operand& operand) {
  const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
  if (buffer.kind() == fbs::BufferKind::Constant || buffer.kind() == fbs::BufferKind::Input ||
      buffer.kind() == fbs::BufferKind::Fault) {
    return Broken(
        place, ": writes buffer ", Quoted(buffer.name()), " of kind ", fbs::EnumNameBufferKind(buffer.kind()),
        buffer.kind() == fbs::BufferKind::Fault ? ", which only kernels write" : ", which commands may only read");
  }
  if (buffer.space() == fbs::MemorySpace::External) {
    return Broken(place, ": writes buffer ", Quoted(buffer.name()),
                  " in memory space External, which commands may only read");
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyReached(absl::string_view place, const fbs::Operand& operand, bool by_kernel) {
  const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
  if (buffer.space() == fbs::MemorySpace::Device || (by_kernel && buffer.space() == fbs::MemorySpace::External)) {
    return absl::OkStatus();
  }
  return Broken(place, ": buffer ", Quoted(buffer.name()), " is in memory space ",
                fbs::EnumNameMemorySpace(buffer.space()), ", which ", by_kernel ? "kernels" : "communications",
                " do not reach; copy it to space Device first");
}

absl::Status ProgramVerifier::VerifyLaunchOperand(const std::string& kernel_place, const fbs::Kernel& kernel,
                                                  uint32_t index, const fbs::Operand& operand) {
  const fbs::Argument& argument = *kernel.arguments()->Get(index);
  const std::string place = absl::StrCat(kernel_place, ": operand ", index);
  BOWLINE_RETURN_IF_ERROR(VerifyOperand(place, operand, *DenseBytes(argument.dtype(), argument.shape())));
  const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
  if (buffer.dtype() != argument.dtype()) {
    return Broken(place, ": buffer ", Quoted(buffer.name()), " is ", DescribeType(buffer.dtype(), buffer.shape()),
                  ", but the kernel takes ", DescribeType(argument.dtype(), argument.shape()));
  }
  BOWLINE_RETURN_IF_ERROR(VerifyReached(place, operand, /*by_kernel=*/true));
  const uint64_t alignment = AlignmentOf(argument);
  if (buffer.alignment() % alignment != 0) {
    return Broken(place, ": buffer ", Quoted(buffer.name()), " lies at a multiple of ", buffer.alignment(),
                  " bytes, but the kernel takes multiples of ", alignment);
  }
  if (operand.offset() % alignment != 0) {
    return Broken(place, ": offset ", operand.offset(), " into buffer ", Quoted(buffer.name()), " is no multiple of ",
                  alignment, ", which the kernel takes");
  }
  if (buffer.kind() == fbs::BufferKind::Fault) {
    if (argument.access() == fbs::Access::ReadWrite) return absl::OkStatus();
    return Broken(place, ": buffer ", Quoted(buffer.name()), " of kind Fault may only be read and written at once");
  }
  if (Writes(argument.access())) BOWLINE_RETURN_IF_ERROR(VerifyWritable(place, operand));
  if (buffer.kind() == fbs::BufferKind::Scratch && kernel.origin() == fbs::KernelOrigin::Registered &&
      (index + 1 != kernel.arguments()->size() || argument.dtype() != fbs::DType::U8 || SizeOf(argument.shape()) != 1 ||
       argument.access() != fbs::Access::Write)) {
    return Broken(place, ": scratch buffer ", Quoted(buffer.name()),
                  " may only be the last operand of a registered kernel, for a written argument of type u8[bytes]");
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyLaunch(const fbs::Launch& launch) {
  BOWLINE_RETURN_IF_ERROR(VerifyIndex("launch", "kernel", launch.kernel(), plan_.kernels()->size()));
  const fbs::Kernel& kernel = *plan_.kernels()->Get(launch.kernel());
  const std::string place = absl::StrCat("launch of ", Quoted(kernel.name()));
  BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "operands", launch.operands()));
  const uint32_t count = SizeOf(launch.operands());
  if (count != SizeOf(kernel.arguments())) {
    return Broken(place, ": ", count, " operands, but the kernel has ", SizeOf(kernel.arguments()), " arguments");
  }
  for (uint32_t i = 0; i < count; ++i) {
    BOWLINE_RETURN_IF_ERROR(VerifyLaunchOperand(place, kernel, i, *launch.operands()->Get(i)));
  }
  const Scratch scratch = HasScratchOperand(plan_, launch) ? Scratch::kPresent : Scratch::kAbsent;
  Scratch& known = scratch_[launch.kernel()];
  if (known != Scratch::kUnknown && known != scratch) {
    return Broken(place, ": other launches of this kernel ", known == Scratch::kPresent ? "have" : "do not have",
                  " a scratch buffer as their last operand");
  }
  known = scratch;
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyCopy(const fbs::Copy& copy) {
  if (copy.source() == nullptr) return Broken("copy: the source is absent");
  if (copy.destination() == nullptr) return Broken("copy: the destination is absent");
  BOWLINE_RETURN_IF_ERROR(VerifyOperand("copy: source", *copy.source(), copy.bytes()));
  BOWLINE_RETURN_IF_ERROR(VerifyOperand("copy: destination", *copy.destination(), copy.bytes()));
  BOWLINE_RETURN_IF_ERROR(VerifyWritable("copy: destination", *copy.destination()));
  const fbs::MemorySpace from = plan_.buffers()->Get(copy.source()->buffer())->space();
  const fbs::MemorySpace to = plan_.buffers()->Get(copy.destination()->buffer())->space();
  const absl::optional<fbs::CopyEngine> engine = EngineFor(from, to);
  if (!engine.has_value()) {
    return Broken("copy: no engine of the device copies from ", fbs::EnumNameMemorySpace(from), " to ",
                  fbs::EnumNameMemorySpace(to));
  }
  if (copy.engine() != *engine) {
    const std::string given = copy.engine() > fbs::CopyEngine::MAX ? absl::StrCat(static_cast<int>(copy.engine()))
                                                                   : fbs::EnumNameCopyEngine(copy.engine());
    return Broken("copy: names the engine ", given, ", but from ", fbs::EnumNameMemorySpace(from), " to ",
                  fbs::EnumNameMemorySpace(to), " it is ", fbs::EnumNameCopyEngine(*engine));
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyTransfers(const fbs::Command& command) {
  BOWLINE_RETURN_IF_ERROR(VerifyCommunication(plan_, role_, command));
  const absl::string_view place = fbs::EnumNameCommandBody(command.body_type());
  std::vector<OperandUse> uses;
  AppendCommunicationOperands(plan_, command, uses);
  for (const OperandUse& use : uses) {
    BOWLINE_RETURN_IF_ERROR(VerifyOperand(place, *use.operand, use.bytes));
    BOWLINE_RETURN_IF_ERROR(VerifyReached(place, *use.operand, /*by_kernel=*/false));
    BOWLINE_RETURN_IF_ERROR(VerifyElements(place, *use.operand, TypeOfCommunication(command)));
    if (Writes(use.access)) BOWLINE_RETURN_IF_ERROR(VerifyWritable(place, *use.operand));
  }
  return absl::OkStatus();
}

// Whole elements of the communication's type begin at the operand.
absl::Status ProgramVerifier::VerifyElements(absl::string_view place, const fbs::Operand& operand, fbs::DType dtype) {
  const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
  if (buffer.dtype() != dtype) {
    return Broken(place, ": moves elements of ", NameOf(ElementTypeOf(dtype)), ", but buffer ", Quoted(buffer.name()),
                  " is ", DescribeType(buffer.dtype(), buffer.shape()));
  }
  const uint64_t size = ElementSize(dtype);
  if (operand.offset() % size == 0 && buffer.alignment() % size == 0) return absl::OkStatus();
  return Broken(place, ": offset ", operand.offset(), " into buffer ", Quoted(buffer.name()),
                ", which lies at a multiple of ", buffer.alignment(), " bytes, is not where an element of ", size,
                " bytes may begin");
}

absl::Status ProgramVerifier::VerifyCommand(const fbs::Program& program, const fbs::Command& command) {
  BOWLINE_RETURN_IF_ERROR(VerifyIndex("command", "stream", command.stream(), SizeOf(program.streams())));
  BOWLINE_RETURN_IF_ERROR(VerifyIndex("command", "source", command.source(), plan_.sources()->size()));
  // The generated verifier accepts an unknown tag, and an absent value under a known one.
  if (command.body_type() == fbs::CommandBody::NONE || command.body() == nullptr) {
    return Broken("command: the body is absent");
  }
  switch (command.body_type()) {
    case fbs::CommandBody::Launch:
      return VerifyLaunch(*command.body_as_Launch());
    case fbs::CommandBody::Copy:
      return VerifyCopy(*command.body_as_Copy());
    case fbs::CommandBody::Collective:
    case fbs::CommandBody::Send:
    case fbs::CommandBody::Receive:
      return VerifyTransfers(command);
    case fbs::CommandBody::Signal:
      return VerifyEvent("signal", program, *command.body_as_Signal());
    case fbs::CommandBody::Wait:
      return VerifyEvent("wait", program, *command.body_as_Wait());
    case fbs::CommandBody::NONE:
      break;
  }
  return Broken("command: unknown kind ", static_cast<int>(command.body_type()), " of body");
}

absl::Status ProgramVerifier::VerifySegment(const fbs::Program& program, uint32_t index) {
  const fbs::Segment& segment = *program.segments()->Get(index);
  segment_slots_.push_back(std::numeric_limits<uint32_t>::max());
  segment_slot_buffer_.push_back(0);
  for (uint32_t i = 0; i < SizeOf(segment.commands()); ++i) {
    absl::Status status = VerifyCommand(program, *segment.commands()->Get(i));
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("segment ", index, " ", Quoted(segment.name()), ": command ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::VerifyTimeline(absl::string_view place, const fbs::Program& program) {
  uint64_t commands = 0;
  for (uint32_t i = 0; i < SizeOf(program.timeline()); ++i) {
    const fbs::SegmentCall& call = *program.timeline()->Get(i);
    const std::string call_place = absl::StrCat(place, ": call ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(call_place, "segment", call.segment(), SizeOf(program.segments())));
    const fbs::Segment& segment = *program.segments()->Get(call.segment());
    if (call.slot() >= kMaxSlots) return Broken(call_place, ": slot ", call.slot(), " is not below ", kMaxSlots);
    if (call.slot() >= segment_slots_[call.segment()]) {
      const fbs::Buffer& buffer = *plan_.buffers()->Get(segment_slot_buffer_[call.segment()]);
      return Broken(call_place, ": slot ", call.slot(), " of segment ", Quoted(segment.name()),
                    " does not exist in buffer ", Quoted(buffer.name()), ", which has ", buffer.slots(), " slots");
    }
    commands += SizeOf(segment.commands());
    if (commands > kMaxExpandedCommands) {
      return Broken(place, ": the timeline runs more than ", kMaxExpandedCommands, " commands");
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramVerifier::Verify(uint32_t index) {
  const fbs::Program& program = *plan_.programs()->Get(index);
  const std::string place = absl::StrCat("program ", index, " ", Quoted(program.name()));
  if (program.name()->size() == 0) return Broken(place, ": the name is empty");
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "role", program.role(), RoleCount(plan_)));
  role_ = program.role();
  if (program.events() > kMaxEvents)
    return Broken(place, ": ", program.events(), " events; ", kMaxEvents, " is the most");
  if (SizeOf(program.streams()) > kMaxStreams) {
    return Broken(place, ": ", SizeOf(program.streams()), " streams; ", kMaxStreams, " is the most");
  }
  NameSet streams("stream name");
  for (uint32_t i = 0; i < SizeOf(program.streams()); ++i) {
    BOWLINE_RETURN_IF_ERROR(streams.Insert(place, program.streams()->Get(i)));
  }
  segment_slots_.clear();
  segment_slot_buffer_.clear();
  for (uint32_t i = 0; i < SizeOf(program.segments()); ++i) {
    BOWLINE_RETURN_IF_ERROR(Annotate(VerifySegment(program, i), place));
  }
  return VerifyTimeline(place, program);
}

}  // namespace

absl::Status VerifyPrograms(const fbs::Plan& plan) {
  ProgramVerifier verifier(plan);
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) BOWLINE_RETURN_IF_ERROR(verifier.Verify(i));
  return absl::OkStatus();
}

}  // namespace bowline::verifier
