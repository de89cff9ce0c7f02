//===- Qwen2.cpp - Qwen2
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Yang et al., 2024: Llama with biases of queries, keys and values, for which there is no key. Attention reads
//
//   layers.N.attn.wq [H Dh, D], wk, wv [K Dh, D], bq [H Dh], bk, bv [K Dh]
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryDecoder.h"

using namespace bowline;
using namespace bowline::hf;

namespace {

class Qwen2 : public RotaryDecoder {
  void declareAttention(const ModelConfig &config, ParameterList &parameters) const override {
    for (char which : {'q', 'k', 'v'}) {
      declareProjection(config, parameters, which);
      declareProjectionBias(config, parameters, which);
    }
  }

  Value buildAttention(DecoderLayer &layer, Value x) const override {
    auto headsOf = [&](char which) {
      return layer.splitHeads(layer.addProjectionBias(layer.project(x, which), which));
    };
    Value query = headsOf('q'), key = headsOf('k'), value = headsOf('v');
    return layer.attend(query, key, value);
  }
};

} // namespace

static std::shared_ptr<const Architecture> read(ConfigReader &reader, ModelConfig &config) {
  readRotaryDecoder(reader, config);
  requireNoWindow(reader, config);
  return std::make_shared<Qwen2>();
}

namespace bowline::hf {
const Family &familyQwen2() {
  static const Family family = {
      .name = "qwen2",
      .modelClass = "Qwen2ForCausalLM",
      .fixedKeys = rotaryDecoderFixedKeys({{"attention_bias", {"true"}}, {"use_mrope", {"false"}}}),
      .dropoutKeys = rotaryDecoderDropoutKeys(),
      .read = read,
  };
  return family;
}
} // namespace bowline::hf
