//===- ImportCommands.cpp - From the plan's programs of commands to plan.program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/ImportRole.h"
#include "dialects/Plan/Reason.h"
#include "runtime/plan/view/collective_view.h"

using namespace mlir;
using namespace bowline;

namespace {

class ProgramImporter {
public:
  explicit ProgramImporter(RoleScope &scope) : scope(scope), plan(scope.plan), builder(scope.builder) {}

  LogicalResult run(const fbs::ProgramT &program) {
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
        if ((!launch || !scope.isCheck(launch->kernel)) && failed(importCommand(commands, *command)))
          return failure();
      }
    }
    return success();
  }

private:
  /// The dialect's operands are whole buffers.
  FailureOr<Value> importOperand(Location loc, const fbs::Operand &operand, int64_t elements = -1) {
    FailureOr<Value> found = scope.findBuffer(loc, operand.buffer());
    if (failed(found))
      return failure();
    auto buffer = cast<TypedValue<plan::BufferType>>(*found);
    if (operand.offset() == 0 && (elements < 0 || elements == buffer.getType().getTensor().getNumElements()))
      return Value(buffer);
    return emitError(loc) << "an operand that is a part of buffer '" << plan.buffers[operand.buffer()]->name
                          << "' cannot be expressed in the plan dialect yet";
  }

  LogicalResult importCommand(OpBuilder &commands, const fbs::CommandT &command) {
    Location loc = scope.locationOf(command.source);
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
    return plan::LaunchOp::create(commands, loc, scope.kernelSymbols[launch.kernel], operands, pass).getOperation();
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

  StringRef communicatorSymbol(uint32_t index) const { return scope.communicators[index].getSymName(); }

  RoleScope &scope;
  const fbs::PlanT &plan;
  OpBuilder &builder;
};

} // namespace

LogicalResult bowline::importProgram(RoleScope &scope, const fbs::ProgramT &program) {
  return ProgramImporter(scope).run(program);
}
