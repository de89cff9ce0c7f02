//===- MicrobatchFragments.cpp - Functions that a rank of a pipeline runs per microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/MicrobatchFragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/StashSlots.h"
#include "passes/Local/Stages/BackwardInput.h"

using namespace mlir;
using namespace bowline;

StringRef PipelineRanks::channelOf(StepKind kind, int64_t stage) const {
  for (const TimelineStep &step : timeline.ranks[static_cast<size_t>(rankOf(stage))])
    if (step.kind == kind && step.stage == stage)
      return timeline.channels[static_cast<size_t>(step.channel)].name;
  return {};
}

std::string bowline::nameOfFragment(FragmentKey key) {
  static constexpr const char *kNames[] = {"forward",         "backward",        "backward_input",
                                           "backward_weight", "send_activation", "receive_activation",
                                           "send_gradient",   "receive_gradient"};
  return (Twine(kNames[static_cast<size_t>(key.second)]) + "." + Twine(key.first)).str();
}

static std::optional<graph::FunctionPart> partOf(StepKind kind) {
  if (kind == StepKind::Forward)
    return graph::FunctionPart::Forward;
  if (kind == StepKind::Backward)
    return graph::FunctionPart::Backward;
  if (kind == StepKind::BackwardInput)
    return graph::FunctionPart::BackwardInput;
  if (kind == StepKind::BackwardWeight)
    return graph::FunctionPart::BackwardWeight;
  return std::nullopt;
}

MicrobatchFragments::MicrobatchFragments(graph::FuncOp function, const PipelineRanks &ranks, int64_t rank,
                                         SymbolTable &symbols)
    : function(function), ranks(ranks), rank(rank), symbols(symbols) {
  chooseSteps();
}

void MicrobatchFragments::run() {
  compute();
  receive();
  send();
  write();
  countSlots();
  for (auto it = fragments.begin(); it != fragments.end();) {
    PartialFunction &part = *it->second.function;
    bool isEmpty = part.isEmpty();
    part.finish();
    if (isEmpty)
      symbols.erase(part.get());
    it = isEmpty ? fragments.erase(it) : std::next(it);
  }
}

void MicrobatchFragments::chooseSteps() {
  const std::vector<TimelineStep> &given = ranks.timeline.ranks[static_cast<size_t>(rank)];
  for (const TimelineStep &step : given)
    if (step.kind == StepKind::BackwardInput)
      inputs.try_emplace(step.stage);
  for (auto &[stage, operations] : inputs)
    operations = findBackwardInput(function, stage);
  for (const TimelineStep &step : given) {
    order.push_back(step);
    if (step.kind != StepKind::Backward || !inputs.count(step.stage))
      continue;
    order.back().kind = StepKind::BackwardInput;
    order.push_back(step);
    order.back().kind = StepKind::BackwardWeight;
  }
}

std::vector<MicrobatchFragments::Step> MicrobatchFragments::steps() const {
  std::vector<Step> result;
  for (const TimelineStep &step : order)
    if (fragments.count({step.stage, step.kind}))
      result.push_back({nameOfFragment({step.stage, step.kind}), step.microbatch});
  return result;
}

std::vector<std::string> MicrobatchFragments::functions() const {
  std::vector<std::string> result;
  for (const auto &[key, fragment] : fragments)
    result.push_back(nameOfFragment(key));
  return result;
}

//===----------------------------------------------------------------------===//
// The fragment that computes a value
//===----------------------------------------------------------------------===//

MicrobatchFragments::Fragment *MicrobatchFragments::fragment(int64_t stage, StepKind kind) {
  FragmentKey key{stage, kind};
  Fragment &result = fragments[key];
  if (!result.function) {
    result.key = key;
    std::optional<graph::FunctionPart> part = partOf(kind);
    result.function = std::make_unique<PartialFunction>(function, nameOfFragment(key), part, symbols);
    if (part)
      result.function->get()->setAttr(stage::StageDialect::kIndexAttr,
                                      DenseI64ArrayAttr::get(function.getContext(), {stage}));
  }
  return &result;
}

Value MicrobatchFragments::origin(Value value) const {
  for (auto transfer = value.getDefiningOp<stage::TransferOp>();
       transfer && isHere(transfer.getFrom()) && isHere(transfer.getTo());
       transfer = value.getDefiningOp<stage::TransferOp>())
    value = transfer.getInput();
  return value;
}

bool MicrobatchFragments::floats(Operation *op) const {
  return op->getNumResults() > 0 && !isa<stage::TransferOp>(op) &&
         (isInBothPhases(op) || stage::indexOf(op).size() > 1);
}

/// The first stage of the rank among those of an operation; -1 where it has none of them.
int64_t MicrobatchFragments::stageHere(Operation *op) const {
  for (int64_t stage : stage::indexOf(op))
    if (isHere(stage))
      return stage;
  return -1;
}

StepKind MicrobatchFragments::computationOf(Operation *op, int64_t stage) const {
  if (!isBackward(op))
    return StepKind::Forward;
  auto divided = inputs.find(stage);
  if (divided == inputs.end())
    return StepKind::Backward;
  return divided->second.contains(op) ? StepKind::BackwardInput : StepKind::BackwardWeight;
}

MicrobatchFragments::Fragment *MicrobatchFragments::homeOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || floats(op))
    return nullptr;
  if (auto transfer = dyn_cast<stage::TransferOp>(op))
    return fragment(transfer.getTo(), isBackward(op) ? StepKind::ReceiveGradient : StepKind::ReceiveActivation);
  int64_t stage = stageHere(op);
  return fragment(stage, computationOf(op, stage));
}

static bool isComputation(StepKind kind) { return kind <= StepKind::BackwardWeight; }

/// Whether making a result again costs no more memory than keeping it, and no time worth mentioning.
static bool isRepeated(Operation *op) { return op && graph::repeatCostOf(op) != graph::RepeatCost::Full; }

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value MicrobatchFragments::get(Value value, Fragment *user) {
  value = origin(value);
  if (Value known = user->function->lookup(value))
    return known;
  Fragment *home = homeOf(value);
  Operation *op = value.getDefiningOp();
  bool isBackwardUser = isComputation(user->key.second) && user->key.second != StepKind::Forward;
  if (home && home != user && !(isRepeated(op) && isBackwardUser))
    return read(value, home, user);
  emit(op, user);
  return user->function->lookup(value);
}

void MicrobatchFragments::emit(Operation *op, Fragment *into) {
  for (Value operand : op->getOperands()) {
    Value here = get(operand, into);
    into->function->map(operand, here);
  }
  into->function->clone(op);
}

Value MicrobatchFragments::read(Value value, Fragment *writer, Fragment *user) {
  Stash &stash = stashes[{value, writer}];
  if (!stash.state) {
    OpBuilder builder(function.getContext());
    std::string name = "stash." + nameOfFragment(writer->key) + "." + std::to_string(counts[writer->key]++);
    stash.state = graph::StateOp::create(builder, value.getLoc(), name, graph::Lifetime::Microbatch,
                                         cast<RankedTensorType>(value.getType()),
                                         graph::FillAttr::get(function.getContext(), builder.getF64FloatAttr(0.0)));
    symbols.insert(stash.state, writer->function->get()->getIterator());
    stash.writer = writer;
  }
  stash.readers.insert(user->key);
  Value result = graph::ReadOp::create(user->function->builder(), value.getLoc(), value.getType(),
                                       FlatSymbolRefAttr::get(stash.state));
  user->function->map(value, result);
  return result;
}

void MicrobatchFragments::compute() {
  for (Operation &op : function.getBody().front()) {
    int64_t stage = stageHere(&op);
    if (stage < 0 || floats(&op) || isa<stage::TransferOp>(op) || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    Fragment *home = fragment(stage, computationOf(&op, stage));
    // The operation is there already if another operation needed it first.
    if (op.getNumResults() == 0 || !home->function->lookup(op.getResult(0)))
      emit(&op, home);
  }
}

void MicrobatchFragments::receive() {
  std::map<FragmentKey, SmallVector<stage::TransferOp>> messages;
  for (auto transfer : function.getBody().front().getOps<stage::TransferOp>())
    if (isHere(transfer.getTo()) && !isHere(transfer.getFrom()))
      messages[homeOf(transfer.getResult())->key].push_back(transfer);
  for (auto &[key, transfers] : messages) {
    StepKind kind = key.second == StepKind::ReceiveGradient ? StepKind::SendGradient : StepKind::SendActivation;
    int64_t from = static_cast<int64_t>(transfers.front().getFrom());
    SmallVector<Type> types;
    for (stage::TransferOp transfer : transfers)
      types.push_back(transfer.getType());
    Fragment *into = fragment(key.first, key.second);
    auto message = stage::ReceiveOp::create(into->function->builder(), transfers.front().getLoc(), types,
                                            static_cast<uint64_t>(ranks.rankOf(from)), ranks.channelOf(kind, from));
    for (auto [transfer, result] : llvm::zip_equal(transfers, message.getResults()))
      into->function->map(transfer.getResult(), result);
  }
}

void MicrobatchFragments::send() {
  std::map<FragmentKey, SmallVector<stage::TransferOp>> messages;
  for (auto transfer : function.getBody().front().getOps<stage::TransferOp>())
    if (isHere(transfer.getFrom()) && !isHere(transfer.getTo()))
      messages[{transfer.getFrom(), isBackward(transfer) ? StepKind::SendGradient : StepKind::SendActivation}]
          .push_back(transfer);
  for (auto &[key, transfers] : messages) {
    int64_t stage = key.first;
    StepKind kind = key.second == StepKind::SendActivation ? StepKind::Forward
                    : inputs.count(stage)                  ? StepKind::BackwardInput
                                                           : StepKind::Backward;
    Fragment *from = fragment(stage, key.second), *computation = fragment(stage, kind);
    SmallVector<Value> values;
    for (stage::TransferOp transfer : transfers) {
      Value value = origin(transfer.getInput());
      get(value, computation);
      Value known = from->function->lookup(value);
      values.push_back(known ? known : read(value, computation, from));
    }
    stage::SendOp::create(from->function->builder(), transfers.front().getLoc(), values,
                          static_cast<uint64_t>(ranks.rankOf(transfers.front().getTo())),
                          ranks.channelOf(key.second, stage));
  }
}

void MicrobatchFragments::write() {
  // A copy for a send may read another stash, but nothing new comes after send().
  for (auto &[key, stash] : stashes) {
    auto [value, writer] = key;
    Value made = writer->function->lookup(value);
    OpBuilder builder = writer->function->builder();
    builder.setInsertionPointAfterValue(made);
    graph::WriteOp::create(builder, value.getLoc(), FlatSymbolRefAttr::get(stash.state), made);
  }
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

void MicrobatchFragments::countSlots() {
  Builder builder(function.getContext());
  for (auto &[key, stash] : stashes)
    stash.state.setSlotsAttr(builder.getI64IntegerAttr(slotsOf(stash)));
}

/// One number for each stage and kind of step.
static int64_t numberOf(FragmentKey key) {
  constexpr int64_t kinds = static_cast<int64_t>(StepKind::ReceiveGradient) + 1;
  return key.first * kinds + static_cast<int64_t>(key.second);
}

/// Transfers end later than they are issued; StageSlots has the slots that they need.
int64_t MicrobatchFragments::slotsOf(const Stash &stash) const {
  std::vector<MicrobatchStep> steps;
  for (const TimelineStep &step : order)
    steps.push_back({numberOf({step.stage, step.kind}), step.microbatch});
  std::set<int64_t> readers;
  for (FragmentKey reader : stash.readers)
    readers.insert(numberOf(reader));
  int64_t slots = slotsInOrder(steps, numberOf(stash.writer->key), readers);
  auto [stage, kind] = stash.writer->key;
  const StageSlots &classes = ranks.timeline.slots[static_cast<size_t>(stage)];
  auto atLeast = [&](int count) { slots = std::max<int64_t>(slots, count); };
  if (kind == StepKind::ReceiveActivation)
    atLeast(classes.receivedActivation);
  if (kind == StepKind::ReceiveGradient)
    atLeast(classes.receivedGradient);
  for (auto [reader, by] : stash.readers) {
    bool isForward = kind == StepKind::Forward;
    if (by == StepKind::SendActivation || (isForward && reader != stage))
      atLeast(classes.sentActivation);
    else if (isForward && by != StepKind::BackwardInput) // which computes in the order of the steps
      atLeast(classes.stash);
    else if (by == StepKind::SendGradient || reader != stage)
      atLeast(classes.sentGradient);
    else if (kind == StepKind::BackwardInput)
      atLeast(classes.weightInputs);
  }
  return slots;
}
