//===- EmitCommands.cpp - From plan.program to the plan's programs of commands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitCommands.h"
#include "compiler/Emit/PlanTypes.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;

namespace {

class ProgramEmitter {
public:
  ProgramEmitter(const fbs::PlanT &plan, PlanTables &tables, const RoleNames &names)
      : plan(plan), tables(tables), names(names) {}

  std::unique_ptr<fbs::ProgramT> run(plan::ProgramOp op) {
    auto program = std::make_unique<fbs::ProgramT>();
    program->name = op.getSymName().str();
    program->role = names.role;
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
    return program;
  }

private:
  /// The launch before `op` that checks its data; null where they are not checked.
  std::unique_ptr<fbs::CommandT> emitCheckOf(plan::Command op) {
    auto launchOp = dyn_cast<plan::LaunchOp>(op.getOperation());
    auto fault = launchOp ? names.faults.find(launchOp) : names.faults.end();
    if (fault == names.faults.end())
      return nullptr;
    auto [check, kernel] = names.checks.lookup(launchOp.getKernelAttr().getAttr());
    fbs::LaunchT launch;
    launch.kernel = kernel;
    launch.operands = {names.operand(launchOp.getOperands()[check->argument]),
                       fbs::Operand(names.faultBuffer, fault->second * sizeof(int32_t))};
    auto command = std::make_unique<fbs::CommandT>();
    command->stream = op.getStreamIndex();
    command->source = tables.source(op, op.getPassName());
    command->body.Set(std::move(launch));
    return command;
  }

  std::unique_ptr<fbs::CommandT> emitCommand(plan::Command op, fbs::ProgramT &program) {
    auto command = std::make_unique<fbs::CommandT>();
    command->stream = op.getStreamIndex();
    command->source = tables.source(op, op.getPassName());
    auto useEvent = [&](auto event) {
      program.events = std::max(program.events, event.event + event.slots);
      command->body.Set(event);
    };
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](plan::LaunchOp launchOp) {
          fbs::LaunchT launch;
          launch.kernel = names.kernels.lookup(launchOp.getKernelAttr().getAttr());
          for (Value buffer : launchOp.getOperands())
            launch.operands.push_back(names.operand(buffer));
          command->body.Set(std::move(launch));
        })
        .Case([&](plan::CopyOp copyOp) {
          fbs::CopyT copy;
          copy.source = std::make_unique<fbs::Operand>(names.operand(copyOp.getSource()));
          copy.destination = std::make_unique<fbs::Operand>(names.operand(copyOp.getDestination()));
          copy.bytes = copyOp.getSource().getType().getBytes();
          auto spaceOf = [&](Value buffer) { return plan.buffers[names.buffers.lookup(buffer)]->space; };
          // The loader refuses a copy between spaces that no engine connects.
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
    collective.communicator = tables.communicator(op.getCommunicatorAttr().getAttr());
    collective.dtype = *toDType(tensorOf(op.getSources().front()).getElementType());
    const fbs::CommunicatorT &communicator = *plan.communicators[collective.communicator];
    int64_t ranks = 1;
    for (uint8_t axis : communicator.axes)
      ranks *= plan.mesh[axis]->size;
    int64_t parts = op.getDefinition().SourceParts(ranks);
    for (auto [source, destination] : llvm::zip_equal(op.getSources(), op.getDestinations())) {
      int64_t count = tensorOf(source).getNumElements() / parts;
      collective.pieces.emplace_back(names.operand(source), names.operand(destination), count);
    }
    return collective;
  }

  template <typename TransferT, typename OpTy> TransferT emitTransfer(OpTy op) {
    TransferT transfer;
    transfer.communicator = tables.communicator(op.getCommunicatorAttr().getAttr());
    transfer.peer = op.getPeer();
    transfer.dtype = *toDType(tensorOf(op.getBuffers().front()).getElementType());
    for (Value buffer : op.getBuffers())
      transfer.ranges.emplace_back(names.operand(buffer), tensorOf(buffer).getNumElements());
    return transfer;
  }

  const fbs::PlanT &plan;
  PlanTables &tables;
  const RoleNames &names;
};

} // namespace

std::unique_ptr<fbs::ProgramT> bowline::emitProgram(plan::ProgramOp op, const fbs::PlanT &plan, PlanTables &tables,
                                                    const RoleNames &names) {
  return ProgramEmitter(plan, tables, names).run(op);
}
