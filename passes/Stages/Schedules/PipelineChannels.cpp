//===- PipelineChannels.cpp - Which channels a placement needs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PipelineChannels.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <set>
#include <utility>

using namespace bowline;

namespace {

/// The channels of one kind of value. Naming is the colouring of a graph whose vertices are ranks: edges that meet must
/// differ.
class ChannelNames {
public:
  ChannelNames(const Placement &placement, bool gradient)
      : placement(placement), gradient(gradient), farNames(placement.numRanks()) {}

  std::string nameOf(int sender, int receiver) {
    const char *kind = gradient ? "gradient" : "activation";
    const char *parity = sender % 2 == 0 ? "even" : "odd";
    // Gradients go back where activations came from.
    int from = gradient ? receiver : sender, to = gradient ? sender : receiver;
    if (wraps(from, to))
      return absl::StrCat(kind, ".wrap");
    if (to == from + 1)
      return absl::StrCat(kind, ".", parity);
    if (to == from - 1)
      return absl::StrCat(kind, ".up.", parity);
    return absl::StrCat(kind, ".far.", takeFarName(sender, receiver));
  }

private:
  /// Two ranks are neighbours both ways: whether the way back closes a circle is a question of the placement.
  bool wraps(int from, int to) const {
    int ranks = placement.numRanks();
    return from == ranks - 1 && to == 0 &&
           (ranks > 2 || placement == Placement::roundRobin(ranks, placement.numChunks()));
  }

  /// The first that neither rank has. A rank meets at most 2 * chunks edges, so that fewer than 4 * chunks are needed.
  int takeFarName(int sender, int receiver) {
    int name = 0;
    while (farNames[sender].count(name) || farNames[receiver].count(name))
      ++name;
    farNames[sender].insert(name);
    farNames[receiver].insert(name);
    return name;
  }

  const Placement &placement;
  bool gradient;
  std::vector<std::set<int>> farNames; // taken, per rank
};

} // namespace

/// Adds the channels of activations or of gradients; returns the channel of each stage that sends.
static std::vector<int> addChannels(const Placement &placement, bool gradient, std::vector<PipelineChannel> &channels) {
  int numStages = placement.numStages();
  std::vector<int> channelOf(numStages, kNoChannel);
  ChannelNames names(placement, gradient);
  std::map<std::pair<int, int>, int> known;
  for (int stage = 0; stage + 1 < numStages; ++stage) {
    // The transfer between the stages `stage` and `stage + 1`.
    int from = gradient ? stage + 1 : stage;
    int sender = placement.rankOf(from), receiver = placement.rankOf(gradient ? stage : stage + 1);
    if (sender == receiver)
      continue;
    auto [found, isNew] = known.try_emplace({sender, receiver}, static_cast<int>(channels.size()));
    if (isNew)
      channels.push_back({names.nameOf(sender, receiver), sender, receiver});
    channelOf[from] = found->second;
  }
  return channelOf;
}

StageChannels bowline::assignChannels(const Placement &placement, bool withGradients) {
  StageChannels result;
  result.activation = addChannels(placement, /*gradient=*/false, result.channels);
  result.gradient.assign(placement.numStages(), kNoChannel);
  if (withGradients)
    result.gradient = addChannels(placement, /*gradient=*/true, result.channels);
  return result;
}
