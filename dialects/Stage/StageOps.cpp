//===- StageOps.cpp - The stage dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Stage/StageOps.h"
#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::stage;

#include "dialects/Stage/StageDialect.cpp.inc"
#include "dialects/Stage/StageOpInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Stage/StageOps.cpp.inc"

void StageDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Stage/StageOps.cpp.inc"
      >();
}

std::optional<int64_t> bowline::stage::countOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto count = op->getAttrOfType<IntegerAttr>(StageDialect::kCountAttr))
      return count.getInt();
  return std::nullopt;
}

StringAttr bowline::stage::axisOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto axis = op->getAttrOfType<StringAttr>(StageDialect::kAxisAttr))
      return axis;
  return {};
}

ArrayRef<int64_t> bowline::stage::indexOf(Operation *op) {
  auto index = op->getAttrOfType<DenseI64ArrayAttr>(StageDialect::kIndexAttr);
  return index ? index.asArrayRef() : ArrayRef<int64_t>();
}

bool bowline::stage::isForAll(Operation *op) {
  auto crosses = dyn_cast<CrossesStages>(op);
  return crosses && !crosses.stageOfResult();
}

bool bowline::stage::isBetweenStages(Operation *op) {
  if (isa<SendOp, ReceiveOp>(op))
    return true;
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  StringAttr axis = axisOf(op);
  return axes && axis && llvm::is_contained(axes, axis);
}

Value bowline::stage::createTransfers(OpBuilder &builder, Location location, Value value, int64_t from, int64_t to) {
  for (int64_t step = from < to ? 1 : -1; from != to; from += step)
    value = TransferOp::create(builder, location, value, from, from + step);
  return value;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// A module without a count is a fragment under test: only signs are checked.
static LogicalResult checkStage(Operation *op, const Twine &what, int64_t stage) {
  std::optional<int64_t> count = countOf(op);
  if (stage >= 0 && (!count || stage < *count))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << what << " " << stage;
  diagnostic << ", but stages are counted from 0";
  if (count)
    diagnostic << " to " << *count - 1;
  return diagnostic;
}

static LogicalResult checkAscending(Operation *op, const Twine &what, ArrayRef<int64_t> stages) {
  for (auto [position, stage] : llvm::enumerate(stages)) {
    if (failed(checkStage(op, what, stage)))
      return failure();
    if (position > 0 && stage <= stages[position - 1])
      return op->emitOpError() << what << " " << stage << " behind " << stages[position - 1]
                               << "; stages must be ascending";
  }
  return success();
}

/// Fails if another function before `function` is the same pass of a microbatch of the same stage: there must be one
/// at most.
static LogicalResult checkOnlyPass(graph::FuncOp function) {
  for (auto other : function->getBlock()->getOps<graph::FuncOp>()) {
    if (other == function)
      return success();
    if (other.getPart() == function.getPart() && stage::indexOf(other) == stage::indexOf(function))
      return function.emitOpError("is the part '")
             << stringifyFunctionPart(*function.getPart()) << "' of its stage, as @" << other.getSymName()
             << " already is; a stage has at most one function of each part";
  }
  return success();
}

LogicalResult StageDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kCountAttr) {
    auto count = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !count || !count.getType().isInteger(64) || count.getInt() < 1)
      return op->emitOpError("has ") << name << " = " << attribute.getValue()
                                     << "; it must be on the module, and an i64 of 1 or more";
  } else if (name == kAxisAttr) {
    auto axis = dyn_cast<StringAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !axis || axis.empty())
      return op->emitOpError("has ") << name << " = " << attribute.getValue()
                                     << "; it must be on the module, and the name of an axis of the mesh";
  } else if (name == kIndexAttr) {
    auto index = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!index || index.empty())
      return op->emitOpError("has ") << name << " = " << attribute.getValue() << "; it must be a list of stages";
    if (failed(checkAscending(op, name + " has", index)))
      return failure();
    if (auto function = dyn_cast<graph::FuncOp>(op); function && function.getPart())
      return checkOnlyPass(function);
  } else if (name == kPhaseAttr) {
    auto phase = dyn_cast<StringAttr>(attribute.getValue());
    if (!phase || !llvm::is_contained({kForward, kBackward, kBoth}, phase.getValue()))
      return op->emitOpError("has ") << name << " = " << attribute.getValue() << "; it must be \"" << kForward
                                     << "\", \"" << kBackward << "\" or \"" << kBoth << "\"";
  } else {
    return op->emitOpError("has ") << name << ", which the stage dialect does not know";
  }
  return success();
}

LogicalResult TransferOp::verify() {
  if (static_cast<int64_t>(getFrom()) == static_cast<int64_t>(getTo()))
    return emitOpError("from ") << getFrom() << " to itself; use its operand instead";
  return failure(failed(checkStage(*this, "from stage", getFrom())) || failed(checkStage(*this, "to stage", getTo())));
}

LogicalResult SumOp::verify() {
  if (getInputs().empty() || getInputs().size() != getFrom().size())
    return emitOpError("needs one stage per operand, and at least one: got ")
           << getFrom().size() << " for " << getInputs().size();
  return checkAscending(*this, "has an operand of stage", getFrom());
}

static LogicalResult checkLink(Operation *op, int64_t tensors, int64_t peer, StringRef channel) {
  if (tensors == 0)
    return op->emitOpError("needs at least one tensor");
  if (peer < 0)
    return op->emitOpError("names rank ") << peer << " of the pipeline; the nearest valid one is 0";
  if (channel.empty())
    return op->emitOpError("needs a channel with a name");
  return success();
}

LogicalResult SendOp::verify() {
  return checkLink(*this, static_cast<int64_t>(getInputs().size()), static_cast<int64_t>(getTo()), getChannel());
}

LogicalResult ReceiveOp::verify() {
  return checkLink(*this, static_cast<int64_t>(getResults().size()), static_cast<int64_t>(getFrom()), getChannel());
}

LogicalResult BroadcastOp::verify() { return checkStage(*this, "from stage", getFrom()); }

//===----------------------------------------------------------------------===//
// Interfaces of the graph dialect
//===----------------------------------------------------------------------===//

LogicalResult TransferOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  operandGrads[0] = TransferOp::create(builder, getLoc(), resultGrads[0], getTo(), getFrom());
  return success();
}

LogicalResult TransferOp::interpret(ArrayRef<graph::HostTensor> operands, MutableArrayRef<graph::HostTensor> results,
                                    const graph::Arithmetic &) {
  results[0].data = operands[0].data;
  return success();
}
double TransferOp::flops() { return 0; }
graph::RepeatCost TransferOp::repeatCost() { return graph::RepeatCost::Full; }
graph::FactorRule TransferOp::factorRule() { return graph::alignedRule(*this); }

LogicalResult SumOp::interpret(ArrayRef<graph::HostTensor> operands, MutableArrayRef<graph::HostTensor> results,
                               const graph::Arithmetic &arithmetic) {
  double sum = operands[0].data[0];
  for (const graph::HostTensor &operand : operands.drop_front())
    sum = arithmetic.add(sum, operand.data[0]);
  results[0].data[0] = sum;
  return success();
}
double SumOp::flops() { return static_cast<double>(getInputs().size()) - 1; }
graph::FactorRule SumOp::factorRule() { return graph::alignedRule(*this); }

LogicalResult BroadcastOp::interpret(ArrayRef<graph::HostTensor> operands, MutableArrayRef<graph::HostTensor> results,
                                     const graph::Arithmetic &) {
  results[0].data = operands[0].data;
  return success();
}
double BroadcastOp::flops() { return 0; }
graph::FactorRule BroadcastOp::factorRule() { return graph::alignedRule(*this); }

//===----------------------------------------------------------------------===//
// Stages of operands and results
//===----------------------------------------------------------------------===//

int64_t TransferOp::stageOfOperand(unsigned) { return static_cast<int64_t>(getFrom()); }
std::optional<int64_t> TransferOp::stageOfResult() { return static_cast<int64_t>(getTo()); }
int64_t SumOp::stageOfOperand(unsigned operand) { return getFrom()[operand]; }
int64_t BroadcastOp::stageOfOperand(unsigned) { return static_cast<int64_t>(getFrom()); }
