//===- ModelConfig.h - What config.json of a Hugging Face directory says
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_MODELCONFIG_H
#define BOWLINE_FRONTENDS_HF_MODELCONFIG_H

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline::hf {

enum class Family { Llama, Qwen2, Gpt2 };

/// The `model_type` of a family: "llama", "qwen2", "gpt2".
absl::string_view nameOf(Family family);

enum class Activation { Silu, GeluErf, GeluTanh };

/// Everything that the mathematics of a supported model depends on. All sizes are positive and small enough that no
/// product of two of them overflows; heads divide as they must.
struct ModelConfig {
  Family family = Family::Llama;

  int64_t vocabulary = 0;      // V
  int64_t hidden = 0;          // D
  int64_t layers = 0;          // L
  int64_t heads = 0;           // H, of queries
  int64_t kvHeads = 0;         // K, of keys and values; divides H. GPT-2: H
  int64_t headDim = 0;         // Dh; even where positions are rotary. GPT-2: D / H
  int64_t intermediate = 0;    // F, width of the feed-forward part
  int64_t maxPositions = 0;    // longest sequence
  double normEpsilon = 0;      // of RMSNorm or LayerNorm
  double ropeTheta = 0;        // Llama, Qwen2
  double initializerRange = 0; // standard deviation of initial weights
  Activation activation = Activation::Silu;
  bool qkvBias = false;        // Qwen2
  bool tiedEmbeddings = false; // the output projection is the token embedding

  /// One sentence per value that was read and does not take effect, for the user to see (dropout rates).
  std::vector<std::string> remarks;
};

/// Reads the text of a config.json. `fileName` stands in messages.
///
/// Every key is either used, checked against the only values whose mathematics is implemented, or on an explicit list
/// of keys that do not change the mathematics (ConfigKeys.cpp, with reasons); anything else is refused. Errors are
/// kInvalidArgument and name file, key, value and the supported values.
absl::StatusOr<ModelConfig> parseConfig(absl::string_view text, absl::string_view fileName);

/// Reads `directory`/config.json.
absl::StatusOr<ModelConfig> readConfig(const std::string &directory);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_MODELCONFIG_H
