//===- Llama.cpp - Llama
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Touvron et al., 2023, with the grouped heads of Ainslie et al., 2023. Attention reads
//
//   layers.N.attn.wq [H Dh, D], wk, wv [K Dh, D]
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryDecoder.h"

using namespace bowline;
using namespace bowline::hf;

namespace {

class Llama : public RotaryDecoder {
  void declareAttention(const ModelConfig &config, ParameterList &parameters) const override {
    for (char which : {'q', 'k', 'v'})
      declareProjection(config, parameters, which);
  }

  Value buildAttention(DecoderLayer &layer, Value x) const override {
    Value query = layer.splitHeads(layer.project(x, 'q'));
    Value key = layer.splitHeads(layer.project(x, 'k'));
    Value value = layer.splitHeads(layer.project(x, 'v'));
    return layer.attend(query, key, value);
  }
};

} // namespace

static std::shared_ptr<const Architecture> read(ConfigReader &reader, ModelConfig &config) {
  readRotaryDecoder(reader, config);
  requireFullAttention(reader, config);
  readUnsupportedWindow(reader, config);
  return std::make_shared<Llama>();
}

namespace bowline::hf {
const Family &familyLlama() {
  static const Family family = {
      .name = "llama",
      .modelClass = "LlamaForCausalLM",
      .fixedKeys = rotaryDecoderFixedKeys({{"attention_bias", {"false"}}}),
      .dropoutKeys = rotaryDecoderDropoutKeys(),
      .read = read,
  };
  return family;
}
} // namespace bowline::hf
