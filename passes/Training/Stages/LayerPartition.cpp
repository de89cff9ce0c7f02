//===- LayerPartition.cpp - Consecutive layers of equal cost
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Stages/LayerPartition.h"

#include <algorithm>
#include <limits>

using namespace bowline;

namespace {

/// Costs of consecutive layers.
class Costs {
public:
  explicit Costs(llvm::ArrayRef<double> costs) : upTo(costs.size() + 1, 0) {
    for (size_t layer = 0; layer < costs.size(); ++layer)
      upTo[layer + 1] = upTo[layer] + costs[layer];
  }
  int64_t layers() const { return static_cast<int64_t>(upTo.size()) - 1; }
  /// The cost of the layers from `begin` up to `end`, which is not among them.
  double between(int64_t begin, int64_t end) const { return upTo[end] - upTo[begin]; }

private:
  std::vector<double> upTo;
};

} // namespace

/// The cost of the most expensive of `stages` ranges, at best.
static double leastMaximum(const Costs &costs, int64_t stages) {
  const int64_t layers = costs.layers();
  std::vector<double> best(layers + 1, 0); // least cost of the stages so far with the first n layers
  for (int64_t n = 0; n <= layers; ++n)
    best[n] = costs.between(0, n);
  for (int64_t stage = 1; stage < stages; ++stage) {
    std::vector<double> next(layers + 1, 0);
    for (int64_t n = stage + 1; n <= layers; ++n) {
      auto costAt = [&](int64_t begin) { return std::max(best[begin], costs.between(begin, n)); };
      // The later this stage begins, the more the stages before it cost and the less this one does. The larger of both
      // is least where they are closest, which bisection finds.
      int64_t low = stage, high = n - 1;
      while (low < high) {
        int64_t middle = (low + high) / 2;
        if (best[middle] >= costs.between(middle, n))
          high = middle;
        else
          low = middle + 1;
      }
      next[n] = low > stage ? std::min(costAt(low - 1), costAt(low)) : costAt(low);
    }
    best = std::move(next);
  }
  return best[layers];
}

std::vector<LayerRange> bowline::partitionLayers(llvm::ArrayRef<double> layerCosts, int64_t stages) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const Costs costs(layerCosts);
  const int64_t layers = costs.layers();
  const double limit = leastMaximum(costs, stages);

  // squares[n]: the least sum of squares of the stages so far, on the first n layers, none above the limit.
  // begins[s][n]: where the last of s + 1 such stages begins.
  std::vector<double> squares(layers + 1, kNever);
  squares[0] = 0;
  std::vector<std::vector<int64_t>> begins(stages, std::vector<int64_t>(layers + 1, 0));
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<double> next(layers + 1, kNever);
    for (int64_t n = stage + 1; n <= layers; ++n)
      for (int64_t begin = stage; begin < n; ++begin) {
        double cost = costs.between(begin, n), sum = squares[begin] + cost * cost;
        if (cost <= limit && sum < next[n]) {
          next[n] = sum;
          begins[stage][n] = begin;
        }
      }
    squares = std::move(next);
  }

  std::vector<LayerRange> ranges(stages);
  int64_t end = layers;
  for (int64_t stage = stages; stage-- > 0;) {
    ranges[stage] = {begins[stage][end], end - 1};
    end = begins[stage][end];
  }
  return ranges;
}
