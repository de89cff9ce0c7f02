//===- ModelConfig.h - Keys and values of config.json of a Hugging Face directory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_MODELCONFIG_H
#define BOWLINE_FRONTENDS_HF_MODELCONFIG_H

#include "absl/strings/string_view.h"
#include "frontends/hf/ConfigReader.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bowline::hf {

class Architecture;
struct Family;

/// How frequencies of rotary positions are lower than those of theta (#graph.rope_scaling).
struct RopeScaling {
  double factor = 1;    // divides frequencies; 1: none are scaled
  int64_t original = 0; // positions before scaling, in which turns are counted; 0: all are divided
  double lowTurns = 0, highTurns = 0;

  bool operator==(const RopeScaling &other) const {
    return factor == other.factor && original == other.original && lowTurns == other.lowTurns &&
           highTurns == other.highTurns;
  }
};

/// A supported model: the sizes that every family has, and the family's own part. All sizes are positive and small
/// enough that no product of two of them overflows; heads divide as they must. Sizes may be set to others that keep
/// this.
struct ModelConfig {
  const Family *family = nullptr; // never null after parseConfig

  int64_t vocabulary = 0;      // V
  int64_t hidden = 0;          // D
  int64_t layers = 0;          // L
  int64_t heads = 0;           // H, heads of queries
  int64_t kvHeads = 0;         // K, heads of keys and values; divides H, and is H where heads are not grouped
  int64_t headDim = 0;         // Dh; even where positions are rotary, D / H where they are not
  int64_t intermediate = 0;    // F, width of the feed-forward part
  int64_t maxPositions = 0;    // longest sequence, within which no window hides a key that the graph shows
  double normEpsilon = 0;      // epsilon of RMSNorm or LayerNorm
  double ropeTheta = 0;        // 0 where positions are not rotary
  RopeScaling ropeScaling;     // of the frequencies of theta
  double initializerRange = 0; // standard deviation of initial weights
  bool tiedEmbeddings = false; // the output projection is the token embedding

  /// The model's computation, with the values that the family alone knows. Never null after parseConfig.
  std::shared_ptr<const Architecture> architecture;

  /// The keys of config.json that decide the computation: weights whose config.json has another value are of another
  /// model. Other keys are bounds, initial values, rates, bookkeeping.
  std::map<std::string, FunctionKey> functionKeys;

  /// Where config.json says `maxPositions`, for messages.
  std::string positionsSource = "as config.json says";

  /// One sentence per value that was read and does not take effect, for the user to see (dropout rates).
  std::vector<std::string> remarks;
};

/// Reads the text of a config.json. `fileName` stands in messages.
///
/// Every key is either used, checked against the only values whose mathematics is implemented, or on an explicit list
/// of keys that do not change the mathematics, of all families (ConfigKeys.cpp, with reasons) or of one (its own file);
/// anything else is refused. Errors are kInvalidArgument and name file, key, value and the supported values.
absl::StatusOr<ModelConfig> parseConfig(absl::string_view text, absl::string_view fileName);

/// Reads `directory`/config.json, or the same keys of a GGUF file (runtime/base/gguf_model.h).
absl::StatusOr<ModelConfig> readConfig(const std::string &directory);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_MODELCONFIG_H
