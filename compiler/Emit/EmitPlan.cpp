//===- EmitPlan.cpp - From the plan dialect to the plan file
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitPlan.h"
#include "compiler/Emit/PlanTypes.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Plan/Reason.h"
#include "dialects/Stage/StageOps.h"
#include "kernels/registry/data_check.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/Analysis/ModuleTarget.h"
#include "runtime/plan/collective_view.h"
#include "runtime/plan/plan_view.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <array>
#include <map>

using namespace mlir;
using namespace bowline;

// Flags and kinds have the same values in the IR and in the file; their names are compared by a test.
static_assert(static_cast<uint32_t>(~StateFlags::None) == static_cast<uint32_t>(fbs::StateFlag::ANY));
static_assert(getMaxEnumValForEntryKind() == static_cast<uint32_t>(fbs::EntryKind::MAX));

namespace {

class Emitter {
public:
  explicit Emitter(ModuleOp top) : top(top), plan(std::make_unique<fbs::PlanT>()), module(top) {}

  FailureOr<std::unique_ptr<fbs::PlanT>> run() {
    if (failed(emitHeader()))
      return failure();
    auto roles = llvm::to_vector(top.getOps<ModuleOp>());
    if (roles.empty()) {
      if (failed(emitRole()))
        return failure();
    } else if (failed(emitRoles(roles))) {
      return failure();
    }
    for (auto attachmentOp : top.getOps<plan::AttachmentOp>()) {
      auto attachment = std::make_unique<fbs::AttachmentT>();
      attachment->name = attachmentOp.getName().str();
      attachment->text = attachmentOp.getText().str();
      plan->attachments.push_back(std::move(attachment));
    }
    return std::move(plan);
  }

private:
  /// Nested modules are the programs of the coordinates along the axis of roles.
  LogicalResult emitRoles(ArrayRef<ModuleOp> roles) {
    for (ModuleOp nested : roles) {
      module = nested;
      role = plan->roles.size();
      plan->roles.push_back(std::make_unique<fbs::RoleT>());
      plan->roles.back()->name = nested.getSymName().value_or("").str();
      if (failed(emitRole()))
        return failure();
    }
    // One role needs nothing that tells it apart.
    if (roles.size() == 1)
      return success();
    auto axis = top->getAttrOfType<StringAttr>(plan::PlanDialect::kRoleAxisAttr);
    if (!axis)
      axis = roles.front()->getAttrOfType<StringAttr>(stage::StageDialect::kAxisAttr);
    if (!axis || !axisIndex.contains(axis))
      return top.emitError("nested modules need the attribute '")
             << plan::PlanDialect::kRoleAxisAttr << "', an axis of the mesh that tells them apart";
    plan->role_axis = axisIndex.lookup(axis);
    return success();
  }

  /// What `module` holds.
  LogicalResult emitRole() {
    auto arena = module->getAttrOfType<IntegerAttr>(plan::PlanDialect::kArenaBytesAttr);
    if (!arena)
      return module.emitError("the module has no '") << plan::PlanDialect::kArenaBytesAttr << "'; run pack-arena first";
    if (!plan->roles.empty())
      plan->roles.back()->arena_bytes = arena.getInt();
    plan->arena_bytes = std::max<uint64_t>(plan->arena_bytes, arena.getInt());
    if (failed(emitArenas()))
      return failure();
    kernelIndex.clear();
    programIndex.clear();
    checkIndex.clear();
    firstKernel = plan->kernels.size();
    roleImage.reset();
    if (failed(emitMesh()))
      return failure();
    for (auto buffer : module.getOps<plan::BufferOp>())
      if (failed(emitBuffer(buffer)))
        return failure();
    emitImage();
    appendFaults();
    for (auto kernel : module.getOps<plan::KernelOp>())
      if (failed(emitKernel(kernel)))
        return failure();
    for (auto program : module.getOps<plan::ProgramOp>())
      emitProgram(program);
    for (Operation &op : *module.getBody())
      if (failed(emitRest(&op)))
        return failure();
    return success();
  }

  /// Those in other spaces than device, in the order of spaces.
  LogicalResult emitArenas() {
    auto bytes = module->getAttrOfType<DictionaryAttr>(plan::PlanDialect::kOtherArenasAttr);
    if (!bytes)
      return success();
    std::map<plan::MemorySpace, int64_t> arenas;
    for (NamedAttribute arena : bytes) {
      std::optional<plan::MemorySpace> space = plan::symbolizeMemorySpace(arena.getName());
      auto size = dyn_cast<IntegerAttr>(arena.getValue());
      if (!space || *space == plan::MemorySpace::Device || !size)
        return module.emitError("'") << plan::PlanDialect::kOtherArenasAttr
                                     << "' holds bytes of pinned_host and external, not " << arena.getName() << " = "
                                     << arena.getValue();
      arenas[*space] = size.getInt();
    }
    for (auto [space, size] : arenas) {
      auto arena = std::make_unique<fbs::ArenaT>();
      arena->role = role;
      arena->space = static_cast<fbs::MemorySpace>(space);
      arena->bytes = size;
      plan->arenas.push_back(std::move(arena));
    }
    return success();
  }

  LogicalResult emitHeader() {
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::PlanDialect::kTargetAttr);
    if (!target)
      return module.emitError("the module has no '") << plan::PlanDialect::kTargetAttr << "' attribute";
    plan->name = module.getSymName().value_or("").str();
    auto compiler = module->getAttrOfType<StringAttr>(plan::PlanDialect::kCompilerAttr);
    plan->compiler = compiler ? compiler.str() : "bowline";
    plan->target = std::make_unique<fbs::TargetT>();
    plan->target->device = target.getDevice().str();
    plan->target->arch = target.getArch().str();
    plan->target->cpu = target.getCpu().str();
    plan->target->threads = target.getThreads();
    if (auto seed = module->getAttrOfType<IntegerAttr>(plan::PlanDialect::kSeedAttr))
      plan->seed = seed.getInt();
    sourceIndex("", "");
    return success();
  }

  /// All roles have the same mesh; a communicator is that of all who name it.
  LogicalResult emitMesh() {
    if (auto meshes = module.getOps<dist::MeshOp>(); !meshes.empty() && plan->mesh.empty()) {
      dist::MeshOp mesh = *meshes.begin();
      for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsRange<StringAttr>(), mesh.getAxisSizes())) {
        auto axis = std::make_unique<fbs::AxisT>();
        axis->name = name.str();
        axis->size = size;
        axisIndex[name] = plan->mesh.size();
        plan->mesh.push_back(std::move(axis));
      }
    }
    for (auto op : module.getOps<plan::CommunicatorOp>()) {
      if (communicatorIndex.contains(op.getSymNameAttr()))
        continue;
      auto communicator = std::make_unique<fbs::CommunicatorT>();
      communicator->name = op.getSymName().str();
      if (failed(emitAxes(op, op.getAxes(), communicator->axes)))
        return failure();
      communicatorIndex[op.getSymNameAttr()] = plan->communicators.size();
      plan->communicators.push_back(std::move(communicator));
    }
    return success();
  }

  LogicalResult emitAxes(Operation *op, ArrayAttr names, std::vector<uint8_t> &axes) {
    for (auto name : names.getAsRange<StringAttr>()) {
      auto known = axisIndex.find(name);
      if (known == axisIndex.end())
        return op->emitOpError("names the axis ") << name << ", which the module's dist.mesh does not have";
      axes.push_back(known->second);
    }
    return success();
  }

  LogicalResult emitLayout(plan::BufferOp op, fbs::BufferT &buffer) {
    plan::LayoutAttr attribute = op.getLayoutAttr();
    if (!attribute)
      return success();
    buffer.layout = std::make_unique<fbs::LayoutT>();
    buffer.layout->global_shape = attribute.getGlobalShape().asArrayRef().vec();
    buffer.layout->view = attribute.getView().asArrayRef().vec();
    for (auto names : attribute.getDimShardings().getAsRange<ArrayAttr>()) {
      buffer.layout->dim_shardings.push_back(std::make_unique<fbs::DimShardingT>());
      if (failed(emitAxes(op, names, buffer.layout->dim_shardings.back()->axes)))
        return failure();
    }
    return emitAxes(op, attribute.getFlatAxes(), buffer.layout->flat_axes);
  }

  uint32_t sourceIndex(const std::string &location, StringRef pass, StringRef reason = "") {
    auto [it, inserted] = sources.insert({{location, pass.str(), reason.str()}, static_cast<uint32_t>(sources.size())});
    if (inserted) {
      auto source = std::make_unique<fbs::SourceT>();
      source->location = location;
      source->pass = pass.str();
      source->reason = reason.str();
      plan->sources.push_back(std::move(source));
    }
    return it->second;
  }
  uint32_t sourceIndex(Operation *op, StringRef pass) {
    return sourceIndex(describeLocation(op->getLoc()), pass, plan::reasonOf(op));
  }

  LogicalResult emitBuffer(plan::BufferOp op) {
    if (!op.getOffset())
      return op.emitOpError("has no offset; run pack-arena first");
    std::optional<fbs::DType> dtype = toDType(op.getTensorType().getElementType());
    if (!dtype)
      return op.emitOpError("element type ") << op.getTensorType().getElementType() << " is not one of the plan's";
    auto buffer = std::make_unique<fbs::BufferT>();
    buffer->name = op.getName().str();
    buffer->kind = static_cast<fbs::BufferKind>(op.getKind());
    buffer->dtype = *dtype;
    buffer->shape = op.getTensorType().getShape().vec();
    buffer->space = static_cast<fbs::MemorySpace>(op.getSpace());
    buffer->alignment = op.getAlignment();
    buffer->offset = *op.getOffset();
    buffer->bytes = op.getBytes();
    buffer->slots = op.getSlots();
    buffer->slot_stride = op.getStride();
    buffer->source = sourceIndex(op, "");
    if (failed(emitLayout(op, *buffer)))
      return failure();
    buffer->role = role;
    bufferIndex[op.getResult()] = plan->buffers.size();
    plan->buffers.push_back(std::move(buffer));
    return success();
  }

  /// Roles with the same code share it: stages of equal layers do.
  void emitImage() {
    auto same = [](const std::unique_ptr<fbs::CodeT> &a, const std::unique_ptr<fbs::CodeT> &b) {
      return a->format == b->format && a->target == b->target && a->data == b->data;
    };
    auto image = std::make_unique<fbs::ImageT>();
    for (plan::ImageOp op : module.getOps<plan::ImageOp>()) {
      auto code = std::make_unique<fbs::CodeT>();
      code->format = op.getFormat().str();
      if (auto target = op->getAttrOfType<StringAttr>(kCodeTargetAttr))
        code->target = target.str();
      code->data = expand(cast<DenseElementsAttr>(op.getData()));
      image->codes.push_back(std::move(code));
    }
    if (image->codes.empty())
      return;
    for (roleImage = 0; *roleImage < plan->images.size(); ++*roleImage)
      if (std::equal(image->codes.begin(), image->codes.end(), plan->images[*roleImage]->codes.begin(),
                     plan->images[*roleImage]->codes.end(), same))
        return;
    plan->images.push_back(std::move(image));
  }

  LogicalResult emitKernel(plan::KernelOp op) {
    auto kernel = std::make_unique<fbs::KernelT>();
    if (op.getRegistered()) {
      kernel->origin = fbs::KernelOrigin::Registered;
      kernel->name = op.getRegistered()->str();
      if (DictionaryAttr config = op.getConfigAttr())
        for (NamedAttribute attribute : config)
          kernel->attributes.push_back(emitAttribute(attribute));
      if (op.getBody())
        return op.emitOpError("has no code yet for its epilogue; run generate-kernels first");
      kernel->epilogue = op.getSymbol().value_or("").str();
    } else if (op.getSymbol()) {
      kernel->origin = fbs::KernelOrigin::Generated;
      kernel->name = op.getSymbol()->str();
      if (auto grid = op.getGrid()) {
        fbs::GridT geometry;
        geometry.blocks = {static_cast<uint32_t>((*grid)[0])};
        geometry.threads = {static_cast<uint32_t>((*grid)[1])};
        geometry.constants.assign(grid->begin() + 2, grid->end());
        kernel->geometry.Set(std::move(geometry));
      } else {
        fbs::ByRangeT geometry;
        geometry.extent = *op.getExtent();
        kernel->geometry.Set(std::move(geometry));
      }
    } else {
      return op.emitOpError("has no code yet; run generate-kernels first");
    }
    for (auto argument : op.getArguments().getAsRange<plan::ArgumentAttr>()) {
      auto emitted = std::make_unique<fbs::ArgumentT>();
      emitted->access = static_cast<fbs::Access>(argument.getAccess());
      std::optional<fbs::DType> dtype = toDType(argument.getType().getElementType());
      if (!dtype)
        return op.emitOpError("argument element type ") << argument.getType() << " is not one of the plan's";
      emitted->dtype = *dtype;
      emitted->shape = argument.getType().getShape().vec();
      emitted->alignment = argument.getAlignment();
      kernel->arguments.push_back(std::move(emitted));
    }
    for (size_t i = 0; i < op.getInPlace().size(); i += 2)
      kernel->in_place.emplace_back(op.getInPlace()[i], op.getInPlace()[i + 1]);
    if (ArrayRef<int64_t> rows = op.getValidRows().value_or(ArrayRef<int64_t>()); !rows.empty()) {
      kernel->valid_rows = std::make_unique<fbs::ValidRowsT>();
      kernel->valid_rows->count = static_cast<uint32_t>(rows.front());
      kernel->valid_rows->arguments.assign(rows.begin() + 1, rows.end());
    }
    kernel->flops = op.getFlops().convertToDouble();
    kernel->bytes_moved = op.getBytesMoved().convertToDouble();
    if (op.getSymbol())
      // Without an image the loader says so.
      kernel->image = roleImage.value_or(plan->images.size());
    emitCheck(op, *kernel);
    kernelIndex[op.getSymNameAttr()] = shareKernel(std::move(kernel));
    return success();
  }

  /// Of the kernels whose data are checked before launches: the index of the check.
  void emitCheck(plan::KernelOp op, const fbs::KernelT &kernel) {
    const kernels::DataCheck *check = dataCheckOf(op);
    bool isUsed = llvm::any_of(
        faultOf, [&](const auto &fault) { return cast<plan::LaunchOp>(fault.first).getKernel() == op.getSymName(); });
    if (!check || !isUsed)
      return;
    kernels::Signature checked;
    for (const auto &argument : kernel.arguments)
      checked.arguments.push_back({static_cast<kernels::Access>(argument->access),
                                   static_cast<kernels::DType>(argument->dtype), argument->shape});
    const kernels::Signature signature = kernels::SignatureOfCheck(*check, checked);
    auto emitted = std::make_unique<fbs::KernelT>();
    emitted->name = signature.kernel;
    for (const kernels::Attribute &attribute : signature.attributes) {
      emitted->attributes.push_back(std::make_unique<fbs::AttributeT>());
      emitted->attributes.back()->name = attribute.name;
      emitted->attributes.back()->ints = attribute.ints;
    }
    for (const kernels::TensorSpec &spec : signature.arguments) {
      auto argument = std::make_unique<fbs::ArgumentT>();
      argument->access = static_cast<fbs::Access>(spec.access);
      argument->dtype = static_cast<fbs::DType>(spec.dtype);
      argument->shape = spec.shape;
      emitted->bytes_moved += static_cast<double>(spec.ByteCount());
      emitted->arguments.push_back(std::move(argument));
    }
    checkIndex[op.getSymNameAttr()] = {check, shareKernel(std::move(emitted))};
  }

  static const kernels::DataCheck *dataCheckOf(plan::KernelOp op) {
    DictionaryAttr config = op.getConfigAttr();
    if (!op.getRegistered() || (config && config.contains(StringRef(kernels::kInRange))))
      return nullptr;
    return kernels::FindDataCheck(std::string_view(*op.getRegistered()));
  }

  /// Whether callers of the program write the data that the launch checks, in a port whose limit is low enough.
  bool isCheckedByCallers(plan::LaunchOp launch, const kernels::DataCheck &check, plan::KernelOp kernel) {
    if (!check.is_row)
      return false;
    Value data = launch.getOperands()[check.argument];
    int64_t rows = kernel.getArgument(check.rows).getType().getDimSize(0);
    bool isPort = false;
    for (auto entry : module.getOps<plan::EntryOp>())
      for (auto [input, limit] : llvm::zip_equal(entry.getInputs(), entry.getInputLimits())) {
        if (input != data)
          continue;
        if (limit < 1 || limit > rows)
          return false;
        isPort = true;
      }
    return isPort;
  }

  /// Launches of the program whose data are checked. What prepares others reads what no run changes, and is repeated at
  /// any time: it says nothing.
  SmallVector<plan::LaunchOp> checkedLaunches(plan::ProgramOp program, const SymbolTable &symbols) {
    SmallVector<plan::LaunchOp> launches;
    for (auto entry : module.getOps<plan::EntryOp>())
      if (entry.getKind() == EntryKind::Prepare && entry.getProgram() == program.getSymName())
        return launches;
    program.walk([&](plan::LaunchOp launch) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      const kernels::DataCheck *check = dataCheckOf(kernel);
      if (check && !isCheckedByCallers(launch, *check, kernel))
        launches.push_back(launch);
    });
    return launches;
  }

  /// Words for each launch whose data are checked, behind all other buffers of the role.
  void appendFaults() {
    SymbolTable symbols(module);
    faultOf.clear();
    for (auto program : module.getOps<plan::ProgramOp>())
      for (plan::LaunchOp launch : checkedLaunches(program, symbols))
        faultOf.insert({launch, faultOf.size() * kernels::kFaultWords});
    if (faultOf.empty())
      return;
    auto buffer = std::make_unique<fbs::BufferT>();
    uint64_t &arena = arenaOf(fbs::MemorySpace::Device);
    buffer->name = "faults";
    buffer->kind = fbs::BufferKind::Fault;
    buffer->dtype = fbs::DType::I32;
    buffer->shape = {static_cast<int64_t>(faultOf.size()) * kernels::kFaultWords};
    buffer->alignment = deviceAlignment(module);
    buffer->offset = llvm::alignTo(arena, buffer->alignment);
    buffer->bytes = faultOf.size() * kernels::kFaultWords * sizeof(int32_t);
    buffer->source = sourceIndex("", "emit-plan", "");
    buffer->role = role;
    arena = buffer->offset + buffer->bytes;
    plan->arena_bytes = std::max(plan->arena_bytes, arena);
    faultBuffer = plan->buffers.size();
    plan->buffers.push_back(std::move(buffer));
  }

  /// The launch before `op` that checks its data; null where they are not checked.
  std::unique_ptr<fbs::CommandT> emitCheckOf(plan::Command op) {
    auto launchOp = dyn_cast<plan::LaunchOp>(op.getOperation());
    auto fault = launchOp ? faultOf.find(launchOp) : faultOf.end();
    if (fault == faultOf.end())
      return nullptr;
    auto [check, kernel] = checkIndex.lookup(launchOp.getKernelAttr().getAttr());
    fbs::LaunchT launch;
    launch.kernel = kernel;
    launch.operands = {operand(launchOp.getOperands()[check->argument]),
                       fbs::Operand(faultBuffer, fault->second * sizeof(int32_t))};
    auto command = std::make_unique<fbs::CommandT>();
    command->stream = op.getStreamIndex();
    command->source = sourceIndex(op, op.getPassName());
    command->body.Set(std::move(launch));
    return command;
  }

  /// The index of the kernel, which may be that of an equal one of an earlier role.
  uint32_t shareKernel(std::unique_ptr<fbs::KernelT> kernel) {
    flatbuffers::FlatBufferBuilder packed;
    packed.Finish(fbs::Kernel::Pack(packed, kernel.get()));
    std::string bytes(reinterpret_cast<const char *>(packed.GetBufferPointer()), packed.GetSize());
    uint32_t index = plan->kernels.size();
    auto [known, inserted] = kernels.emplace(std::move(bytes), index);
    if (!inserted && known->second < firstKernel)
      return known->second;
    plan->kernels.push_back(std::move(kernel));
    return index;
  }

  static std::unique_ptr<fbs::AttributeT> emitAttribute(NamedAttribute named) {
    auto attribute = std::make_unique<fbs::AttributeT>();
    attribute->name = named.getName().str();
    if (auto integer = dyn_cast<IntegerAttr>(named.getValue()))
      attribute->ints = {integer.getInt()};
    else if (auto list = dyn_cast<DenseI64ArrayAttr>(named.getValue()))
      attribute->ints = list.asArrayRef().vec();
    else if (auto real = dyn_cast<FloatAttr>(named.getValue()))
      attribute->floats = {real.getValueAsDouble()};
    else if (auto reals = dyn_cast<DenseF64ArrayAttr>(named.getValue()))
      attribute->floats = reals.asArrayRef().vec();
    else
      attribute->text = cast<StringAttr>(named.getValue()).str();
    return attribute;
  }

  fbs::Operand operand(Value buffer) { return fbs::Operand(bufferIndex.lookup(buffer), 0); }

  void emitProgram(plan::ProgramOp op) {
    auto program = std::make_unique<fbs::ProgramT>();
    program->name = op.getSymName().str();
    program->role = role;
    for (auto stream : op.getStreams().getAsRange<StringAttr>())
      program->streams.push_back(stream.str());
    for (auto segmentOp : op.getBody().front().getOps<plan::SegmentOp>()) {
      auto segment = std::make_unique<fbs::SegmentT>();
      segment->name = segmentOp.getName().str();
      for (Operation &command : segmentOp.getBody().front()) {
        if (std::unique_ptr<fbs::CommandT> check = emitCheckOf(cast<plan::Command>(command)))
          segment->commands.push_back(std::move(check));
        segment->commands.push_back(emitCommand(cast<plan::Command>(command), *program));
      }
      program->segments.push_back(std::move(segment));
    }
    for (size_t i = 0; i < op.getTimeline().size(); i += 2)
      program->timeline.emplace_back(op.getTimeline()[i], op.getTimeline()[i + 1]);
    programIndex[op.getSymNameAttr()] = plan->programs.size();
    plan->programs.push_back(std::move(program));
  }

  std::unique_ptr<fbs::CommandT> emitCommand(plan::Command op, fbs::ProgramT &program) {
    auto command = std::make_unique<fbs::CommandT>();
    command->stream = op.getStreamIndex();
    command->source = sourceIndex(op, op.getPassName());
    auto useEvent = [&](auto event) {
      program.events = std::max(program.events, event.event + event.slots);
      command->body.Set(event);
    };
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](plan::LaunchOp launchOp) {
          fbs::LaunchT launch;
          launch.kernel = kernelIndex.lookup(launchOp.getKernelAttr().getAttr());
          for (Value buffer : launchOp.getOperands())
            launch.operands.push_back(operand(buffer));
          command->body.Set(std::move(launch));
        })
        .Case([&](plan::CopyOp copyOp) {
          fbs::CopyT copy;
          copy.source = std::make_unique<fbs::Operand>(operand(copyOp.getSource()));
          copy.destination = std::make_unique<fbs::Operand>(operand(copyOp.getDestination()));
          copy.bytes = copyOp.getSource().getType().getBytes();
          auto spaceOf = [&](Value buffer) { return plan->buffers[bufferIndex.lookup(buffer)]->space; };
          // What has none, the loader refuses.
          copy.engine = EngineFor(spaceOf(copyOp.getSource()), spaceOf(copyOp.getDestination()))
                            .value_or(fbs::CopyEngine::WithinDevice);
          command->body.Set(std::move(copy));
        })
        .Case([&](plan::CollectiveOp op) { command->body.Set(emitCollective(op)); })
        .Case([&](plan::SendOp op) { command->body.Set(emitTransfer<fbs::SendT>(op)); })
        .Case([&](plan::ReceiveOp op) { command->body.Set(emitTransfer<fbs::ReceiveT>(op)); })
        .Case([&](plan::SignalOp op) {
          fbs::SignalT signal;
          signal.event = op.getEvent();
          signal.slots = op.getSlots();
          useEvent(signal);
        })
        .Case([&](plan::WaitOp op) {
          fbs::WaitT wait;
          wait.event = op.getEvent();
          wait.slots = op.getSlots();
          useEvent(wait);
        });
    return command;
  }

  static RankedTensorType tensorOf(Value buffer) { return cast<plan::BufferType>(buffer.getType()).getTensor(); }

  fbs::CollectiveT emitCollective(plan::CollectiveOp op) {
    fbs::CollectiveT collective;
    collective.kind = static_cast<fbs::CollectiveKind>(op.getKind());
    SetParameter(collective, op.getParameter());
    collective.communicator = communicatorIndex.lookup(op.getCommunicatorAttr().getAttr());
    collective.dtype = *toDType(tensorOf(op.getSources().front()).getElementType());
    const fbs::CommunicatorT &communicator = *plan->communicators[collective.communicator];
    int64_t ranks = 1;
    for (uint8_t axis : communicator.axes)
      ranks *= plan->mesh[axis]->size;
    int64_t parts = op.getDefinition().SourceParts(ranks);
    for (auto [source, destination] : llvm::zip_equal(op.getSources(), op.getDestinations())) {
      int64_t count = tensorOf(source).getNumElements() / parts;
      collective.pieces.emplace_back(operand(source), operand(destination), count);
    }
    return collective;
  }

  template <typename TransferT, typename OpTy> TransferT emitTransfer(OpTy op) {
    TransferT transfer;
    transfer.communicator = communicatorIndex.lookup(op.getCommunicatorAttr().getAttr());
    transfer.peer = op.getPeer();
    transfer.dtype = *toDType(tensorOf(op.getBuffers().front()).getElementType());
    for (Value buffer : op.getBuffers())
      transfer.ranges.emplace_back(operand(buffer), tensorOf(buffer).getNumElements());
    return transfer;
  }

  LogicalResult emitRest(Operation *op) {
    if (auto stateOp = dyn_cast<plan::StateOp>(op)) {
      auto state = std::make_unique<fbs::StateT>();
      state->buffer = bufferIndex.lookup(stateOp.getBuffer());
      state->key = stateOp.getKey().str();
      state->flags = static_cast<fbs::StateFlag>(stateOp.getFlags());
      state->init = stateOp.getInit().str();
      plan->states.push_back(std::move(state));
    } else if (auto constantOp = dyn_cast<plan::ConstantOp>(op)) {
      auto constant = std::make_unique<fbs::ConstantDataT>();
      constant->buffer = bufferIndex.lookup(constantOp.getBuffer());
      constant->data = expand(cast<DenseElementsAttr>(constantOp.getValue()));
      plan->constants.push_back(std::move(constant));
    } else if (auto entryOp = dyn_cast<plan::EntryOp>(op)) {
      emitEntry(entryOp);
    } else if (auto coordinateOp = dyn_cast<plan::CoordinateOp>(op)) {
      auto coordinate = std::make_unique<fbs::CoordinateT>();
      coordinate->buffer = bufferIndex.lookup(coordinateOp.getBuffer());
      if (failed(emitAxes(op, coordinateOp.getAxes(), coordinate->axes)))
        return failure();
      plan->coordinates.push_back(std::move(coordinate));
    }
    return success();
  }

  /// All elements as bytes; a splat stores one.
  static std::vector<uint8_t> expand(DenseElementsAttr elements) {
    ArrayRef<char> raw = elements.getRawData();
    std::vector<uint8_t> bytes;
    for (int64_t i = 0, count = elements.isSplat() ? elements.getNumElements() : 1; i < count; ++i)
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    return bytes;
  }

  /// Bytes of the role's arena in `space`.
  uint64_t &arenaOf(fbs::MemorySpace space) {
    for (const auto &arena : plan->arenas)
      if (arena->role == role && arena->space == space)
        return arena->bytes;
    return plan->roles.empty() ? plan->arena_bytes : plan->roles.back()->arena_bytes;
  }

  /// A second buffer like one that a port has, behind all others of the role.
  uint32_t appendLike(uint32_t first) {
    auto second = std::make_unique<fbs::BufferT>(*plan->buffers[first]);
    uint64_t &arena = arenaOf(second->space);
    second->name += ".second";
    second->offset = llvm::alignTo(arena, second->alignment);
    arena = second->offset + second->bytes + (second->slots - 1) * second->slot_stride;
    if (second->space == fbs::MemorySpace::Device)
      plan->arena_bytes = std::max(plan->arena_bytes, arena);
    plan->buffers.push_back(std::move(second));
    return plan->buffers.size() - 1;
  }

  void emitEntry(plan::EntryOp op) {
    auto entry = std::make_unique<fbs::EntryT>();
    entry->name = op.getSymName().str();
    entry->kind = static_cast<fbs::EntryKind>(op.getKind());
    entry->bucket = static_cast<uint32_t>(op.getBucket());
    entry->program = programIndex.lookup(op.getProgramAttr().getAttr());
    auto port = [&](Attribute name, Value buffer, int64_t limit) {
      auto result = std::make_unique<fbs::PortT>();
      result->name = cast<StringAttr>(name).str();
      result->buffer = bufferIndex.lookup(buffer);
      result->limit = limit;
      return result;
    };
    for (auto [name, buffer, limit] : llvm::zip_equal(op.getInputNames(), op.getInputs(), op.getInputLimits()))
      entry->inputs.push_back(port(name, buffer, limit));
    for (auto [name, buffer] : llvm::zip_equal(op.getOutputNames(), op.getOutputs()))
      entry->outputs.push_back(port(name, buffer, 0));
    // What is wrong with these the loader says.
    if (auto runs = op->getAttrOfType<IntegerAttr>(kInFlightAttr))
      entry->in_flight = static_cast<uint8_t>(std::clamp<int64_t>(runs.getInt(), 0, 3));
    if (auto feeds = op->getAttrOfType<DenseI64ArrayAttr>(kFeedsAttr))
      for (int64_t i = 0; i + 1 < feeds.size(); i += 2)
        entry->feeds.emplace_back(feeds[i], feeds[i + 1]);
    if (entry->in_flight == 2)
      for (auto *ports : {&entry->inputs, &entry->outputs})
        for (const auto &port : *ports)
          port->second = appendLike(port->buffer);
    if (op.getOrder() || op.getValues())
      emitCertificate(op, entry->name);
    plan->entries.push_back(std::move(entry));
  }

  /// The role's part of the entry's certificate. Whether it proves anything is for the loader to say.
  void emitCertificate(plan::EntryOp op, const std::string &entry) {
    auto found =
        llvm::find_if(plan->certificates, [&](const auto &certificate) { return certificate->entry == entry; });
    if (found == plan->certificates.end()) {
      plan->certificates.push_back(std::make_unique<fbs::CertificateT>());
      found = std::prev(plan->certificates.end());
      (*found)->entry = entry;
    }
    while ((*found)->roles.size() <= role)
      (*found)->roles.push_back(std::make_unique<fbs::RoleOrderT>());
    fbs::RoleOrderT &part = *(*found)->roles[role];
    const ArrayRef<int64_t> numbers = op.getOrder().value_or(ArrayRef<int64_t>());
    part.numbers.assign(numbers.begin(), numbers.end());
    const ArrayRef<int64_t> halves = op.getValues().value_or(ArrayRef<int64_t>());
    for (size_t i = 0; i + 1 < halves.size(); i += 2)
      part.values.emplace_back(static_cast<uint64_t>(halves[i]), static_cast<uint64_t>(halves[i + 1]));
  }

  ModuleOp top;
  std::unique_ptr<fbs::PlanT> plan;
  /// The role that is being emitted.
  ModuleOp module;
  uint16_t role = 0;
  uint32_t firstKernel = 0; ///< that is of no earlier role
  std::optional<uint32_t> roleImage;
  /// Of this role: words by launch, the buffer of them, and what checks by kernel.
  DenseMap<Operation *, uint64_t> faultOf;
  uint32_t faultBuffer = 0;
  DenseMap<StringAttr, std::pair<const kernels::DataCheck *, uint32_t>> checkIndex;
  std::map<std::string, uint32_t> kernels; ///< packed, the first of equal ones
  /// By location, pass and reason.
  std::map<std::array<std::string, 3>, uint32_t> sources;
  DenseMap<Value, uint32_t> bufferIndex;
  DenseMap<StringAttr, uint32_t> kernelIndex, programIndex, communicatorIndex;
  DenseMap<StringAttr, uint8_t> axisIndex;
};

} // namespace

FailureOr<std::unique_ptr<fbs::PlanT>> bowline::emitPlan(ModuleOp module) { return Emitter(module).run(); }
