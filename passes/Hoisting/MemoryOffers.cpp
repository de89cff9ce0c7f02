//===- MemoryOffers.cpp - Changes that save time and take memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Hoisting/MemoryOffers.h"
#include "passes/Analysis/CommandCost.h"
#include "passes/Analysis/CommandUses.h"
#include "passes/Analysis/Roles.h"
#include "passes/Hoisting/InvariantHoisting.h"
#include "passes/Hoisting/PrepareHoisting.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace bowline;

double MemoryOffer::worth() const {
  return bytes > 0 ? seconds / static_cast<double>(bytes) : std::numeric_limits<double>::infinity();
}

static SmallVector<plan::LaunchOp> launchesOf(ModuleOp module) {
  SmallVector<plan::LaunchOp> launches;
  module.walk([&](plan::LaunchOp launch) { launches.push_back(launch); });
  return launches;
}

/// The number of calls of a segment in its program's timeline.
static int64_t callsOf(plan::SegmentOp segment) {
  auto program = segment->getParentOfType<plan::ProgramOp>();
  int64_t index = 0;
  for (auto other : program.getBody().front().getOps<plan::SegmentOp>()) {
    if (other == segment)
      break;
    ++index;
  }
  int64_t calls = 0;
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2)
    calls += timeline[i] == index;
  return calls;
}

namespace {

/// Makes all changes in a copy of the module, and notes each.
class OfferCollector {
public:
  OfferCollector(ModuleOp copy, const targets::CostModel &model)
      : copy(copy), symbols(copy), cost(copy, symbols, model) {
    for (auto [position, launch] : llvm::enumerate(launchesOf(copy)))
      positions[launch] = position;
  }

  std::vector<MemoryOffer> collect(const ModuleTarget &target, PackingThresholds least) {
    PrepareHoisting(copy).run([&](plan::LaunchOp launch, bool isNew) { addMove(launch, isNew, /*callsLeft=*/0); });
    InvariantHoisting(copy).run([&](plan::LaunchOp launch, bool isNew) { addMove(launch, isNew, /*callsLeft=*/1); });
    if (WeightPacking::isPossible(copy, target)) {
      WeightPacking packing(copy, target, least);
      for (const PackableWeight &weight : packing.weights())
        addPacking(weight);
    }
    return std::move(found);
  }

private:
  void addMove(plan::LaunchOp launch, bool isNew, int64_t callsLeft) {
    MemoryOffer offer;
    auto position = positions.find(launch);
    // A launch may move in front of a segment, and from there into `prepare`.
    if (position == positions.end())
      return;
    offer.launches.push_back(position->second);
    int64_t calls = callsOf(launch->getParentOfType<plan::SegmentOp>());
    offer.seconds = cost.seconds(launch) * static_cast<double>(std::max<int64_t>(calls - (isNew ? callsLeft : 0), 0));
    for (const CommandUse &use : usesOf(launch, symbols)) {
      auto buffer = use.buffer.getDefiningOp<plan::BufferOp>();
      if (!use.writes)
        need(use.buffer, offer);
      else if (isNew && buffer.getKind() != plan::BufferKind::Scratch) {
        offer.bytes += buffer.getBytes();
        offerOf[use.buffer] = found.size();
      }
    }
    found.push_back(std::move(offer));
  }

  void addPacking(const PackableWeight &weight) {
    MemoryOffer offer;
    offer.isPacking = true;
    offer.bytes = plan::byteCount(weight.packedType);
    need(weight.source, offer);
    double products = 0;
    for (plan::LaunchOp launch : weight.launches) {
      products += cost.seconds(launch) * static_cast<double>(callsOf(launch->getParentOfType<plan::SegmentOp>()));
      if (auto position = positions.find(launch); position != positions.end())
        offer.launches.push_back(position->second);
    }
    offer.seconds = std::max(products * weight.savedRows / weight.productRows, 0.0);
    found.push_back(std::move(offer));
  }

  void need(Value value, MemoryOffer &offer) const {
    if (auto computed = offerOf.find(value); computed != offerOf.end())
      offer.neededOffers.push_back(computed->second);
  }

  ModuleOp copy;
  SymbolTable symbols;
  CommandCost cost;
  llvm::DenseMap<Operation *, size_t> positions;
  llvm::DenseMap<Value, size_t> offerOf; // by the buffer that it computes
  std::vector<MemoryOffer> found;
};

} // namespace

MemoryOffers::MemoryOffers(ModuleOp module, const ModuleTarget &target, const targets::CostModel &model,
                           PackingThresholds least)
    : target(target), least(least) {
  RoleCopy copy(module);
  sort(OfferCollector(*copy, model).collect(target, least));
}

void MemoryOffers::sort(std::vector<MemoryOffer> found) {
  // An offer is found after those that it needs.
  std::vector<double> worth;
  for (const MemoryOffer &offer : found) {
    double least = offer.worth();
    for (size_t needed : offer.neededOffers)
      least = std::min(least, worth[needed]);
    worth.push_back(least);
  }
  std::vector<size_t> order(found.size());
  for (auto [index, place] : llvm::enumerate(order))
    place = index;
  llvm::stable_sort(order, [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  for (size_t index : order)
    sorted.push_back(std::move(found[index]));
}

void MemoryOffers::decline(ModuleOp module, const llvm::BitVector &taken) const {
  SmallVector<plan::LaunchOp> launches = launchesOf(module);
  for (plan::LaunchOp launch : launches) {
    launch->removeAttr(kStaysAttr);
    launch->removeAttr(kUnpackedAttr);
  }
  UnitAttr mark = UnitAttr::get(module.getContext());
  for (auto [index, offer] : llvm::enumerate(sorted))
    if (!taken[index])
      for (size_t position : offer.launches)
        launches[position]->setAttr(offer.isPacking ? kUnpackedAttr : kStaysAttr, mark);
}

void MemoryOffers::apply(ModuleOp copy, const llvm::BitVector &taken) const {
  decline(copy, taken);
  PrepareHoisting(copy).run();
  InvariantHoisting(copy).run();
  if (WeightPacking::isPossible(copy, target))
    WeightPacking(copy, target, least).run();
}

std::optional<llvm::BitVector> bowline::chooseWithin(int64_t limit, size_t count, int most,
                                                     llvm::function_ref<int64_t(const llvm::BitVector &)> bytesOf) {
  llvm::BitVector taken(count);
  auto fits = [&](size_t begin, size_t end) {
    llvm::BitVector more = taken;
    more.set(begin, end);
    return bytesOf(more) <= limit;
  };
  if (count > 0 && fits(0, count))
    return taken.set();
  if (bytesOf(taken) > limit)
    return std::nullopt;
  for (size_t begin = 0; begin < count && most >= 0; --most) {
    size_t good = begin, bad = count;
    // Of the first round, the last one is known not to fit.
    if (begin > 0 && fits(begin, count))
      good = count;
    while (good < count && bad - good > 1) {
      size_t middle = good + (bad - good) / 2;
      (fits(begin, middle) ? good : bad) = middle;
    }
    taken.set(begin, good);
    begin = good + 1;
  }
  return taken;
}
