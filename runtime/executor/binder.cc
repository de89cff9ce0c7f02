#include "runtime/executor/binder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checker/KernelSignature.h"
#include "kernels/registry/registry.h"
#include "runtime/plan/view/buffer_view.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/plan/view/preparation.h"

namespace bowline {
namespace {

// A command takes about 100 bytes bound, and real plans have tens of thousands.
constexpr uint64_t kMaxBoundCommands = uint64_t{1} << 24;

hal::Grid GridOf(const fbs::Grid& from) {
  hal::Grid grid;
  for (uint32_t d = 0; d < SizeOf(from.blocks()); ++d) grid.blocks[d] = from.blocks()->Get(d);
  for (uint32_t d = 0; d < SizeOf(from.threads()); ++d) grid.threads[d] = from.threads()->Get(d);
  grid.shared_bytes = from.shared_bytes();
  for (uint32_t i = 0; i < SizeOf(from.constants()); ++i) grid.constants.push_back(from.constants()->Get(i));
  return grid;
}

hal::Geometry GeometryOf(const fbs::Kernel& kernel) {
  const GeometryVisitor visitor{
      [](std::monostate) -> hal::Geometry { return {}; },
      [](const fbs::ByRange& range) -> hal::Geometry { return hal::Extent{static_cast<int64_t>(range.extent())}; },
      [](const fbs::Grid& grid) -> hal::Geometry { return GridOf(grid); },
  };
  return VisitGeometry(kernel, visitor);
}

bool HasEpilogue(const fbs::Kernel& kernel) { return kernel.epilogue() != nullptr && kernel.epilogue()->size() > 0; }

// A plan may share bytes between arguments only where the kernel's author said so.
absl::Status CheckInPlace(const fbs::Kernel& kernel) {
  const absl::StatusOr<const kernels::KernelDefinition*> definition = kernels::FindKernel(kernel.name()->str());
  if (!definition.ok()) return absl::OkStatus();  // the device decides whether it refuses the kernel
  for (uint32_t i = 0; i < SizeOf(kernel.in_place()); ++i) {
    const fbs::InPlace& pair = *kernel.in_place()->Get(i);
    const std::pair<int, int> allowed = {static_cast<int>(pair.output()), static_cast<int>(pair.input())};
    const auto& pairs = (*definition)->in_place;
    // The compiler answers for the accesses of an epilogue: the kernel only hands the arguments on.
    const int operands = (*definition)->epilogue_operands;
    if (HasEpilogue(kernel) && allowed.first >= operands && allowed.second >= operands) continue;
    if (std::find(pairs.begin(), pairs.end(), allowed) == pairs.end()) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", Quoted(kernel.name()), ": the plan lets argument ",
                                                     pair.output(), " be the bytes of argument ", pair.input(),
                                                     ", which this build's kernel does not allow; compile the model "
                                                     "again with the bowline-compile of this build"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BoundPlan::Issue(const BoundCommand& command) const {
  hal::Stream& stream = *streams[command.stream];
  switch (command.kind) {
    case fbs::CommandBody::Launch:
      return stream.Launch(*command.launchable, *command.geometry,
                           {arguments.data() + command.first_argument, command.argument_count}, command.scratch);
    case fbs::CommandBody::Copy:
      return stream.Copy(arguments[command.first_argument], arguments[command.first_argument + 1], command.copy_bytes);
    case fbs::CommandBody::Signal:
      return stream.Record(*command.event);
    case fbs::CommandBody::Wait:
      return stream.Wait(*command.event);
    case fbs::CommandBody::Collective:
    case fbs::CommandBody::Send:
    case fbs::CommandBody::Receive:
      return command.communicator->Issue(stream, command.operation,
                                         {pieces.data() + command.first_argument, command.argument_count});
    case fbs::CommandBody::NONE:
      break;
  }
  return absl::InternalError("a command of unknown kind was bound");
}

absl::StatusOr<std::unique_ptr<hal::Launchable>> Binder::CreateRegistered(const fbs::Kernel& kernel, bool has_scratch) {
  BOWLINE_RETURN_IF_ERROR(CheckInPlace(kernel));
  kernels::Signature signature = signatureOf(plan_, kernel, has_scratch);
  if (signature.has_epilogue) {
    BOWLINE_ASSIGN_OR_RETURN(const void* epilogue,
                             bound_.executables[kernel.image()]->ResolveFunction(kernel.epilogue()->str()));
    signature.epilogue = reinterpret_cast<kernels::TileEpilogue>(const_cast<void*>(epilogue));
  }
  const uint64_t given = signature.scratch_limit;
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Launchable> launchable, device_.CreateKernel(signature));
  if (launchable->ScratchBytes() > given) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel ", Quoted(kernel.name()), " needs ", launchable->ScratchBytes(),
                     " bytes of scratch on this machine, but the plan gives it ", given,
                     ": the plan was compiled for another CPU or thread count; compile the model again here"));
  }
  return launchable;
}

absl::StatusOr<std::unique_ptr<hal::Executable>> Binder::LoadImage(const fbs::Image& image) {
  absl::Status first;
  for (const fbs::Code* code : *image.codes()) {
    const fbs::Target& target = *plan_.target();
    const absl::string_view cpu = TextOf(code->target()).empty() ? TextOf(target.cpu()) : TextOf(code->target());
    absl::Status refused = device_.CheckTarget({target.device()->str(), target.arch()->str(), std::string(cpu)});
    if (refused.ok()) {
      const absl::string_view format = TextOf(code->format());
      auto executable = device_.LoadExecutable(format, {code->data()->data(), code->data()->size()});
      if (device_.KnowsFormat(format)) return executable;
      refused = executable.status();
    }
    if (first.ok()) first = refused;
  }
  return first;
}

absl::Status Binder::CreateKernels() {
  for (uint32_t i = 0; i < SizeOf(plan_.images()); ++i) {
    auto executable = LoadImage(*plan_.images()->Get(i));
    if (!executable.ok()) return Annotate(executable.status(), absl::StrCat("image ", i));
    bound_.executables.push_back(*std::move(executable));
  }
  const std::vector<bool> has_scratch = findKernelsWithScratch(plan_);
  for (uint32_t i = 0; i < plan_.kernels()->size(); ++i) {
    const fbs::Kernel& kernel = *plan_.kernels()->Get(i);
    auto launchable =
        kernel.origin() == fbs::KernelOrigin::Generated
            ? bound_.executables[kernel.image()]->Resolve(kernel.name()->str(), {kernel.flops(), kernel.bytes_moved()})
            : CreateRegistered(kernel, has_scratch[i]);
    if (!launchable.ok()) return Annotate(launchable.status(), absl::StrCat("kernel ", i));
    bound_.launchables.push_back(*std::move(launchable));
    bound_.geometries.push_back(GeometryOf(kernel));
    BOWLINE_RETURN_IF_ERROR(Annotate(bound_.launchables[i]->CheckGeometry(bound_.geometries[i]),
                                     absl::StrCat("kernel ", i, " ", Quoted(kernel.name()))));
  }
  return absl::OkStatus();
}

hal::DeviceAddress Binder::Address(const fbs::Operand& operand, uint32_t slot) const {
  const auto second = seconds_.find(operand.buffer());
  const fbs::Buffer& buffer = *plan_.buffers()->Get(second == seconds_.end() ? operand.buffer() : second->second);
  if (buffer.space() == fbs::MemorySpace::External) return operand.offset();
  return arenas_[static_cast<size_t>(buffer.space())] + OffsetOf(buffer, slot) + ShiftOf(plan_, buffer, rank()) +
         operand.offset();
}

void Binder::AddArgument(const fbs::Operand& operand, uint32_t slot) {
  if (plan_.buffers()->Get(operand.buffer())->space() == fbs::MemorySpace::External) {
    bound_.external_arguments[operand.buffer()].push_back(static_cast<uint32_t>(bound_.arguments.size()));
    bound_.reads_external[program_] = true;
  }
  bound_.arguments.push_back(Address(operand, slot));
}

void Binder::BindLaunch(const fbs::Launch& launch, uint32_t slot, BoundCommand* bound) {
  const bool has_scratch = HasScratchOperand(plan_, launch);
  bound->launchable = bound_.launchables[launch.kernel()].get();
  bound->geometry = &bound_.geometries[launch.kernel()];
  bound->kernel = launch.kernel();
  bound->argument_count = SizeOf(launch.operands()) - (has_scratch ? 1 : 0);
  for (uint32_t i = 0; i < SizeOf(launch.operands()); ++i) {
    if (i < bound->argument_count) {
      AddArgument(*launch.operands()->Get(i), slot);
    } else {
      bound->scratch = Address(*launch.operands()->Get(i), slot);
    }
  }
}

void Binder::BindCopy(const fbs::Copy& copy, uint32_t slot, BoundCommand* bound) {
  bound->argument_count = 2;
  bound->copy_bytes = copy.bytes();
  AddArgument(*copy.destination(), slot);
  AddArgument(*copy.source(), slot);
}

absl::Status Binder::BindCommunication(const fbs::Command& command, uint32_t slot, BoundCommand* bound) {
  std::vector<OperandUse> uses;
  AppendCommunicationOperands(plan_, command, uses);
  std::vector<hal::DeviceAddress> addresses;
  for (const OperandUse& use : uses) addresses.push_back(Address(*use.operand, slot));
  bound->first_argument = static_cast<uint32_t>(bound_.pieces.size());
  uint32_t communicator = 0;
  const auto set = [&](hal::OperationKind kind, const auto& body) {
    communicator = body.communicator();
    bound->operation.kind = kind;
    bound->operation.dtype = ElementTypeOf(body.dtype());
  };
  const auto add_ranges = [&](hal::OperationKind kind, const auto& transfer) {
    set(kind, transfer);
    bound->operation.peer = static_cast<int>(transfer.peer());
    const bool sends = kind == hal::OperationKind::kSend;
    for (uint32_t i = 0; i < SizeOf(transfer.ranges()); ++i) {
      const size_t count = transfer.ranges()->Get(i)->count();
      bound_.pieces.push_back({sends ? addresses[i] : 0, sends ? 0 : addresses[i], count});
    }
  };
  if (const fbs::Send* send = command.body_as_Send()) {
    add_ranges(hal::OperationKind::kSend, *send);
  } else if (const fbs::Receive* receive = command.body_as_Receive()) {
    add_ranges(hal::OperationKind::kReceive, *receive);
  } else {
    const fbs::Collective& collective = *command.body_as_Collective();
    set(hal::KindOf(KindOf(collective.kind())), collective);
    bound->operation.parameter = static_cast<uint16_t>(ParameterOf(collective));
    for (uint32_t i = 0; i < SizeOf(collective.pieces()); ++i) {
      const size_t place = size_t{2} * i;
      bound_.pieces.push_back({addresses[place], addresses[place + 1], collective.pieces()->Get(i)->count()});
    }
  }
  bound->argument_count = static_cast<uint32_t>(bound_.pieces.size()) - bound->first_argument;
  bound->communicator = bound_.communicators[communicator].get();
  return bound->communicator->Reserve(bound->operation,
                                      {bound_.pieces.data() + bound->first_argument, bound->argument_count});
}

absl::Status Binder::CreateCommunicators() {
  for (uint32_t i = 0; i < SizeOf(plan_.communicators()); ++i) {
    const fbs::Communicator& communicator = *plan_.communicators()->Get(i);
    LinkOptions link;
    for (uint32_t a = 0; a < SizeOf(communicator.axes()); ++a) {
      auto found = links_.find(TextOf(plan_.mesh()->Get(communicator.axes()->Get(a))->name()));
      if (found == links_.end()) found = links_.find("");
      if (found != links_.end()) link = LinkOptions(targets::SlowestOf(link, found->second));
    }
    // Groups of one communicator are apart from each other; each has the name of its first member.
    const std::vector<int> members = MembersAlong(plan_, communicator.axes(), rank());
    const std::string name = absl::StrCat(TextOf(communicator.name()), "@", members.front());
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> exchange, group_->CreateExchange(name, members, link));
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Communicator> created,
                             device_.CreateCommunicator(std::move(exchange)));
    bound_.communicators.push_back(std::move(created));
  }
  return absl::OkStatus();
}

absl::Status Binder::CreateEvents() {
  uint32_t count = 0;
  for (const fbs::Program* program : *plan_.programs()) {
    if (program->role() == role_) count = std::max(count, program->events());
  }
  while (bound_.events.size() < count) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Event> event, device_.CreateEvent());
    bound_.events.push_back(std::move(event));
  }
  return absl::OkStatus();
}

bool Binder::UsesSeconds(const fbs::Segment& segment) const {
  if (seconds_.empty()) return false;
  std::vector<OperandUse> uses;
  for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) AppendOperands(plan_, *segment.commands()->Get(c), uses);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const OperandUse& use) { return seconds_.count(use.operand->buffer()) > 0; });
}

bool Binder::UsesSlots(const fbs::Segment& segment) const {
  const auto has_slots = [&](const fbs::Operand& operand) {
    return plan_.buffers()->Get(operand.buffer())->slots() > 1;
  };
  std::vector<OperandUse> uses;
  for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
    const fbs::Command& command = *segment.commands()->Get(c);
    if (const fbs::Launch* launch = command.body_as_Launch()) {
      for (uint32_t i = 0; i < SizeOf(launch->operands()); ++i) {
        if (has_slots(*launch->operands()->Get(i))) return true;
      }
    } else if (const fbs::Copy* copy = command.body_as_Copy()) {
      if (has_slots(*copy->source()) || has_slots(*copy->destination())) return true;
    } else if (const fbs::Signal* signal = command.body_as_Signal()) {
      if (signal->slots() > 1) return true;
    } else if (const fbs::Wait* wait = command.body_as_Wait()) {
      if (wait->slots() > 1) return true;
    } else {
      uses.clear();
      AppendCommunicationOperands(plan_, command, uses);
      for (const OperandUse& use : uses) {
        if (has_slots(*use.operand)) return true;
      }
    }
  }
  return false;
}

absl::Status Binder::BindCall(const fbs::Program& program, const fbs::SegmentCall& call, BoundCall* bound) {
  const fbs::Segment& segment = *program.segments()->Get(call.segment());
  // Every slot of this segment was bound before, or has the addresses of slot 0.
  uint32_t slot = call.slot();
  const bool seconds = UsesSeconds(segment);
  if (calls_.count({&segment, slot, seconds}) == 0 && !UsesSlots(segment)) slot = 0;
  const auto [entry, inserted] = calls_.try_emplace({&segment, slot, seconds});
  if (inserted) {
    entry->second = {static_cast<uint32_t>(bound_.commands.size()), SizeOf(segment.commands())};
    if (bound_.commands.size() + SizeOf(segment.commands()) > kMaxBoundCommands) {
      return absl::ResourceExhaustedError(absl::StrCat("program ", Quoted(program.name()), " has more than ",
                                                       kMaxBoundCommands, " commands with different addresses"));
    }
    for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
      const fbs::Command& command = *segment.commands()->Get(c);
      BoundCommand result;
      result.stream = command.stream();
      result.first_argument = static_cast<uint32_t>(bound_.arguments.size());
      result.kind = command.body_type();
      switch (result.kind) {
        case fbs::CommandBody::Launch:
          BindLaunch(*command.body_as_Launch(), slot, &result);
          break;
        case fbs::CommandBody::Copy:
          BindCopy(*command.body_as_Copy(), slot, &result);
          break;
        case fbs::CommandBody::Signal:
          result.event = bound_.events[EventOf(*command.body_as_Signal(), slot)].get();
          break;
        case fbs::CommandBody::Wait:
          result.event = bound_.events[EventOf(*command.body_as_Wait(), slot)].get();
          break;
        case fbs::CommandBody::Collective:
        case fbs::CommandBody::Send:
        case fbs::CommandBody::Receive:
          BOWLINE_RETURN_IF_ERROR(BindCommunication(command, slot, &result));
          break;
        case fbs::CommandBody::NONE:
          return absl::InternalError(absl::StrCat("command ", c, " has no body"));
      }
      bound_.commands.push_back(result);
    }
  }
  *bound = entry->second;
  return absl::OkStatus();
}

absl::Status Binder::BindTimeline(const fbs::Program& program, std::vector<BoundCall>& timeline) {
  timeline.resize(SizeOf(program.timeline()));
  for (uint32_t i = 0; i < timeline.size(); ++i) {
    BOWLINE_RETURN_IF_ERROR(BindCall(program, *program.timeline()->Get(i), &timeline[i]));
  }
  return absl::OkStatus();
}

absl::Status Binder::BindProgram(uint32_t index) {
  const fbs::Program& program = *plan_.programs()->Get(index);
  // The first stream computes, on the thread that issues the commands; the others run beside it.
  while (bound_.streams.size() < SizeOf(program.streams())) {
    const hal::StreamMode mode = bound_.streams.empty() ? compute_ : hal::StreamMode::kWorker;
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Stream> stream, device_.CreateStream(mode));
    bound_.streams.push_back(std::move(stream));
  }
  BOWLINE_RETURN_IF_ERROR(BindTimeline(program, bound_.timelines[index][0]));
  for (const fbs::Entry* entry : *plan_.entries()) {
    if (entry->program() != index || entry->in_flight() == 1) continue;
    for (const auto* ports : {entry->inputs(), entry->outputs()}) {
      for (uint32_t i = 0; i < SizeOf(ports); ++i) seconds_[ports->Get(i)->buffer()] = ports->Get(i)->second();
    }
    const absl::Status status = BindTimeline(program, bound_.timelines[index][1]);
    seconds_.clear();
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundPlan> Binder::Bind() {
  BOWLINE_RETURN_IF_ERROR(CreateKernels());
  BOWLINE_RETURN_IF_ERROR(CreateCommunicators());
  BOWLINE_RETURN_IF_ERROR(CreateEvents());
  bound_.timelines.resize(plan_.programs()->size());
  bound_.reads_external.resize(plan_.programs()->size());
  for (program_ = 0; program_ < bound_.timelines.size(); ++program_) {
    if (plan_.programs()->Get(program_)->role() == role_) BOWLINE_RETURN_IF_ERROR(BindProgram(program_));
  }
  return std::move(bound_);
}

}  // namespace bowline
