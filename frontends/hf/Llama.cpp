//===- Llama.cpp - The graphs of Llama and Qwen2
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Touvron et al., 2023, with the grouped heads of Ainslie et al., 2023. Qwen2 adds biases to queries, keys and values.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/ModelBuilder.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

namespace {

struct RopeTables {
  Value cosine, sine;
};

/// One decoder layer; `symbols` and `modules` are its prefixes in the graph and in the Hugging Face model.
class LlamaLayer {
public:
  LlamaLayer(ModelBuilder &b, const ModelConfig &config, RopeTables rope, int64_t index)
      : b(b), config(config), rope(rope), symbols("layers." + std::to_string(index) + "."),
        modules("model.layers." + std::to_string(index) + ".") {}

  Value build(Value hidden) {
    Value attended = attention(norm(hidden, "attn_norm", "input_layernorm"));
    b.at(modules + "self_attn");
    hidden = b.add(hidden, attended);
    Value updated = feedForward(norm(hidden, "mlp_norm", "post_attention_layernorm"));
    b.at(modules + "mlp");
    return b.add(hidden, updated);
  }

private:
  Value norm(Value x, StringRef symbol, StringRef module) {
    b.at(modules + module);
    return graph::RmsNormOp::create(b.ops(), x, b.read(symbols + symbol), APFloat(config.normEpsilon));
  }

  /// `which` is q, k or v.
  Value headsOf(Value x, char which, int64_t heads) {
    b.at(Twine(modules) + "self_attn." + Twine(which) + "_proj");
    Value y = b.linear(x, b.read(Twine(symbols) + "attn.w" + Twine(which)));
    if (config.qkvBias)
      y = b.addBias(y, b.read(Twine(symbols) + "attn.b" + Twine(which)));
    return b.splitHeads(y, heads);
  }

  Value rotate(Value x) { return graph::RopeOp::create(b.ops(), x, rope.cosine, rope.sine); }

  Value attention(Value x) {
    Value query = headsOf(x, 'q', config.heads);
    Value key = headsOf(x, 'k', config.kvHeads);
    Value value = headsOf(x, 'v', config.kvHeads);
    b.at(modules + "self_attn");
    query = rotate(query);
    key = rotate(key);
    Value attended = b.mergeHeads(b.causalAttention(query, key, value));
    b.at(modules + "self_attn.o_proj");
    return b.linear(attended, b.read(symbols + "attn.wo"));
  }

  Value feedForward(Value x) {
    b.at(modules + "mlp.gate_proj");
    Value gate = b.linear(x, b.read(symbols + "mlp.w_gate"));
    b.at(modules + "mlp.up_proj");
    Value up = b.linear(x, b.read(symbols + "mlp.w_up"));
    b.at(modules + "mlp.act_fn");
    Value gated = b.multiply(graph::SiluOp::create(b.ops(), gate.getType(), gate), up);
    b.at(modules + "mlp.down_proj");
    return b.linear(gated, b.read(symbols + "mlp.w_down"));
  }

  ModelBuilder &b;
  const ModelConfig &config;
  RopeTables rope;
  std::string symbols, modules;
};

} // namespace

static RopeTables buildRopeTables(ModelBuilder &b, const ModelConfig &config, int64_t length) {
  b.at("model.rotary_emb");
  Value positions = graph::IotaOp::create(b.ops(), b.i32({length}), 0);
  RankedTensorType table = b.f32({length, config.headDim / 2});
  auto angles = graph::RopeAnglesOp::create(b.ops(), table, table, positions, APFloat(config.ropeTheta));
  return {angles.getCosine(), angles.getSine()};
}

Value hf::buildLlamaLayers(ModelBuilder &b, const ModelConfig &config, Value tokens) {
  b.at("model.embed_tokens");
  Value hidden = graph::GatherOp::create(b.ops(), b.read("embed"), tokens);
  RopeTables rope = buildRopeTables(b, config, b.typeOf(tokens).getDimSize(1));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    hidden = LlamaLayer(b, config, rope, layer).build(hidden);
  return hidden;
}

Value hf::buildLlamaFinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) {
  b.at("model.norm");
  return graph::RmsNormOp::create(b.ops(), hidden, b.read("norm"), APFloat(config.normEpsilon));
}
