//===- Recomputation.cpp - Which forward values the backward pass computes again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Recomputation/Recomputation.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Fusion/Recomputation/DetachedEpilogue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <functional>
#include <limits>

using namespace mlir;
using namespace bowline;

/// Values smaller than this part of the largest one saved are not worth a launch.
static constexpr int64_t kSmallPart = 64;

/// Operations of arithmetic in the time in which a rank sends a byte: 989 TFLOP/s of bf16 and 450 GB/s of NVLink in
/// each direction (NVIDIA H100 SXM, data sheet).
static constexpr double kFlopsPerByte = 2200;

/// The list of choices has about so many: more make its steps finer.
static constexpr int64_t kSteps = 64;

/// Whether a clone of a collective gives the same result in the backward part. All ranks of its group run both parts.
static bool isRepeatable(Operation *op) {
  return isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp, dist::SliceOp, dist::CoordinateOp>(op) &&
         !stage::isBetweenStages(op);
}

static double flopsOf(Operation *op) {
  double flops = 0;
  op->walk([&](graph::CostModel cost) { flops += cost.flops(); });
  return flops;
}

Recomputation::Recomputation(Block &block, const DenseSet<Operation *> &forward, const DenseSet<StringRef> &handedOn)
    : block(block), alignment(deviceAlignment(block.getParentOp()->getParentOfType<ModuleOp>())) {
  for (BlockArgument argument : block.getArguments())
    idOf[argument] = -1;
  for (Operation &op : block)
    addOperation(&op, forward.contains(&op), handedOn);
  lastForwardUse.resize(values.size());
  for (auto [id, value] : llvm::enumerate(values))
    lastForwardUse[id] = value.producer;
  for (auto [index, info] : llvm::enumerate(ops))
    for (int operand : info.operands) {
      if (isForward(static_cast<int>(index)))
        lastForwardUse[operand] = static_cast<int>(index);
      else if (isForward(values[operand].producer))
        values[operand].saved = true;
    }
  findGathers();
}

void Recomputation::addOperation(Operation *op, bool forward, const DenseSet<StringRef> &handedOn) {
  if (graph::isView(op)) {
    idOf[op->getResult(0)] = idOf.lookup(op->getOperand(0));
    return;
  }
  if (auto write = dyn_cast<graph::WriteOp>(op); write && handedOn.contains(write.getVariable()))
    return;
  if (isa<graph::WriteOp, graph::ReturnOp>(op)) {
    for (Value operand : op->getOperands())
      if (int id = idOf.lookup(operand); id >= 0)
        values[id].toTheEnd = true;
    // A sum over runs takes the memory of the variable that it is added to.
    if (auto write = dyn_cast<graph::WriteOp>(op); write && variablesRead.contains(write.getVariable()))
      if (int id = idOf.lookup(write.getValue()); id >= 0)
        values[id].bytes = 0;
    return;
  }
  if (auto read = dyn_cast<graph::ReadOp>(op))
    variablesRead.insert(read.getVariable());
  if (isa<graph::ReadOp, arith::ConstantOp>(op)) {
    for (Value result : op->getResults())
      idOf[result] = -1;
    return;
  }
  // Parts of a group follow it, as operations of their own.
  std::vector<DetachedEpilogue> detached;
  if (auto group = dyn_cast<graph::FusionOp>(op); group && forward)
    detached = detachEpilogue(group);
  SmallVector<Value> own(op->getResults());
  for (const DetachedEpilogue &part : detached)
    llvm::erase(own, op->getResult(part.result));
  int whole = static_cast<int>(ops.size());
  addInfo(op, own, forward, -1);
  for (DetachedEpilogue &part : detached) {
    addInfo(*part.group, op->getResult(part.result), forward, whole);
    ops[whole].flops -= ops.back().flops;
    ops[whole].cost -= ops.back().cost;
    parts.push_back(std::move(part.group));
  }
}

void Recomputation::addInfo(Operation *op, ValueRange results, bool forward, int whole) {
  OpInfo info{op, {}, {}, flopsOf(op), 0, forward, whole};
  info.cost = info.flops;
  if (isa<dist::Collective>(op))
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      info.cost =
          std::max(info.cost, kFlopsPerByte * static_cast<double>(plan::byteCount(cast<RankedTensorType>(type))));
  for (Value operand : op->getOperands())
    if (int id = idOf.lookup(operand); id >= 0 && !llvm::is_contained(info.operands, id))
      info.operands.push_back(id);
  for (Value result : results) {
    int id = static_cast<int>(values.size());
    idOf[result] = id;
    info.results.push_back(id);
    auto bytes = llvm::alignTo(plan::byteCount(cast<RankedTensorType>(result.getType())), alignment);
    values.push_back({result, static_cast<int64_t>(bytes), static_cast<int>(ops.size())});
    values.back().received = isa<dist::DistDialect>(op->getDialect()) && !isRepeatable(op);
  }
  if (whole < 0)
    blockFlops += info.flops;
  if (forward)
    forwardOps.push_back(static_cast<int>(ops.size()));
  ops.push_back(std::move(info));
}

bool Recomputation::comesWithWhole(const OpInfo &info, function_ref<bool(int)> isThere) const {
  return info.whole >= 0 &&
         llvm::any_of(info.operands, [&](int id) { return values[id].producer == info.whole && !isThere(id); });
}

//===----------------------------------------------------------------------===//
// Costs of a choice
//===----------------------------------------------------------------------===//

/// The schedule with clones: positions of all uses, and bytes over time.
struct Recomputation::Simulation {
  std::vector<bool> cloned;           // by operation
  std::vector<int64_t> firstBackward; // by value: position of the first backward use of the original; or the end
  std::vector<int64_t> lastForward;   // by value: position of its last forward use
  int64_t peakBytes = 0, peakPosition = 0;
  int64_t freeableBytes = 0; // of kept values alive there that could be computed again
};

Recomputation::Simulation Recomputation::simulate(const std::vector<bool> &kept) const {
  size_t count = values.size();
  Simulation result;
  result.cloned.assign(ops.size(), false);
  result.firstBackward.assign(count, std::numeric_limits<int64_t>::max());
  result.lastForward.assign(count, 0);
  // Originals, then their clones.
  std::vector<int64_t> first(2 * count, -1), last(2 * count, -1);
  int64_t position = 0;
  auto define = [&](int op, bool clone) {
    // A gather that clones needed already stands in front of them.
    if (!clone && !ops[op].results.empty() && first[ops[op].results.front()] >= 0)
      return;
    for (int id : ops[op].results)
      first[id + clone * count] = last[id + clone * count] = position;
    ++position;
  };
  auto isOriginal = [&](int id) { return kept[id] || !isForward(values[id].producer); };
  auto use = [&](int id) {
    if (!isOriginal(id) && values[id].again >= 0)
      id = values[id].again;
    last[isOriginal(id) ? id : id + count] = position;
    if (isOriginal(id))
      result.firstBackward[id] = std::min(result.firstBackward[id], position);
  };
  std::vector<int64_t> clonedAt(ops.size(), -1);
  std::function<void(int)> clone;
  auto produce = [&](int id) {
    if (isOriginal(id))
      return;
    if (values[id].again < 0)
      return clone(values[id].producer);
    define(values[values[id].again].producer, /*clone=*/false);
  };
  clone = [&](int op) {
    if (clonedAt[op] >= 0)
      return;
    if (comesWithWhole(ops[op], isOriginal)) {
      clone(ops[op].whole);
      clonedAt[op] = clonedAt[ops[op].whole];
      for (int id : ops[op].results)
        first[id + count] = last[id + count] = clonedAt[op];
      return;
    }
    result.cloned[op] = true;
    llvm::for_each(ops[op].operands, produce);
    llvm::for_each(ops[op].operands, use);
    clonedAt[op] = position;
    define(op, true);
  };
  for (int op = 0; op < static_cast<int>(ops.size()); ++op) {
    if (isForward(op)) {
      for (int id : ops[op].operands)
        last[id] = result.lastForward[id] = position;
    } else {
      llvm::for_each(ops[op].operands, produce);
      llvm::for_each(ops[op].operands, use);
    }
    for (int id : ops[op].results)
      result.lastForward[id] = position;
    define(op, false);
  }

  std::vector<int64_t> change(position + 1, 0);
  for (size_t id = 0; id < 2 * count; ++id) {
    if (first[id] < 0)
      continue;
    const ValueInfo &value = values[id % count];
    int64_t end = value.toTheEnd && id < count ? position - 1 : last[id];
    change[first[id]] += value.bytes;
    change[end + 1] -= value.bytes;
  }
  int64_t live = 0;
  for (int64_t at = 0; at < position; ++at)
    if ((live += change[at]) > result.peakBytes) {
      result.peakBytes = live;
      result.peakPosition = at;
    }
  for (size_t id = 0; id < count; ++id)
    if (values[id].saved && !isAlwaysKept(static_cast<int>(id)) && kept[id] && first[id] <= result.peakPosition &&
        result.peakPosition <= last[id])
      result.freeableBytes += values[id].bytes;
  return result;
}

Recomputation::Choice Recomputation::evaluate(std::vector<bool> kept) const {
  for (int id = 0; id < static_cast<int>(values.size()); ++id)
    if (isAlwaysKept(id))
      kept[id] = true;
  Simulation simulation = simulate(kept);
  Choice choice;
  choice.peakBytes = simulation.peakBytes;
  choice.freeableBytes = simulation.freeableBytes;
  for (auto [op, cloned] : llvm::enumerate(simulation.cloned))
    if (cloned) {
      choice.flops += ops[op].flops;
      choice.cost += ops[op].cost;
      ++choice.operations;
      choice.collectives += isa<dist::Collective>(ops[op].op) ? 1 : 0;
    }
  for (auto [id, value] : llvm::enumerate(values))
    if (value.saved && !kept[id])
      choice.droppedBytes += value.bytes;
  choice.kept = std::move(kept);
  return choice;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

Recomputation::Choice Recomputation::keepAll() const {
  std::vector<bool> kept;
  for (const ValueInfo &value : values)
    kept.push_back(value.saved);
  return evaluate(std::move(kept));
}

/// Code generated for elementwise and row operations.
bool Recomputation::isCheap(const OpInfo &info) const {
  auto fusion = dyn_cast<graph::FusionOp>(info.op);
  return fusion && !fusion.getContraction();
}

Recomputation::Choice Recomputation::keepShards() const {
  std::vector<bool> kept = keepAll().kept;
  // By value: the shard that it was gathered from. Where a microbatch has several sequences, the gathered value is
  // transposed.
  std::vector<int> shardOf(values.size(), -1);
  for (int op : forwardOps) {
    const OpInfo &info = ops[op];
    bool isGather = isa<dist::AllGatherOp>(info.op) && !values[info.results.front()].isGathered;
    if (info.operands.size() != 1 || !(isGather || isCheap(info)))
      continue;
    int shard = isGather ? info.operands.front() : shardOf[info.operands.front()];
    if (shard < 0)
      continue;
    for (int id : info.results) {
      shardOf[id] = shard;
      if (values[id].saved && !isAlwaysKept(id)) {
        kept[id] = false;
        kept[shard] = true;
      }
    }
  }
  return evaluate(std::move(kept));
}

int64_t Recomputation::savedBytes() const {
  int64_t bytes = 0;
  for (const ValueInfo &value : values)
    bytes += value.saved ? value.bytes : 0;
  return bytes;
}

Recomputation::Choice Recomputation::selective() const {
  std::vector<bool> kept = keepShards().kept, available = kept;
  int64_t largest = 0;
  for (auto [id, value] : llvm::enumerate(values)) {
    available[id] = available[id] || value.again >= 0;
    largest = std::max(largest, value.saved ? value.bytes : 0);
  }
  for (int op : forwardOps) {
    const OpInfo &info = ops[op];
    if (!isCheap(info) || !llvm::all_of(info.operands, [&](int id) { return available[id]; }))
      continue;
    int64_t bytes = 0;
    for (int id : info.results)
      bytes += values[id].saved || kept[id] ? values[id].bytes : 0;
    if (bytes == 0 || bytes < largest / kSmallPart)
      continue;
    for (int id : info.results) {
      kept[id] = false;
      available[id] = true;
    }
  }
  return evaluate(std::move(kept));
}

/// The bytes, by operation, of forward values that exist after it and that the forward part still uses.
std::vector<int64_t> Recomputation::forwardLiveBytes() const {
  std::vector<int64_t> live(ops.size(), 0);
  for (auto [id, value] : llvm::enumerate(values))
    if (isForward(value.producer) && !value.isGathered) {
      live[value.producer] += value.bytes;
      live[lastForwardUse[id]] -= value.bytes;
    }
  for (size_t op = 1; op < live.size(); ++op)
    live[op] += live[op - 1];
  return live;
}

/// Points after about `distance` saved bytes each, where the fewest bytes are alive.
Recomputation::Choice Recomputation::keepAtPoints(int64_t distance, const std::vector<int64_t> &live,
                                                  const std::vector<bool> &end) const {
  std::vector<int> points;
  int64_t since = 0;
  int best = -1;
  for (int op : forwardOps) {
    for (int id : ops[op].results)
      since += values[id].saved ? values[id].bytes : 0;
    if (2 * since >= distance && (best < 0 || live[op] <= live[best]))
      best = op;
    if (since < distance)
      continue;
    points.push_back(best);
    since = 0;
    best = -1;
  }
  std::vector<bool> kept(values.size(), false);
  int next = points.empty() ? -1 : points.back();
  for (auto [id, value] : llvm::enumerate(values)) {
    if (!isForward(value.producer) || value.isGathered)
      continue;
    if (value.producer > next)
      kept[id] = end[id];
    auto point = llvm::lower_bound(points, value.producer);
    if (point != points.end() && *point < lastForwardUse[id])
      kept[id] = true;
  }
  return evaluate(std::move(kept));
}

int64_t Recomputation::bytesOf(const Choice &choice, int64_t copies) const {
  int64_t kept = 0;
  for (auto [id, value] : llvm::enumerate(values))
    if (choice.kept[id] && isForward(value.producer))
      kept += value.bytes;
  return choice.peakBytes + (copies - 1) * kept;
}

Recomputation::Choice Recomputation::full(int64_t copies) const {
  std::vector<int64_t> live = forwardLiveBytes();
  Choice best = keepAll();
  int64_t all = savedBytes();
  std::vector<bool> end = copies == 1 ? selective().kept : std::vector<bool>(values.size(), false);
  for (double distance = static_cast<double>(all) / 2; distance * 2048 > static_cast<double>(all); distance /= 1.2) {
    Choice choice = keepAtPoints(static_cast<int64_t>(distance), live, end);
    if (bytesOf(choice, copies) < bytesOf(best, copies))
      best = std::move(choice);
  }
  return best;
}

/// The cost of the clones that would come with a clone of `op`.
double Recomputation::addedCost(int op, const std::vector<bool> &kept, const std::vector<bool> &cloned) const {
  llvm::SmallVector<int> needed{op};
  double cost = 0;
  for (size_t i = 0; i < needed.size(); ++i) {
    cost += ops[needed[i]].cost;
    for (int id : ops[needed[i]].operands)
      if (int producer = values[id].producer;
          !kept[id] && values[id].again < 0 && !cloned[producer] && !llvm::is_contained(needed, producer))
        needed.push_back(producer);
  }
  return cost;
}

std::vector<Recomputation::Choice> Recomputation::increasing() const {
  std::vector<Choice> choices{keepAll()};
  int64_t step = std::max<int64_t>(1, savedBytes() / kSteps);
  while (true) {
    std::vector<bool> kept = choices.back().kept;
    Simulation now = simulate(kept);
    struct Move {
      int op;
      int64_t bytes;
      double score;
    };
    std::vector<Move> moves;
    for (int op : forwardOps) {
      int64_t bytes = 0;
      for (int id : ops[op].results)
        if (values[id].saved && !isAlwaysKept(id) && kept[id] && now.lastForward[id] < now.peakPosition &&
            now.firstBackward[id] > now.peakPosition)
          bytes += values[id].bytes;
      if (bytes == 0)
        continue;
      double cost = now.cloned[op] ? 0 : addedCost(op, kept, now.cloned);
      moves.push_back({op, bytes, static_cast<double>(bytes) / (1 + cost)});
    }
    if (moves.empty())
      return choices;
    llvm::stable_sort(moves, [](const Move &lhs, const Move &rhs) { return lhs.score > rhs.score; });
    int64_t freed = 0;
    for (const Move &move : moves) {
      for (int id : ops[move.op].results)
        kept[id] = false;
      if ((freed += move.bytes) >= step)
        break;
    }
    choices.push_back(evaluate(std::move(kept)));
  }
}

Recomputation::Choice Recomputation::atMost(int64_t bytes, int64_t copies) const {
  std::vector<Choice> choices = increasing();
  choices.push_back(selective());
  choices.push_back(full(copies));
  Choice *best = &choices.front();
  for (Choice &choice : choices) {
    int64_t needed = bytesOf(choice, copies), neededByBest = bytesOf(*best, copies);
    bool fits = needed <= bytes, bestFits = neededByBest <= bytes;
    if (fits != bestFits ? fits : fits ? choice.cost < best->cost : needed < neededByBest)
      best = &choice;
  }
  return std::move(*best);
}
