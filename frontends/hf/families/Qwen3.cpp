//===- Qwen3.cpp - Qwen3
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Yang et al., 2025: Llama with RMS norms of queries and keys, of each head by itself, in front of rotary positions
// (Dehghani et al., 2023, normalise them likewise). Attention reads
//
//   layers.N.attn.wq [H Dh, D], wk, wv [K Dh, D], q_norm, k_norm [Dh]
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryDecoder.h"

using namespace bowline;
using namespace bowline::hf;

namespace {

class Qwen3 : public RotaryDecoder {
  void declareAttention(const ModelConfig &config, ParameterList &parameters) const override {
    const Role none = {Role::Kind::None}; // all heads have the same norm
    declareProjection(config, parameters, 'q');
    parameters.fill(none, "attn.q_norm", "self_attn.q_norm.weight", config.headDim, 1);
    declareProjection(config, parameters, 'k');
    parameters.fill(none, "attn.k_norm", "self_attn.k_norm.weight", config.headDim, 1);
    declareProjection(config, parameters, 'v');
  }

  Value buildAttention(DecoderLayer &layer, Value x) const override {
    Value query = layer.norm(layer.splitHeads(layer.project(x, 'q')), "attn.q_norm", "self_attn.q_norm");
    Value key = layer.norm(layer.splitHeads(layer.project(x, 'k')), "attn.k_norm", "self_attn.k_norm");
    Value value = layer.splitHeads(layer.project(x, 'v'));
    return layer.attend(query, key, value);
  }
};

} // namespace

static std::shared_ptr<const Architecture> read(ConfigReader &reader, ModelConfig &config) {
  readRotaryDecoder(reader, config, {.kvHeads = 32, .headDim = 128});
  requireNoWindow(reader, config);
  return std::make_shared<Qwen3>();
}

namespace bowline::hf {
const Family &familyQwen3() {
  static const Family family = {
      .name = "qwen3",
      .modelClass = "Qwen3ForCausalLM",
      .fixedKeys = rotaryDecoderFixedKeys(
          {{"attention_bias", {"false"}}, {"use_qk_norm", {"true"}}, {"qk_layernorm", {"true"}}}),
      .dropoutKeys = rotaryDecoderDropoutKeys(),
      .read = read,
  };
  return family;
}
} // namespace bowline::hf
