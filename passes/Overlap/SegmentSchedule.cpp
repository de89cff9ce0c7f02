//===- SegmentSchedule.cpp - The order in which the commands of a segment are issued
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/SegmentSchedule.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/Lifetimes.h"

using namespace mlir;
using namespace bowline;

static constexpr llvm::StringLiteral kOverlapCommands = "OverlapCommands";

bool bowline::isBetweenStages(Operation *command, SymbolTable &symbols) {
  StringAttr axis = stage::axisOf(symbols.getOp());
  auto name = command->getAttrOfType<FlatSymbolRefAttr>("communicator");
  auto communicator = name ? symbols.lookup<plan::CommunicatorOp>(name.getAttr()) : plan::CommunicatorOp();
  return axis && communicator && llvm::is_contained(communicator.getAxes(), axis);
}

bool bowline::isFree(plan::SegmentOp segment) {
  return llvm::all_of(segment.getBody().front(), [](Operation &op) {
    return !isa<plan::SignalOp, plan::WaitOp>(op) && cast<plan::Command>(op).getStreamIndex() == 0;
  });
}

SegmentSchedule::SegmentSchedule(plan::SegmentOp segment, SymbolTable &symbols, CommandCost &cost,
                                 const llvm::StringMap<int64_t> &streamOf, int64_t mostPrefetch)
    : segment(segment), streams(1) {
  for (const auto &entry : streamOf)
    streams.resize(std::max<size_t>(streams.size(), entry.second + 1));
  for (Operation &op : segment.getBody().front())
    addNode(&op, streamOf, cost, mostPrefetch);
  addOrders(symbols);
  for (Node &node : nodes)
    if (node.kind == Kind::Reduction) {
      node.frees = bytesFreedBy(cast<plan::CollectiveOp>(node.op));
      mostReducing = std::max(mostReducing, kReductionsInFlight * node.frees);
    }
}

void SegmentSchedule::addNode(Operation *op, const llvm::StringMap<int64_t> &streamOf, CommandCost &cost,
                              int64_t mostPrefetch) {
  Node node{op, Kind::Compute, 0, cost.seconds(op), 0, {}, {}};
  auto collective = dyn_cast<plan::CollectiveOp>(op);
  if (collective && streamOf.contains(collective.getCommunicator())) {
    node.kind = collective.getDefinition().reduces() ? Kind::Reduction : Kind::Gather;
    node.stream = streamOf.lookup(collective.getCommunicator());
    auto distance = op->getAttrOfType<IntegerAttr>(dist::DistDialect::kPrefetchAttr);
    node.prefetch = std::min(distance ? distance.getInt() : 1, mostPrefetch);
  }
  serial += node.seconds;
  nodes.push_back(std::move(node));
}

/// The bytes of buffers without uses after the reduction, beyond those of its results, which may be in their place.
int64_t SegmentSchedule::bytesFreedBy(plan::CollectiveOp reduction) const {
  auto program = segment->getParentOfType<plan::ProgramOp>();
  auto isOver = [&](Operation *user) {
    // Other programs run at other times.
    return user->getParentOfType<plan::ProgramOp>() != program ||
           (user->getParentOp() == segment && !reduction->isBeforeInBlock(user));
  };
  auto temporary = [](Value buffer) {
    auto declared = buffer.getDefiningOp<plan::BufferOp>();
    return declared.getKind() == plan::BufferKind::Temporary ? declared.getBytes() : 0;
  };
  int64_t bytes = 0;
  for (Value source : reduction.getSources())
    if (llvm::all_of(source.getUsers(), isOver))
      bytes += temporary(source);
  for (Value result : reduction.getDestinations())
    bytes -= temporary(result);
  return std::max<int64_t>(bytes, 0);
}

/// Every command after the last write of its buffers, and every write after the uses since the write before.
void SegmentSchedule::addOrders(SymbolTable &symbols) {
  struct Last {
    std::optional<unsigned> writer;
    SmallVector<unsigned> readers;
  };
  DenseMap<Value, Last> accesses;
  std::optional<unsigned> lastLink;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    std::set<unsigned> before;
    for (const CommandUse &use : usesOf(nodes[i].op, symbols)) {
      Last &last = accesses[use.buffer];
      if (last.writer)
        before.insert(*last.writer);
      if (use.writes) {
        before.insert(last.readers.begin(), last.readers.end());
        last = {i, {}};
      } else {
        last.readers.push_back(i);
      }
    }
    if (isBetweenStages(nodes[i].op, symbols)) {
      if (lastLink)
        before.insert(*lastLink);
      lastLink = i;
    }
    before.erase(i);
    for (unsigned earlier : before)
      nodes[earlier].after.push_back(i);
    nodes[i].waitsFor = before.size();
    nodes[i].before.assign(before.begin(), before.end());
  }
}

void SegmentSchedule::addReady(unsigned index) {
  Node &node = nodes[index];
  for (unsigned earlier : node.before)
    node.ready = std::max(node.ready, nodes[earlier].end);
  if (node.kind == Kind::Compute)
    computeReady.insert(index);
  else if (node.kind == Kind::Reduction)
    streams[node.stream].reductions.insert(index);
  else
    streams[node.stream].gathers.insert(index);
}

void SegmentSchedule::issue(unsigned index) {
  Node &node = nodes[index];
  Stream &stream = streams[node.stream];
  // A communication begins after the commands that compute in front of it.
  if (node.kind == Kind::Compute)
    waitForReductions(index);
  node.end = std::max({node.ready, stream.end, streams[0].end}) + node.seconds;
  stream.end = node.end;
  finish = std::max(finish, node.end);
  node.isIssued = true;
  order.push_back(index);
  computeReady.erase(index);
  stream.reductions.erase(index);
  stream.gathers.erase(index);
  if (node.kind == Kind::Gather && !node.after.empty()) {
    node.isUnused = true;
    ++stream.unused;
  }
  if (node.frees > 0) {
    reducing.push_back(index);
    reducingBytes += node.frees;
  }
  for (unsigned earlier : node.before)
    if (std::exchange(nodes[earlier].isUnused, false))
      --streams[nodes[earlier].stream].unused;
  for (unsigned later : node.after)
    if (--nodes[later].waitsFor == 0)
      addReady(later);
}

void SegmentSchedule::waitForReductions(unsigned compute) {
  while (reducingBytes > mostReducing) {
    const Node &oldest = nodes[reducing.front()];
    streams[0].end = std::max(streams[0].end, oldest.end);
    reducingBytes -= oldest.frees;
    waitedFor[compute].push_back(reducing.front());
    reducing.pop_front();
  }
}

unsigned SegmentSchedule::frontier() const {
  while (nodes[firstLeft].isIssued)
    ++firstLeft;
  return firstLeft;
}

bool SegmentSchedule::isDue(unsigned gather) const {
  const Node &node = nodes[gather];
  return gather == frontier() || streams[node.stream].unused < node.prefetch;
}

bool SegmentSchedule::issueCommunication() {
  for (Stream &stream : streams) {
    std::optional<unsigned> first;
    if (!stream.gathers.empty() && isDue(*stream.gathers.begin()))
      first = *stream.gathers.begin();
    if (!stream.reductions.empty() && (!first || *stream.reductions.begin() < *first))
      first = *stream.reductions.begin();
    if (first) {
      issue(*first);
      return true;
    }
  }
  return false;
}

unsigned SegmentSchedule::chooseCompute() const {
  unsigned best = *computeReady.begin();
  size_t seen = 0;
  for (unsigned index : computeReady) {
    if (++seen > kWindow || index > frontier() + 2 * kWindow)
      break;
    if (nodes[index].ready <= streams[0].end)
      return index;
    if (nodes[index].ready < nodes[best].ready)
      best = index;
  }
  return best;
}

void SegmentSchedule::run() {
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (nodes[i].waitsFor == 0)
      addReady(i);
  while (order.size() < nodes.size()) {
    if (issueCommunication())
      continue;
    // Gathers that are not due wait until they are the first: then nothing that computes may be ready.
    if (!computeReady.empty()) {
      issue(chooseCompute());
      continue;
    }
    std::optional<unsigned> first;
    for (Stream &stream : streams)
      if (!stream.gathers.empty() && (!first || *stream.gathers.begin() < *first))
        first = *stream.gathers.begin();
    issue(*first);
  }
}

int64_t SegmentSchedule::apply(int64_t firstEvent) {
  int64_t next = firstEvent;
  Block &block = segment.getBody().front();
  OpBuilder builder(segment.getContext());
  auto signal = [&](Location location, int64_t event, int64_t stream) {
    plan::SignalOp::create(builder, location, event, /*slots=*/1, stream, kOverlapCommands);
  };
  auto wait = [&](Location location, int64_t event, int64_t stream) {
    plan::WaitOp::create(builder, location, event, /*slots=*/1, stream, kOverlapCommands);
  };
  DenseMap<unsigned, int64_t> endOf; // events at the ends of reductions
  for (const auto &[compute, reductions] : waitedFor)
    for (unsigned reduction : reductions)
      endOf[reduction] = 0;
  for (unsigned index : order) {
    Node &node = nodes[index];
    Location location = node.op->getLoc();
    node.op->moveBefore(&block, block.end());
    builder.setInsertionPoint(node.op);
    for (unsigned reduction : waitedFor.lookup(index))
      wait(location, endOf.lookup(reduction), /*stream=*/0);
    if (node.stream == 0)
      continue;
    cast<plan::Command>(node.op).setStreamIndex(node.stream);
    signal(location, next, /*stream=*/0);
    wait(location, next++, node.stream);
    if (auto end = endOf.find(index); end != endOf.end()) {
      builder.setInsertionPointAfter(node.op);
      end->second = next++;
      signal(location, end->second, node.stream);
    }
  }
  return next - firstEvent;
}
