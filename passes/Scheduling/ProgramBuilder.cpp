//===- ProgramBuilder.cpp - Programs of commands from functions on values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Scheduling/ProgramBuilder.h"
#include "dialects/Plan/Reason.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/ModuleTarget.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;

static constexpr llvm::StringLiteral kPassName = "ScheduleCommands";

ProgramBuilder::ProgramBuilder(ModuleOp module)
    : module(module), symbols(module), builder(module.getContext()), firstFunction(nullptr) {
  auto functions = module.getOps<graph::FuncOp>();
  firstFunction = functions.empty() ? nullptr : (*functions.begin()).getOperation();
  if (firstFunction)
    builder.setInsertionPoint(firstFunction);
  else
    builder.setInsertionPointToEnd(module.getBody());
}

Value ProgramBuilder::createBuffer(Location loc, const Twine &name, plan::BufferKind kind, RankedTensorType type,
                                   int64_t slots, plan::LayoutAttr layout) {
  int64_t stride = slots > 1 ? static_cast<int64_t>(llvm::alignTo(plan::byteCount(type), deviceAlignment(module))) : 0;
  return plan::BufferOp::create(builder, loc, plan::BufferType::get(type), name.str(), kind, /*offset=*/nullptr, slots,
                                stride, layout);
}

/// The layout attribute of a tensor from the axes of each dimension, and those of the flattened shard.
static plan::LayoutAttr makeLayout(Builder &builder, ArrayRef<int64_t> global, ArrayRef<int64_t> view,
                                   ArrayRef<SmallVector<StringAttr>> axes, ArrayRef<StringAttr> flatAxes) {
  auto names = [&](ArrayRef<StringAttr> list) {
    return builder.getArrayAttr(SmallVector<Attribute>(list.begin(), list.end()));
  };
  SmallVector<Attribute> dimShardings;
  for (const SmallVector<StringAttr> &list : axes)
    dimShardings.push_back(names(list));
  return plan::LayoutAttr::get(builder.getContext(), builder.getDenseI64ArrayAttr(global),
                               builder.getDenseI64ArrayAttr(view == global ? ArrayRef<int64_t>() : view),
                               builder.getArrayAttr(dimShardings), names(flatAxes));
}

/// Null where every rank has all of the variable, in the shape of the checkpoint.
static FailureOr<plan::LayoutAttr> layoutOfVariable(Operation *op) {
  FailureOr<dist::Layout> layout = dist::Layout::of(op);
  if (failed(layout))
    return failure();
  bool isWhole = layout->global == layout->local && !layout->isFlat();
  if (isWhole)
    return plan::LayoutAttr();
  Builder builder(op->getContext());
  return makeLayout(builder, layout->global, layout->view, layout->axes, layout->flatAxes);
}

/// Null where every rank has all of the argument.
static plan::LayoutAttr layoutOfArgument(graph::FuncOp function, unsigned index) {
  auto pieces = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::DistDialect::kShardingAttr);
  auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, dist::DistDialect::kGlobalShapeAttr);
  if (!pieces || !shape || pieces.isReplicated())
    return {};
  SmallVector<SmallVector<StringAttr>> axes;
  for (int64_t dim = 0; dim < pieces.getRank(); ++dim)
    axes.emplace_back(pieces.getAxes(dim));
  Builder builder(function.getContext());
  return makeLayout(builder, shape.asArrayRef(), shape.asArrayRef(), axes, {});
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

static std::string describeInit(Attribute init) {
  if (auto normal = dyn_cast<graph::NormalAttr>(init))
    return llvm::formatv("normal(0, {0})", normal.getStddev());
  return llvm::formatv("fill({0})", cast<graph::FillAttr>(init).getValue());
}

LogicalResult ProgramBuilder::buildVariables() {
  for (auto variable : module.getOps<graph::Variable>()) {
    if (!variable.isPersistent())
      continue;
    FailureOr<plan::LayoutAttr> layout = layoutOfVariable(variable);
    if (failed(layout))
      return failure();
    auto kind = variable.has(StateFlags::Weight) ? plan::BufferKind::Parameter : plan::BufferKind::State;
    Value buffer = createBuffer(variable.getLoc(), variable.getVariableName(), kind, variable.getTensorType(),
                                /*slots=*/1, *layout);
    variables[variable.getVariableName()] = buffer;
    auto state = plan::StateOp::create(builder, variable.getLoc(), buffer, variable.getFileKey(), variable.getFlags(),
                                       describeInit(variable.getInit()));
    if (auto param = dyn_cast<graph::ParamOp>(*variable))
      state.setFormatAttr(param.getFormatAttr());
  }
  return success();
}

/// The buffer of a parameter or state; an accumulator or a stash has one in each program.
Value ProgramBuilder::variableBuffer(ProgramState &state, StringRef symbol) {
  if (Value buffer = variables.lookup(symbol))
    return buffer;
  Value &buffer = state.accumulators[symbol];
  if (!buffer) {
    auto declared = symbols.lookup<graph::StateOp>(symbol);
    buffer = createBuffer(declared.getLoc(), state.name + "." + symbol, plan::BufferKind::Temporary,
                          declared.getTensorType(), declared.getSlots().value_or(1));
  }
  return buffer;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// Callers find ports by name.
static LogicalResult checkPortNames(graph::EntryOp entry, StringRef what, ArrayRef<std::string> names) {
  llvm::StringSet<> seen;
  for (const std::string &name : names)
    if (!seen.insert(name).second)
      return entry.emitOpError("has two ")
             << what << " named '" << name << "'; give each a '" << graph::FuncOp::kNameAttr << "' of its own";
  return success();
}

LogicalResult ProgramBuilder::buildEntry(graph::EntryOp entry) {
  OpBuilder programs(entry);
  ProgramState state;
  state.name = entry.getSymName().str();
  std::string programName = state.name + "_program";
  state.program = plan::ProgramOp::create(programs, entry.getLoc(), programName);
  state.program.getBody().emplaceBlock();

  SmallVector<graph::FuncOp> functions;
  for (auto reference : entry.getFunctions().getAsRange<FlatSymbolRefAttr>())
    functions.push_back(symbols.lookup<graph::FuncOp>(reference.getValue()));

  for (auto [function, repeat] : llvm::zip_equal(functions, entry.getRepeat())) {
    // A function that runs twice has other arguments the second time.
    bindArguments(state, function, entry.getMicrobatches().value_or(repeat), entry.getTimeline().has_value());
    if (failed(buildSegment(state, function)))
      return failure();
  }
  SmallVector<int64_t> timeline;
  for (auto [function, microbatch] : entry.getCalls())
    timeline.append({function, microbatch});
  state.program.setTimeline(timeline);
  state.program.setStreamsAttr(
      builder.getStrArrayAttr(SmallVector<StringRef>(state.streams.begin(), state.streams.end())));
  if (failed(checkPortNames(entry, "arguments", state.inputNames)) ||
      failed(checkPortNames(entry, "results", state.outputNames)))
    return failure();

  auto names = [&](const SmallVector<std::string> &list) {
    return programs.getStrArrayAttr(SmallVector<StringRef>(list.begin(), list.end()));
  };
  // The name of the entry is free once the graph.entry is gone.
  Location loc = entry.getLoc();
  EntryKind kind = entry.getKind();
  auto bucket = static_cast<int64_t>(entry.getBucket());
  symbols.erase(entry);
  programs.setInsertionPointAfter(state.program);
  auto built = plan::EntryOp::create(programs, loc, kind, state.name, bucket, programName, names(state.inputNames),
                                     state.inputLimits, state.inputs, names(state.outputNames), state.outputs);
  for (graph::FuncOp function : functions)
    if (Attribute sequences = function->getAttr(plan::PlanDialect::kSequencesAttr))
      built->setAttr(plan::PlanDialect::kSequencesAttr, sequences);
  return success();
}

void ProgramBuilder::bindArguments(ProgramState &state, graph::FuncOp function, int64_t repeat, bool share) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::string name = function.getArgName(index);
    auto known = llvm::find(state.inputNames, name);
    if (share && known != state.inputNames.end()) {
      state.bufferOf[argument] = state.inputs[known - state.inputNames.begin()];
      continue;
    }
    Value buffer = createBuffer(function.getLoc(), state.name + "." + name, plan::BufferKind::Input,
                                graph::tensorType(argument), repeat, layoutOfArgument(function, index));
    state.bufferOf[argument] = buffer;
    auto limit = function.getArgAttrOfType<IntegerAttr>(index, graph::FuncOp::kLimitAttr);
    state.inputs.push_back(buffer);
    state.inputNames.push_back(std::move(name));
    state.inputLimits.push_back(limit ? limit.getInt() : 0);
  }
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::buildSegment(ProgramState &state, graph::FuncOp function) {
  auto commands = OpBuilder::atBlockEnd(&state.program.getBody().front());
  auto segment = plan::SegmentOp::create(commands, function.getLoc(), function.getName());
  commands.setInsertionPointToEnd(&segment.getBody().emplaceBlock());
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(buildCommand(state, commands, &op)))
      return failure();
  buildOutputs(state, function, segment);
  moveToChannel(state, segment);
  return success();
}

/// A segment that does nothing but send or receive runs beside segments that compute.
void ProgramBuilder::moveToChannel(ProgramState &state, plan::SegmentOp segment) {
  Block &commands = segment.getBody().front();
  StringRef channel;
  for (Operation &command : commands) {
    if (!isa<plan::SendOp, plan::ReceiveOp>(command))
      return;
    channel = command.getAttrOfType<FlatSymbolRefAttr>("communicator").getValue();
  }
  if (channel.empty())
    return;
  auto stream = llvm::find(state.streams, channel);
  int64_t index = stream - state.streams.begin();
  if (stream == state.streams.end())
    state.streams.push_back(channel.str());
  for (auto command : commands.getOps<plan::Command>())
    command.setStreamIndex(index);
}

LogicalResult ProgramBuilder::buildCommand(ProgramState &state, OpBuilder &commands, Operation *op) {
  if (isa<stage::SendOp, stage::ReceiveOp>(op) && !stage::axisOf(module))
    return op->emitOpError("needs the mesh axis of the stages, '")
           << stage::StageDialect::kAxisAttr << "' of the module; run split-stages first";
  if (graph::isView(op)) {
    state.bufferOf[op->getResult(0)] = state.bufferOf.lookup(op->getOperand(0));
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::CallOp call) {
        buildCall(state, commands, call);
        return success();
      })
      .Case([&](graph::ReadOp read) {
        buildRead(state, commands, read);
        return success();
      })
      .Case([&](graph::WriteOp write) {
        Value source = state.bufferOf.lookup(write.getValue()), variable = variableBuffer(state, write.getVariable());
        if (source != variable) // else it has that value already
          plan::CopyOp::create(commands, write.getLoc(), source, variable, kPassName);
        return success();
      })
      .Case([&](arith::ConstantOp constant) {
        buildConstant(state, constant);
        return success();
      })
      .Case([&](dist::CoordinateOp coordinate) {
        buildCoordinate(state, coordinate);
        return success();
      })
      .Case([&](dist::Collective collective) {
        buildCollective(state, commands, collective);
        return success();
      })
      .Case([&](stage::SendOp send) {
        SmallVector<Value> buffers;
        for (Value input : send.getInputs())
          buffers.push_back(state.bufferOf.lookup(input));
        plan::SendOp::create(commands, send.getLoc(), channelOf(send.getChannel()), send.getTo(), buffers,
                             /*stream=*/0, kPassName);
        return success();
      })
      .Case([&](stage::ReceiveOp receive) {
        SmallVector<Value> buffers;
        for (OpResult result : receive.getResults())
          buffers.push_back(bindReceived(state, result));
        plan::ReceiveOp::create(commands, receive.getLoc(), channelOf(receive.getChannel()), receive.getFrom(), buffers,
                                /*stream=*/0, kPassName);
        return success();
      })
      .Default([](Operation *op) { return op->emitOpError("is no command; run select-kernels first"); });
}

void ProgramBuilder::buildCall(ProgramState &state, OpBuilder &commands, plan::CallOp call) {
  auto kernel = symbols.lookup<plan::KernelOp>(call.getKernel());
  SmallVector<Value> operands;
  auto given = call.operand_begin();
  auto result = call.result_begin();
  for (unsigned index = 0, count = kernel.getNumArguments() - kernel.hasScratch(); index < count; ++index) {
    plan::Access access = kernel.getArgument(index).getAccess();
    Value buffer;
    if (access != plan::Access::Write)
      buffer = state.bufferOf.lookup(*given++);
    else
      buffer =
          createBuffer(call.getLoc(), state.name + "." + kernel.getName() + "." + Twine((*result).getResultNumber()),
                       plan::BufferKind::Temporary, graph::tensorType(*result));
    // A result in place is in the operand's buffer: nobody needs the operand's old value (InPlaceUpdates.h).
    if (access != plan::Access::Read)
      state.bufferOf[*result++] = buffer;
    operands.push_back(buffer);
  }
  for (unsigned index = operands.size(); index < kernel.getNumArguments(); ++index)
    operands.push_back(createBuffer(call.getLoc(), state.name + "." + kernel.getName() + ".scratch",
                                    plan::BufferKind::Scratch, kernel.getArgument(index).getType()));
  plan::LaunchOp::create(commands, call.getLoc(), kernel.getName(), operands, kPassName);
}

/// Whether `value` or a view of it is used after `op` in its block.
static bool isUsedAfter(Value value, Operation *op) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (graph::isView(user))
      return isUsedAfter(user->getResult(0), op);
    return op->isBeforeInBlock(user);
  });
}

/// A read is the variable's own buffer, unless the value is still needed after the variable got another one.
void ProgramBuilder::buildRead(ProgramState &state, OpBuilder &commands, graph::ReadOp read) {
  Value variable = variableBuffer(state, read.getVariable());
  if (writesBlock != read->getBlock()) {
    writesBlock = read->getBlock();
    writes.clear();
    for (auto write : writesBlock->getOps<graph::WriteOp>())
      writes[write.getVariable()].push_back(write);
  }
  bool outlivesWrite = llvm::any_of(writes[read.getVariable()], [&](graph::WriteOp write) {
    return read->isBeforeInBlock(write) && isUsedAfter(read.getResult(), write);
  });
  if (!outlivesWrite) {
    state.bufferOf[read.getResult()] = variable;
    return;
  }
  Value copy = createBuffer(read.getLoc(), state.name + "." + read.getVariable() + ".old", plan::BufferKind::Temporary,
                            graph::tensorType(read.getResult()));
  plan::CopyOp::create(commands, read.getLoc(), variable, copy, kPassName);
  state.bufferOf[read.getResult()] = copy;
}

void ProgramBuilder::buildConstant(ProgramState &state, Operation *constant) {
  auto value = cast<ElementsAttr>(cast<arith::ConstantOp>(constant).getValue());
  Value buffer = createBuffer(constant->getLoc(), state.name + ".constant", plan::BufferKind::Constant,
                              graph::tensorType(constant->getResult(0)));
  plan::ConstantOp::create(builder, constant->getLoc(), buffer, value);
  state.bufferOf[constant->getResult(0)] = buffer;
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// "tp", "dp.tp"
static std::string nameOfAxes(ArrayAttr axes) {
  return llvm::join(llvm::map_range(axes.getAsRange<StringAttr>(), [](StringAttr axis) { return axis.getValue(); }),
                    ".");
}

void ProgramBuilder::buildCoordinate(ProgramState &state, dist::CoordinateOp coordinate) {
  Value &buffer = coordinates[coordinate.getAxes()];
  if (!buffer) {
    buffer = createBuffer(coordinate.getLoc(), "coordinate." + nameOfAxes(coordinate.getAxes()),
                          plan::BufferKind::Constant, graph::tensorType(coordinate.getResult()));
    plan::CoordinateOp::create(builder, coordinate.getLoc(), buffer, coordinate.getAxes());
  }
  state.bufferOf[coordinate.getResult()] = buffer;
}

StringRef ProgramBuilder::communicatorAlong(ArrayAttr axes) {
  plan::CommunicatorOp &communicator = communicators[axes];
  if (!communicator) {
    communicator = plan::CommunicatorOp::create(builder, builder.getUnknownLoc(), nameOfAxes(axes), axes);
    symbols.insert(communicator, firstFunction ? Block::iterator(firstFunction) : module.getBody()->end());
  }
  return communicator.getSymName();
}

/// The communicator that stages use as a channel: along their axis.
StringRef ProgramBuilder::channelOf(StringRef name) {
  if (auto communicator = symbols.lookup<plan::CommunicatorOp>(name))
    return communicator.getSymName();
  auto communicator = plan::CommunicatorOp::create(builder, builder.getUnknownLoc(), name,
                                                   builder.getArrayAttr({stage::axisOf(module)}));
  symbols.insert(communicator, firstFunction ? Block::iterator(firstFunction) : module.getBody()->end());
  return communicator.getSymName();
}

/// A value that a stash keeps for another function is received into the buffer of the stash.
Value ProgramBuilder::bindReceived(ProgramState &state, OpResult result) {
  Value &buffer = state.bufferOf[result];
  auto write = result.hasOneUse() ? dyn_cast<graph::WriteOp>(*result.user_begin()) : graph::WriteOp();
  auto variable = write ? symbols.lookup<graph::StateOp>(write.getVariable()) : graph::StateOp();
  if (variable && variable.isStash())
    buffer = variableBuffer(state, write.getVariable());
  else
    buffer =
        createBuffer(result.getLoc(), state.name + ".received", plan::BufferKind::Temporary, graph::tensorType(result));
  return buffer;
}

void ProgramBuilder::buildCollective(ProgramState &state, OpBuilder &commands, dist::Collective op) {
  ArrayAttr axes = op.getGroupAxes();
  dist::CollectiveForm form = op.getForm();
  SmallVector<Value> sources, destinations;
  for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
    Value buffer = createBuffer(op->getLoc(), state.name + "." + op->getName().stripDialect() + "." + nameOfAxes(axes),
                                plan::BufferKind::Temporary, graph::tensorType(result));
    sources.push_back(state.bufferOf.lookup(operand));
    destinations.push_back(buffer);
    state.bufferOf[result] = buffer;
  }
  // "PASS: REASON", see the dist dialect.
  auto why = op->getAttrOfType<StringAttr>("why");
  auto [pass, reason] = (why ? why.getValue() : StringRef()).split(": ");
  auto collective = plan::CollectiveOp::create(commands, op->getLoc(), static_cast<plan::CollectiveKind>(form.kind),
                                               form.parameter, communicatorAlong(axes), sources, destinations,
                                               /*stream=*/0, reason.empty() ? StringRef(kPassName) : pass);
  plan::setReason(collective, reason.empty() ? pass : reason);
  if (Attribute prefetch = op->getAttr(dist::DistDialect::kPrefetchAttr)) // for overlap-commands
    collective->setAttr(dist::DistDialect::kPrefetchAttr, prefetch);
}

void ProgramBuilder::buildOutputs(ProgramState &state, graph::FuncOp function, plan::SegmentOp segment) {
  auto commands = OpBuilder::atBlockEnd(&segment.getBody().front());
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    Value output = createBuffer(function.getLoc(), state.name + "." + function.getResultName(index),
                                plan::BufferKind::Output, graph::tensorType(value));
    plan::CopyOp::create(commands, value.getLoc(), state.bufferOf.lookup(value), output, kPassName);
    state.outputs.push_back(output);
    state.outputNames.push_back(function.getResultName(index));
  }
}
