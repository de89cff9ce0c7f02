//===- ArenaPacker.cpp - Offsets for blocks of memory with lifetimes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ArenaPacker.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

using namespace bowline;

/// Pairs of blocks alive together that all placements may look at, together: about a second.
static constexpr int64_t kWork = 30'000'000;

/// Improvement ends after so many placements that were no better.
static constexpr int kPatience = 100;

/// The best packings, this many, are improved.
static constexpr size_t kImproved = 8;

LivePeak bowline::findLivePeak(const std::vector<MemoryBlock> &blocks) {
  std::map<int64_t, int64_t> changes;
  for (const MemoryBlock &block : blocks) {
    changes[block.alive.first] += block.bytes;
    changes[block.alive.last + 1] -= block.bytes;
  }
  LivePeak peak;
  int64_t live = 0;
  for (auto [position, change] : changes)
    if ((live += change) > peak.bytes)
      peak = {live, position};
  return peak;
}

namespace {

using Order = std::vector<uint32_t>;

/// The gap between blocks that are alive together with a block that the block takes, and its place in the gap.
enum class Fit {
  Lowest,   // the first one, at its start
  Smallest, // the smallest one, at its start
  BothEnds, // the smallest one below the lower bound, at its end if that is the bound: exact for chains
  Nested, // that gap too, but beside the neighbour that is alive all the time that the block is, so that no hole opens
          // between them: good for nested lifetimes
};

/// The offsets of one packing's blocks.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

struct Attempt {
  Order order;
  Fit fit;
  Placement placement;
};

/// Gives places at one time and takes them back at a later one, as a heap does.
class Heap {
public:
  /// The smallest free range that is large enough, or the end.
  int64_t allocate(int64_t bytes) {
    auto fit = bySize.lower_bound({bytes, 0});
    if (fit == bySize.end()) {
      // A free range at the end is extended.
      auto last = byOffset.empty() ? byOffset.end() : std::prev(byOffset.end());
      int64_t offset = end;
      if (last != byOffset.end() && last->first + last->second == end) {
        offset = last->first;
        erase(last);
      }
      end = offset + bytes;
      return offset;
    }
    auto [size, offset] = *fit;
    erase(byOffset.find(offset));
    if (size > bytes)
      insert(offset + bytes, size - bytes);
    return offset;
  }

  void release(int64_t offset, int64_t bytes) {
    auto next = byOffset.lower_bound(offset);
    if (next != byOffset.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != byOffset.begin())
      if (auto previous = std::prev(next); previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        erase(previous);
      }
    insert(offset, bytes);
  }

  int64_t highest() const { return end; }

private:
  using Ranges = std::map<int64_t, int64_t>; // offset to bytes

  void insert(int64_t offset, int64_t bytes) {
    byOffset[offset] = bytes;
    bySize.insert({bytes, offset});
  }
  Ranges::iterator erase(Ranges::iterator range) {
    bySize.erase({range->second, range->first});
    return byOffset.erase(range);
  }

  Ranges byOffset;
  std::set<std::pair<int64_t, int64_t>> bySize;
  int64_t end = 0;
};

class Packer {
public:
  explicit Packer(const std::vector<MemoryBlock> &blocks)
      : blocks(blocks), lowerBound(findLivePeak(blocks).bytes), byTime(blocks.size()) {
    std::iota(byTime.begin(), byTime.end(), 0);
    llvm::stable_sort(byTime,
                      [&](uint32_t lhs, uint32_t rhs) { return blocks[lhs].alive.first < blocks[rhs].alive.first; });
    for (const MemoryBlock &block : blocks) {
      always.first = std::min(always.first, block.alive.first);
      always.last = std::max(always.last, block.alive.last);
    }
  }

  Placement pack() {
    keep(placeAsHeap());
    work -= countOverlaps();
    if (isDone())
      return best;
    collectOverlaps();
    tryOrders();
    improve();
    return best;
  }

  int64_t bound() const { return lowerBound; }

private:
  bool isDone() const { return best.bytes == lowerBound || work < 0; }

  void keep(const Placement &placement) {
    if (placement.bytes < best.bytes)
      best = placement;
  }

  /// Each block where a heap would put it.
  Placement placeAsHeap() const {
    Placement result;
    result.offsets.resize(blocks.size());
    Heap heap;
    std::set<std::pair<int64_t, uint32_t>> ends;
    for (uint32_t index : byTime) {
      const MemoryBlock &block = blocks[index];
      for (; !ends.empty() && ends.begin()->first < block.alive.first; ends.erase(ends.begin())) {
        uint32_t over = ends.begin()->second;
        heap.release(result.offsets[over], blocks[over].bytes);
      }
      result.offsets[index] = heap.allocate(block.bytes);
      ends.insert({block.alive.last, index});
    }
    result.bytes = heap.highest();
    return result;
  }

  /// Pairs of blocks alive together.
  int64_t countOverlaps() const {
    std::vector<int64_t> ends;
    for (const MemoryBlock &block : blocks)
      ends.push_back(block.alive.last);
    llvm::sort(ends);
    int64_t pairs = 0;
    size_t over = 0;
    for (size_t begun = 0; begun < byTime.size(); ++begun) {
      while (ends[over] < blocks[byTime[begun]].alive.first)
        ++over;
      pairs += static_cast<int64_t>(begun - over);
    }
    return pairs;
  }

  void collectOverlaps() {
    together.resize(blocks.size());
    std::vector<uint32_t> live;
    for (uint32_t index : byTime) {
      llvm::erase_if(live, [&](uint32_t other) { return blocks[other].alive.last < blocks[index].alive.first; });
      for (uint32_t other : live) {
        together[other].push_back(index);
        together[index].push_back(other);
      }
      live.push_back(index);
    }
  }

  /// Each block in a gap between those that were placed before it and are alive together with it, or above them.
  Placement place(const Order &order, Fit fit) {
    constexpr int64_t kNowhere = -1;
    Placement result;
    result.offsets.assign(blocks.size(), kNowhere);
    result.bytes = 0;
    std::vector<Taken> taken;
    for (uint32_t index : order) {
      work -= static_cast<int64_t>(together[index].size()) + 4;
      taken.clear();
      for (uint32_t other : together[index])
        if (int64_t offset = result.offsets[other]; offset != kNowhere)
          taken.push_back({offset, offset + blocks[other].bytes, &blocks[other].alive});
      llvm::sort(taken, [](const Taken &lhs, const Taken &rhs) {
        return std::tie(lhs.from, lhs.to) < std::tie(rhs.from, rhs.to);
      });
      int64_t offset = choose(taken, blocks[index], fit);
      result.offsets[index] = offset;
      result.bytes = std::max(result.bytes, offset + blocks[index].bytes);
    }
    return result;
  }

  /// Memory that is not free while a block is alive.
  struct Taken {
    int64_t from, to;
    const Interval *alive;
  };

  /// An offset for `block` beside `taken`, which is sorted and may overlap.
  int64_t choose(llvm::ArrayRef<Taken> taken, const MemoryBlock &block, Fit fit) const {
    const Interval *below = &always, *chosenBelow = nullptr, *chosenAbove = nullptr;
    int64_t end = 0, chosen = -1, chosenGap = std::numeric_limits<int64_t>::max();
    auto consider = [&](int64_t to, const Interval *above) {
      int64_t gap = to - end;
      if (gap < block.bytes || gap >= chosenGap)
        return;
      chosen = end;
      chosenGap = gap;
      chosenBelow = below;
      chosenAbove = above;
    };
    for (const Taken &range : taken) {
      consider(range.from, range.alive);
      if (fit == Fit::Lowest && chosen >= 0)
        return chosen;
      if (range.to > end) {
        end = range.to;
        below = range.alive;
      }
    }
    if (fit == Fit::BothEnds || fit == Fit::Nested)
      consider(lowerBound, &always);
    if (chosen < 0)
      return end;
    bool atEnd = fit == Fit::Nested ? looseness(*chosenAbove, block.alive) < looseness(*chosenBelow, block.alive)
                                    : fit == Fit::BothEnds && chosenAbove == &always && chosenBelow != &always;
    return atEnd ? chosen + chosenGap - block.bytes : chosen;
  }

  /// How much longer `outer` is alive than `inner`; very much where it does not contain it.
  static int64_t looseness(const Interval &outer, const Interval &inner) {
    if (outer.first > inner.first || outer.last < inner.last)
      return std::numeric_limits<int64_t>::max();
    return (inner.first - outer.first) + (outer.last - inner.last);
  }

  void tryOrders() {
    auto length = [&](uint32_t index) {
      return static_cast<double>(blocks[index].alive.last - blocks[index].alive.first + 1);
    };
    auto size = [&](uint32_t index) { return static_cast<double>(blocks[index].bytes); };
    auto area = [&](uint32_t index) { return size(index) * length(index); };
    auto earliest = [](uint32_t) { return 0.0; };
    for (llvm::function_ref<double(uint32_t)> weight :
         {llvm::function_ref<double(uint32_t)>(size), llvm::function_ref<double(uint32_t)>(area),
          llvm::function_ref<double(uint32_t)>(length), llvm::function_ref<double(uint32_t)>(earliest)}) {
      Order order = byTime;
      llvm::stable_sort(order, [&](uint32_t lhs, uint32_t rhs) { return weight(lhs) > weight(rhs); });
      for (Fit fit : {Fit::Lowest, Fit::Smallest, Fit::BothEnds, Fit::Nested}) {
        attempts.push_back({order, fit, place(order, fit)});
        keep(attempts.back().placement);
        if (isDone())
          return;
      }
    }
  }

  /// Improves the best few attempts.
  void improve() {
    llvm::stable_sort(attempts,
                      [](const Attempt &lhs, const Attempt &rhs) { return lhs.placement.bytes < rhs.placement.bytes; });
    std::mt19937 random(1); // a fixed sequence: the same on every machine
    for (Attempt &attempt : llvm::MutableArrayRef(attempts).take_front(kImproved))
      improve(attempt, random);
  }

  /// Some of the blocks that end above the bound are placed earlier, as long as that is no worse.
  void improve(Attempt &attempt, std::mt19937 &random) {
    for (int failures = 0; failures < kPatience && !isDone(); ++failures) {
      Attempt next{{}, attempt.fit, {}};
      std::vector<std::pair<size_t, uint32_t>> moved; // new position
      for (auto [position, index] : llvm::enumerate(attempt.order))
        if (attempt.placement.offsets[index] + blocks[index].bytes > lowerBound && random() % 2 == 0)
          moved.emplace_back(random() % (position + 1), index);
        else
          next.order.push_back(index);
      llvm::stable_sort(moved, [](const auto &lhs, const auto &rhs) { return lhs.first < rhs.first; });
      for (auto [position, index] : moved)
        next.order.insert(next.order.begin() + static_cast<int64_t>(std::min(position, next.order.size())), index);
      next.placement = place(next.order, next.fit);
      if (next.placement.bytes > attempt.placement.bytes)
        continue;
      if (next.placement.bytes < attempt.placement.bytes)
        failures = 0;
      attempt = std::move(next);
      keep(attempt.placement);
    }
  }

  const std::vector<MemoryBlock> &blocks;
  int64_t lowerBound;
  Interval always;
  int64_t work = kWork;
  Order byTime;
  Placement best;
  std::vector<Attempt> attempts;
  std::vector<std::vector<uint32_t>> together;
};

} // namespace

PackedArena bowline::packArena(std::vector<MemoryBlock> &blocks) {
  Packer packer(blocks);
  Placement placement = packer.pack();
  for (auto [block, offset] : llvm::zip_equal(blocks, placement.offsets))
    block.offset = offset;
  return {blocks.empty() ? 0 : placement.bytes, packer.bound()};
}
