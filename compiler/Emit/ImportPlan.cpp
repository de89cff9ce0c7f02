//===- ImportPlan.cpp - From the plan file to the plan dialect
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
#include "kernels/registry/data_check.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/collective_view.h"
#include "llvm/ADT/BitVector.h"

#include <limits>

using namespace mlir;
using namespace bowline;

namespace {

class Importer {
public:
  Importer(MLIRContext *context, const fbs::PlanT &plan) : plan(plan), builder(context) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(
        builder.getUnknownLoc(), plan.name.empty() ? std::nullopt : std::optional<StringRef>(plan.name));
    builder.setInsertionPointToEnd(module->getBody());
    importHeader(*module);
    buffers.resize(plan.buffers.size());
    kernelSymbols.resize(plan.kernels.size());
    if (failed(plan.roles.empty() ? importRole(*module, plan.arena_bytes) : importRoles(*module)))
      return {};
    for (const auto &attachment : plan.attachments)
      plan::AttachmentOp::create(builder, builder.getUnknownLoc(), attachment->name, attachment->text);
    return module;
  }

private:
  Location locationOf(uint32_t source) {
    const std::string &text = plan.sources[source]->location;
    return text.empty() ? Location(builder.getUnknownLoc()) : NameLoc::get(builder.getStringAttr(text));
  }

  void importHeader(ModuleOp module) {
    MLIRContext *context = builder.getContext();
    const fbs::TargetT &target = *plan.target;
    module->setAttr(plan::PlanDialect::kTargetAttr,
                    plan::TargetAttr::get(context, target.device, target.arch, target.cpu, target.threads));
    module->setAttr(plan::PlanDialect::kSeedAttr, builder.getI64IntegerAttr(plan.seed));
    module->setAttr(plan::PlanDialect::kCompilerAttr, builder.getStringAttr(plan.compiler));
  }

  LogicalResult importRoles(ModuleOp top) {
    if (plan.roles.size() > 1)
      top->setAttr(plan::PlanDialect::kRoleAxisAttr, builder.getStringAttr(plan.mesh[plan.role_axis]->name));
    for (role = 0; role < plan.roles.size(); ++role) {
      ModuleOp module = ModuleOp::create(builder, builder.getUnknownLoc(), plan.roles[role]->name);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(module.getBody());
      if (failed(importRole(module, plan.roles[role]->arena_bytes)))
        return failure();
    }
    return success();
  }

  /// What is of the current role, and the mesh with its communicators, which all roles have.
  LogicalResult importRole(ModuleOp module, uint64_t arenaBytes) {
    NamedAttrList others;
    for (const auto &arena : plan.arenas)
      if (arena->role == role)
        others.append(plan::stringifyMemorySpace(static_cast<plan::MemorySpace>(arena->space)),
                      builder.getI64IntegerAttr(arena->bytes));
    if (!others.empty())
      module->setAttr(plan::PlanDialect::kOtherArenasAttr, others.getDictionary(builder.getContext()));
    // Second buffers of ports, and faults, come back behind the others when the plan is written.
    BitVector seconds(plan.buffers.size());
    for (uint32_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i]->kind == fbs::BufferKind::Fault)
        seconds.set(i);
    for (const auto &entry : plan.entries)
      if (entry->in_flight > 1)
        for (const auto *ports : {&entry->inputs, &entry->outputs})
          for (const auto &port : *ports)
            seconds.set(port->second);
    uint64_t packed = 0;
    importMesh();
    for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
      const fbs::BufferT &buffer = *plan.buffers[i];
      if (buffer.role != role || seconds[i])
        continue;
      buffers[i] = importBuffer(buffer);
      if (buffer.space == fbs::MemorySpace::Device)
        packed = std::max(packed, buffer.offset + buffer.bytes + (buffer.slots - 1) * buffer.slot_stride);
    }
    // Unless there are some, the file's word counts, right or wrong.
    module->setAttr(plan::PlanDialect::kArenaBytesAttr, builder.getI64IntegerAttr(seconds.any() ? packed : arenaBytes));
    communicators.clear();
    for (const auto &communicator : plan.communicators)
      communicators.push_back(plan::CommunicatorOp::create(builder, builder.getUnknownLoc(), communicator->name,
                                                           axisNames(communicator->axes)));
    for (const auto &coordinate : plan.coordinates)
      if (ofRole(coordinate->buffer))
        plan::CoordinateOp::create(builder, builder.getUnknownLoc(), buffers[coordinate->buffer],
                                   axisNames(coordinate->axes));
    for (const auto &state : plan.states)
      if (ofRole(state->buffer))
        plan::StateOp::create(builder, builder.getUnknownLoc(), buffers[state->buffer], state->key,
                              static_cast<StateFlags>(state->flags), state->init);
    for (const auto &constant : plan.constants)
      if (ofRole(constant->buffer))
        importConstant(*constant);
    if (failed(importCode()))
      return failure();
    for (const auto &program : plan.programs)
      if (program->role == role && failed(importProgram(*program)))
        return failure();
    for (const auto &entry : plan.entries)
      if (plan.programs[entry->program]->role == role)
        importEntry(*entry);
    return success();
  }

  bool ofRole(uint32_t buffer) const { return plan.buffers[buffer]->role == role; }

  void importMesh() {
    if (plan.mesh.empty())
      return;
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (const auto &axis : plan.mesh) {
      names.push_back(axis->name);
      sizes.push_back(axis->size);
    }
    dist::MeshOp::create(builder, builder.getUnknownLoc(), "mesh", builder.getStrArrayAttr(names), sizes);
  }

  RankedTensorType tensorType(fbs::DType dtype, const std::vector<int64_t> &shape) {
    return RankedTensorType::get(shape, fromDType(builder.getContext(), dtype));
  }

  ArrayAttr axisNames(const std::vector<uint8_t> &axes) {
    SmallVector<StringRef> names;
    for (uint8_t axis : axes)
      names.push_back(plan.mesh[axis]->name);
    return builder.getStrArrayAttr(names);
  }

  plan::LayoutAttr importLayout(const fbs::LayoutT *layout) {
    if (!layout)
      return {};
    SmallVector<Attribute> dimShardings;
    for (const auto &sharding : layout->dim_shardings)
      dimShardings.push_back(axisNames(sharding->axes));
    return plan::LayoutAttr::get(builder.getContext(), builder.getDenseI64ArrayAttr(layout->global_shape),
                                 builder.getDenseI64ArrayAttr(layout->view), builder.getArrayAttr(dimShardings),
                                 axisNames(layout->flat_axes));
  }

  Value importBuffer(const fbs::BufferT &buffer) {
    auto type = plan::BufferType::get(tensorType(buffer.dtype, buffer.shape));
    return plan::BufferOp::create(builder, locationOf(buffer.source), type, buffer.name,
                                  static_cast<plan::BufferKind>(buffer.kind), builder.getI64IntegerAttr(buffer.offset),
                                  buffer.slots, buffer.slot_stride, importLayout(buffer.layout.get()),
                                  static_cast<plan::MemorySpace>(buffer.space), buffer.alignment);
  }

  void importConstant(const fbs::ConstantDataT &constant) {
    RankedTensorType type = cast<plan::BufferType>(buffers[constant.buffer].getType()).getTensor();
    auto *bytes = reinterpret_cast<const char *>(constant.data.data());
    auto value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes, constant.data.size()));
    plan::ConstantOp::create(builder, builder.getUnknownLoc(), buffers[constant.buffer], cast<ElementsAttr>(value));
  }

  bool isCheck(uint32_t kernel) const {
    return plan.kernels[kernel]->origin == fbs::KernelOrigin::Registered &&
           kernels::IsDataCheck(plan.kernels[kernel]->name);
  }

  static bool hasCode(const fbs::KernelT &kernel) {
    return kernel.origin == fbs::KernelOrigin::Generated || !kernel.epilogue.empty();
  }

  /// Kernels that the role launches; others may launch them as well. What nobody launches goes with the kernel before.
  BitVector kernelsOfRole() const {
    constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
    std::vector<uint32_t> first(plan.kernels.size(), kNobody); // role that launches it
    BitVector result(plan.kernels.size());
    for (const auto &program : plan.programs)
      for (const auto &segment : program->segments)
        for (const auto &command : segment->commands)
          if (const fbs::LaunchT *launch = command->body.AsLaunch()) {
            first[launch->kernel] = std::min<uint32_t>(first[launch->kernel], program->role);
            if (program->role == role)
              result.set(launch->kernel);
          }
    uint32_t owner = 0;
    for (uint32_t i = 0; i < first.size(); ++i) {
      if (first[i] != kNobody)
        owner = first[i];
      else if (owner == role)
        result.set(i);
    }
    return result;
  }

  LogicalResult importCode() {
    BitVector kernels = kernelsOfRole();
    std::optional<uint32_t> image;
    for (unsigned index : kernels.set_bits()) {
      const fbs::KernelT &kernel = *plan.kernels[index];
      bool hasCode = kernel.origin == fbs::KernelOrigin::Generated || !kernel.epilogue.empty();
      if (!hasCode)
        continue;
      if (image && *image != kernel.image)
        return emitError(builder.getUnknownLoc())
               << "kernels of one role are in images " << *image << " and " << kernel.image
               << ", which cannot be expressed in the plan dialect yet";
      image = kernel.image;
    }
    if (image && failed(importImage(*plan.images[*image])))
      return failure();
    for (unsigned index : kernels.set_bits())
      if (!isCheck(index) && failed(importKernel(index)))
        return failure();
    return success();
  }

  LogicalResult importImage(const fbs::ImageT &image) {
    for (const auto &code : image.codes) {
      if (code->hash)
        return emitError(builder.getUnknownLoc()) << "hashes of code cannot be expressed in the plan dialect yet";
      auto type = RankedTensorType::get({static_cast<int64_t>(code->data.size())}, builder.getI8Type());
      auto *bytes = reinterpret_cast<const char *>(code->data.data());
      auto value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes, code->data.size()));
      auto op = plan::ImageOp::create(builder, builder.getUnknownLoc(), code->format, cast<ElementsAttr>(value));
      if (!code->target.empty())
        op->setAttr(kCodeTargetAttr, builder.getStringAttr(code->target));
    }
    return success();
  }

  LogicalResult importKernel(uint32_t index) {
    const fbs::KernelT &kernel = *plan.kernels[index];
    if (!kernel.access_maps.empty())
      return emitError(builder.getUnknownLoc())
             << "kernel '" << kernel.name << "' has access maps, which cannot be expressed in the plan dialect yet";
    std::string symbol = kernel.name + "." + std::to_string(index);
    OperationState state(builder.getUnknownLoc(), plan::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(symbol));
    auto op = cast<plan::KernelOp>(builder.create(state));
    if (kernel.origin == fbs::KernelOrigin::Registered) {
      op.setRegistered(kernel.name);
      SmallVector<NamedAttribute> config;
      for (const auto &attribute : kernel.attributes)
        config.push_back(importAttribute(*attribute));
      if (!config.empty())
        op.setConfigAttr(builder.getDictionaryAttr(config));
      if (!kernel.epilogue.empty())
        op.setSymbol(StringRef(kernel.epilogue));
    } else {
      op.setSymbol(kernel.name);
      const fbs::GridT *grid = kernel.geometry.AsGrid();
      if (!grid) {
        op.setExtent(kernel.geometry.AsByRange()->extent);
      } else if (grid->blocks.size() == 1 && grid->threads.size() == 1 && grid->shared_bytes == 0) {
        SmallVector<int64_t> launched = {grid->blocks[0], grid->threads[0]};
        launched.append(grid->constants.begin(), grid->constants.end());
        op.setGrid(ArrayRef<int64_t>(launched));
      } else {
        return emitError(builder.getUnknownLoc())
               << "kernel '" << kernel.name
               << "' is launched by a grid of several dimensions or with memory of its blocks, which "
                  "cannot be expressed in the plan dialect yet";
      }
    }
    SmallVector<Attribute> arguments;
    for (const auto &argument : kernel.arguments)
      arguments.push_back(plan::ArgumentAttr::get(builder.getContext(), static_cast<plan::Access>(argument->access),
                                                  tensorType(argument->dtype, argument->shape), argument->alignment));
    op.setArgumentsAttr(builder.getArrayAttr(arguments));
    SmallVector<int64_t> pairs;
    for (const fbs::InPlace &pair : kernel.in_place)
      pairs.append({pair.output(), pair.input()});
    op.setInPlace(pairs);
    if (kernel.valid_rows) {
      SmallVector<int64_t> rows = {kernel.valid_rows->count};
      rows.append(kernel.valid_rows->arguments.begin(), kernel.valid_rows->arguments.end());
      op.setValidRows(ArrayRef<int64_t>(rows));
    }
    op.setFlops(APFloat(kernel.flops));
    op.setBytesMoved(APFloat(kernel.bytes_moved));
    kernelSymbols[index] = symbol;
    return success();
  }

  NamedAttribute importAttribute(const fbs::AttributeT &attribute) {
    Attribute value;
    if (attribute.ints.size() == 1)
      value = builder.getI64IntegerAttr(attribute.ints[0]);
    else if (!attribute.ints.empty())
      value = builder.getDenseI64ArrayAttr(attribute.ints);
    else if (attribute.floats.size() == 1)
      value = builder.getF64FloatAttr(attribute.floats[0]);
    else if (!attribute.floats.empty())
      value = builder.getDenseF64ArrayAttr(attribute.floats);
    else if (!attribute.text.empty())
      value = builder.getStringAttr(attribute.text);
    else
      value = builder.getDenseI64ArrayAttr({}); // the shape of a scalar
    return builder.getNamedAttr(attribute.name, value);
  }

  LogicalResult importProgram(const fbs::ProgramT &program) {
    Location loc = builder.getUnknownLoc();
    SmallVector<int64_t> timeline;
    for (const fbs::SegmentCall &call : program.timeline)
      timeline.append({call.segment(), call.slot()});
    SmallVector<StringRef> streams(program.streams.begin(), program.streams.end());
    auto op = plan::ProgramOp::create(builder, loc, program.name, timeline, builder.getStrArrayAttr(streams));
    OpBuilder segments = OpBuilder::atBlockEnd(&op.getBody().emplaceBlock());
    for (const auto &segment : program.segments) {
      auto segmentOp = plan::SegmentOp::create(segments, loc, segment->name);
      OpBuilder commands = OpBuilder::atBlockEnd(&segmentOp.getBody().emplaceBlock());
      for (const auto &command : segment->commands) {
        // Checks come back when the plan is written.
        const fbs::LaunchT *launch = command->body.AsLaunch();
        if ((!launch || !isCheck(launch->kernel)) && failed(importCommand(commands, *command)))
          return failure();
      }
    }
    return success();
  }

  /// The dialect's operands are whole buffers.
  FailureOr<Value> importOperand(Location loc, const fbs::Operand &operand, int64_t elements = -1) {
    auto buffer = cast<TypedValue<plan::BufferType>>(buffers[operand.buffer()]);
    if (operand.offset() == 0 && (elements < 0 || elements == buffer.getType().getTensor().getNumElements()))
      return Value(buffer);
    return emitError(loc) << "an operand that is a part of buffer '" << plan.buffers[operand.buffer()]->name
                          << "' cannot be expressed in the plan dialect yet";
  }

  LogicalResult importCommand(OpBuilder &commands, const fbs::CommandT &command) {
    Location loc = locationOf(command.source);
    const std::string &pass = plan.sources[command.source]->pass;
    FailureOr<Operation *> op = importBody(commands, loc, command.body, pass);
    if (failed(op))
      return failure();
    cast<plan::Command>(*op).setStreamIndex(command.stream);
    plan::setReason(*op, plan.sources[command.source]->reason);
    return success();
  }

  FailureOr<Operation *> importBody(OpBuilder &commands, Location loc, const fbs::CommandBodyUnion &body,
                                    const std::string &pass) {
    if (const fbs::LaunchT *launch = body.AsLaunch())
      return importLaunch(commands, loc, *launch, pass);
    if (const fbs::CollectiveT *collective = body.AsCollective())
      return importCollective(commands, loc, *collective, pass);
    if (const fbs::SendT *send = body.AsSend())
      return importTransfer<plan::SendOp>(commands, loc, *send, pass);
    if (const fbs::ReceiveT *receive = body.AsReceive())
      return importTransfer<plan::ReceiveOp>(commands, loc, *receive, pass);
    if (const fbs::SignalT *signal = body.AsSignal())
      return plan::SignalOp::create(commands, loc, signal->event, signal->slots, 0, pass).getOperation();
    if (const fbs::WaitT *wait = body.AsWait())
      return plan::WaitOp::create(commands, loc, wait->event, wait->slots, 0, pass).getOperation();
    const fbs::CopyT *copy = body.AsCopy();
    FailureOr<Value> source = importOperand(loc, *copy->source), destination = importOperand(loc, *copy->destination);
    if (failed(source) || failed(destination))
      return failure();
    return plan::CopyOp::create(commands, loc, *source, *destination, pass).getOperation();
  }

  FailureOr<Operation *> importLaunch(OpBuilder &commands, Location loc, const fbs::LaunchT &launch,
                                      const std::string &pass) {
    SmallVector<Value> operands;
    for (const fbs::Operand &operand : launch.operands) {
      FailureOr<Value> value = importOperand(loc, operand);
      if (failed(value))
        return failure();
      operands.push_back(*value);
    }
    return plan::LaunchOp::create(commands, loc, kernelSymbols[launch.kernel], operands, pass).getOperation();
  }

  FailureOr<Operation *> importCollective(OpBuilder &commands, Location loc, const fbs::CollectiveT &collective,
                                          const std::string &pass) {
    int64_t ranks = 1;
    for (uint8_t axis : plan.communicators[collective.communicator]->axes)
      ranks *= plan.mesh[axis]->size;
    const collectives::Definition &definition = DefinitionOf(collective.kind);
    SmallVector<Value> sources, destinations;
    for (const fbs::Piece &piece : collective.pieces) {
      auto count = static_cast<int64_t>(piece.count());
      FailureOr<Value> source = importOperand(loc, piece.source(), count * definition.SourceParts(ranks));
      FailureOr<Value> destination =
          importOperand(loc, piece.destination(), count * definition.DestinationParts(ranks));
      if (failed(source) || failed(destination))
        return failure();
      sources.push_back(*source);
      destinations.push_back(*destination);
    }
    return plan::CollectiveOp::create(commands, loc, static_cast<plan::CollectiveKind>(collective.kind),
                                      ParameterOf(collective), communicatorSymbol(collective.communicator), sources,
                                      destinations, 0, pass)
        .getOperation();
  }

  template <typename OpTy, typename TransferT>
  FailureOr<Operation *> importTransfer(OpBuilder &commands, Location loc, const TransferT &transfer,
                                        const std::string &pass) {
    SmallVector<Value> operands;
    for (const fbs::Range &range : transfer.ranges) {
      FailureOr<Value> value = importOperand(loc, range.operand(), range.count());
      if (failed(value))
        return failure();
      operands.push_back(*value);
    }
    return OpTy::create(commands, loc, communicatorSymbol(transfer.communicator), transfer.peer, operands, 0, pass)
        .getOperation();
  }

  StringRef communicatorSymbol(uint32_t index) { return communicators[index].getSymName(); }

  void importEntry(const fbs::EntryT &entry) {
    auto names = [&](const std::vector<std::unique_ptr<fbs::PortT>> &ports) {
      SmallVector<StringRef> result;
      for (const auto &port : ports)
        result.push_back(port->name);
      return builder.getStrArrayAttr(result);
    };
    auto values = [&](const std::vector<std::unique_ptr<fbs::PortT>> &ports) {
      SmallVector<Value> result;
      for (const auto &port : ports)
        result.push_back(buffers[port->buffer]);
      return result;
    };
    SmallVector<int64_t> limits;
    for (const auto &port : entry.inputs)
      limits.push_back(port->limit);
    auto op = plan::EntryOp::create(builder, builder.getUnknownLoc(), static_cast<EntryKind>(entry.kind), entry.name,
                                    static_cast<int64_t>(entry.bucket), plan.programs[entry.program]->name,
                                    names(entry.inputs), limits, values(entry.inputs), names(entry.outputs),
                                    values(entry.outputs), importOrder(entry.name), importValues(entry.name));
    if (entry.in_flight > 1)
      op->setAttr(kInFlightAttr, builder.getI64IntegerAttr(entry.in_flight));
    SmallVector<int64_t> feeds;
    for (const fbs::Feed &feed : entry.feeds)
      feeds.append({feed.output(), feed.input()});
    if (!feeds.empty())
      op->setAttr(kFeedsAttr, builder.getDenseI64ArrayAttr(feeds));
  }

  /// The role's part of the entry's certificate, if it has one.
  const fbs::RoleOrderT *certificateOf(const std::string &entry) const {
    for (const auto &certificate : plan.certificates)
      if (certificate->entry == entry)
        return certificate->roles[role].get();
    return nullptr;
  }

  DenseI64ArrayAttr importOrder(const std::string &entry) {
    const fbs::RoleOrderT *certificate = certificateOf(entry);
    if (!certificate)
      return {};
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(certificate->numbers.begin(), certificate->numbers.end()));
  }

  DenseI64ArrayAttr importValues(const std::string &entry) {
    const fbs::RoleOrderT *certificate = certificateOf(entry);
    if (!certificate || certificate->values.empty())
      return {};
    SmallVector<int64_t> halves;
    for (const fbs::ValueDigest &digest : certificate->values)
      halves.append({static_cast<int64_t>(digest.low()), static_cast<int64_t>(digest.high())});
    return builder.getDenseI64ArrayAttr(halves);
  }

  const fbs::PlanT &plan;
  OpBuilder builder;
  /// The role that is being imported.
  uint32_t role = 0;
  // By index in the plan, where they are of the role.
  std::vector<Value> buffers;
  std::vector<plan::CommunicatorOp> communicators;
  std::vector<std::string> kernelSymbols;
};

} // namespace

OwningOpRef<ModuleOp> bowline::importPlan(MLIRContext *context, const fbs::PlanT &plan) {
  return Importer(context, plan).run();
}
