//===- Mistral.cpp - Mistral
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Jiang et al., 2023: Llama whose queries see the last keys alone (Beltagy et al., 2020), that of their own position
// among them. Attention reads
//
//   layers.N.attn.wq [H Dh, D], wk, wv [K Dh, D]
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryDecoder.h"

#include <algorithm>

using namespace bowline;
using namespace bowline::hf;

namespace {

class Mistral : public RotaryDecoder {
public:
  /// A \p window of 0 is none.
  explicit Mistral(int64_t window) : window(window) {}

  /// The window of a shorter sequence hides keys too.
  std::shared_ptr<const Architecture> shortened(int64_t from, int64_t to) const override {
    if (window == 0 || window >= from || window < to)
      return nullptr;
    return std::make_shared<Mistral>(std::max<int64_t>(1, to / 2));
  }

private:
  void declareAttention(const ModelConfig &config, ParameterList &parameters) const override {
    for (char which : {'q', 'k', 'v'})
      declareProjection(config, parameters, which);
  }

  Value buildAttention(DecoderLayer &layer, Value x) const override {
    Value query = layer.splitHeads(layer.project(x, 'q'));
    Value key = layer.splitHeads(layer.project(x, 'k'));
    Value value = layer.splitHeads(layer.project(x, 'v'));
    return layer.attend(query, key, value, window);
  }

  int64_t window;
};

} // namespace

/// Null is no window, as in files since version 0.3; an absent key is the window of the first version.
static int64_t readWindow(ConfigReader &reader) {
  constexpr int64_t kDefaultWindow = 4096;
  return reader.positiveIntegerOrNull("sliding_window", kMaxPositions, kDefaultWindow);
}

static std::shared_ptr<const Architecture> read(ConfigReader &reader, ModelConfig &config) {
  readRotaryDecoder(reader, config, {.kvHeads = 8});
  return std::make_shared<Mistral>(readWindow(reader));
}

namespace bowline::hf {
const Family &familyMistral() {
  static const Family family = {
      .name = "mistral",
      .modelClass = "MistralForCausalLM",
      .fixedKeys = rotaryDecoderFixedKeys({{"attention_bias", {"false"}}}),
      .dropoutKeys = rotaryDecoderDropoutKeys(),
      .read = read,
  };
  return family;
}
} // namespace bowline::hf
