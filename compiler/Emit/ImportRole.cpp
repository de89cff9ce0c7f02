//===- ImportRole.cpp - From the part of a plan that a role has to its module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/ImportRole.h"
#include "compiler/Emit/FileAttributes.h"
#include "compiler/Emit/PlanTypes.h"
#include "kernels/registry/data_check.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace bowline;

RoleScope::RoleScope(const fbs::PlanT &plan, OpBuilder &builder, uint32_t role)
    : plan(plan), builder(builder), role(role), buffers(plan.buffers.size()), kernelSymbols(plan.kernels.size()) {}

Location RoleScope::locationOf(uint32_t source) const {
  const std::string &text = plan.sources[source]->location;
  return text.empty() ? Location(builder.getUnknownLoc()) : NameLoc::get(builder.getStringAttr(text));
}

RankedTensorType RoleScope::tensorType(fbs::DType dtype, const std::vector<int64_t> &shape) const {
  return RankedTensorType::get(shape, fromDType(builder.getContext(), dtype));
}

ArrayAttr RoleScope::axisNames(const std::vector<uint8_t> &axes) const {
  SmallVector<StringRef> names;
  for (uint8_t axis : axes)
    names.push_back(plan.mesh[axis]->name);
  return builder.getStrArrayAttr(names);
}

FailureOr<Value> RoleScope::findBuffer(Location loc, uint32_t index) const {
  if (buffers[index])
    return buffers[index];
  return emitError(loc)
         << "buffer " << index << " '" << plan.buffers[index]->name
         << "' is the second one of a port, or that of faults, and something else names it too, which the "
            "plan dialect cannot say";
}

bool RoleScope::isCheck(uint32_t kernel) const {
  return plan.kernels[kernel]->origin == fbs::KernelOrigin::Registered &&
         kernels::IsDataCheck(plan.kernels[kernel]->name);
}

namespace {

class RoleImporter {
public:
  explicit RoleImporter(RoleScope &scope) : scope(scope), plan(scope.plan), builder(scope.builder) {}

  LogicalResult run(ModuleOp module, uint64_t arenaBytes) {
    NamedAttrList others;
    for (const auto &arena : plan.arenas)
      if (arena->role == scope.role)
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
    for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
      const fbs::BufferT &buffer = *plan.buffers[i];
      if (buffer.role != scope.role || seconds[i])
        continue;
      scope.buffers[i] = importBuffer(buffer);
      if (buffer.space == fbs::MemorySpace::Device)
        packed = std::max(packed, buffer.offset + buffer.bytes + (buffer.slots - 1) * buffer.slot_stride);
    }
    // Unless there are some, the file's word counts, right or wrong.
    module->setAttr(plan::PlanDialect::kArenaBytesAttr, builder.getI64IntegerAttr(seconds.any() ? packed : arenaBytes));
    for (const auto &communicator : plan.communicators)
      scope.communicators.push_back(plan::CommunicatorOp::create(builder, builder.getUnknownLoc(), communicator->name,
                                                                 scope.axisNames(communicator->axes)));
    for (const auto &coordinate : plan.coordinates)
      if (ofRole(coordinate->buffer) && failed(importCoordinate(*coordinate)))
        return failure();
    for (const auto &state : plan.states)
      if (ofRole(state->buffer) && failed(importState(*state)))
        return failure();
    for (const auto &constant : plan.constants)
      if (ofRole(constant->buffer) && failed(importConstant(*constant)))
        return failure();
    if (failed(importKernels(scope)))
      return failure();
    for (const auto &program : plan.programs)
      if (program->role == scope.role && failed(importProgram(scope, *program)))
        return failure();
    for (const auto &entry : plan.entries)
      if (plan.programs[entry->program]->role == scope.role && failed(importEntry(*entry)))
        return failure();
    return success();
  }

private:
  bool ofRole(uint32_t buffer) const { return plan.buffers[buffer]->role == scope.role; }

  plan::LayoutAttr importLayout(const fbs::LayoutT *layout) {
    if (!layout)
      return {};
    SmallVector<Attribute> dimShardings;
    for (const auto &sharding : layout->dim_shardings)
      dimShardings.push_back(scope.axisNames(sharding->axes));
    return plan::LayoutAttr::get(builder.getContext(), builder.getDenseI64ArrayAttr(layout->global_shape),
                                 builder.getDenseI64ArrayAttr(layout->view), builder.getArrayAttr(dimShardings),
                                 scope.axisNames(layout->flat_axes));
  }

  Value importBuffer(const fbs::BufferT &buffer) {
    auto type = plan::BufferType::get(scope.tensorType(buffer.dtype, buffer.shape));
    Value viewed = buffer.view ? scope.buffers[buffer.view->of] : Value();
    ArrayAttr viewAxes = buffer.view && !buffer.view->axes.empty() ? scope.axisNames(buffer.view->axes) : ArrayAttr();
    return plan::BufferOp::create(builder, scope.locationOf(buffer.source), type, buffer.name,
                                  static_cast<plan::BufferKind>(buffer.kind), builder.getI64IntegerAttr(buffer.offset),
                                  buffer.slots, buffer.slot_stride, importLayout(buffer.layout.get()),
                                  static_cast<plan::MemorySpace>(buffer.space), buffer.alignment, viewed, viewAxes,
                                  buffer.view ? buffer.view->stride : 0);
  }

  LogicalResult importCoordinate(const fbs::CoordinateT &coordinate) {
    FailureOr<Value> buffer = scope.findBuffer(builder.getUnknownLoc(), coordinate.buffer);
    if (failed(buffer))
      return failure();
    plan::CoordinateOp::create(builder, builder.getUnknownLoc(), *buffer, scope.axisNames(coordinate.axes));
    return success();
  }

  LogicalResult importState(const fbs::StateT &state) {
    FailureOr<Value> buffer = scope.findBuffer(builder.getUnknownLoc(), state.buffer);
    if (failed(buffer))
      return failure();
    auto op = plan::StateOp::create(builder, builder.getUnknownLoc(), *buffer, state.key,
                                    static_cast<StateFlags>(state.flags), state.init);
    if (!state.format.empty())
      op.setFormat(state.format);
    return success();
  }

  LogicalResult importConstant(const fbs::ConstantDataT &constant) {
    FailureOr<Value> buffer = scope.findBuffer(builder.getUnknownLoc(), constant.buffer);
    if (failed(buffer))
      return failure();
    RankedTensorType type = cast<plan::BufferType>(buffer->getType()).getTensor();
    auto *bytes = reinterpret_cast<const char *>(constant.data.data());
    DenseElementsAttr value;
    if (type.getElementType().isInteger(1)) // of which the IR stores bits
      value =
          DenseElementsAttr::get(type, ArrayRef<bool>(SmallVector<bool>(constant.data.begin(), constant.data.end())));
    else
      value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes, constant.data.size()));
    plan::ConstantOp::create(builder, builder.getUnknownLoc(), *buffer, cast<ElementsAttr>(value));
    return success();
  }

  LogicalResult importEntry(const fbs::EntryT &entry) {
    for (const auto *ports : {&entry.inputs, &entry.outputs})
      for (const auto &port : *ports)
        if (failed(scope.findBuffer(builder.getUnknownLoc(), port->buffer)))
          return failure();
    auto names = [&](const std::vector<std::unique_ptr<fbs::PortT>> &ports) {
      SmallVector<StringRef> result;
      for (const auto &port : ports)
        result.push_back(port->name);
      return builder.getStrArrayAttr(result);
    };
    auto values = [&](const std::vector<std::unique_ptr<fbs::PortT>> &ports) {
      SmallVector<Value> result;
      for (const auto &port : ports)
        result.push_back(scope.buffers[port->buffer]);
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
    if (const fbs::SequencesT *sequences = entry.sequences.get())
      op->setAttr(plan::PlanDialect::kSequencesAttr,
                  plan::SequencesAttr::get(builder.getContext(), entry.inputs[sequences->rows]->name,
                                           entry.inputs[sequences->lengths]->name,
                                           entry.inputs[sequences->blocks]->name, sequences->tokens,
                                           sequences->block_tokens, sequences->block_count));
    SmallVector<int64_t> feeds;
    for (const fbs::Feed &feed : entry.feeds)
      feeds.append({feed.output(), feed.input()});
    if (!feeds.empty())
      op->setAttr(kFeedsAttr, builder.getDenseI64ArrayAttr(feeds));
    return success();
  }

  /// The role's part of the entry's certificate, if it has one.
  const fbs::RoleOrderT *certificateOf(const std::string &entry) const {
    for (const auto &certificate : plan.certificates)
      if (certificate->entry == entry)
        return certificate->roles[scope.role].get();
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

  RoleScope &scope;
  const fbs::PlanT &plan;
  OpBuilder &builder;
};

} // namespace

LogicalResult bowline::importRole(const fbs::PlanT &plan, OpBuilder &builder, uint32_t role, ModuleOp module,
                                  uint64_t arenaBytes) {
  RoleScope scope(plan, builder, role);
  return RoleImporter(scope).run(module, arenaBytes);
}
