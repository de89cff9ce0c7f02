//===- Gpt2.cpp - The graph of GPT-2
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Radford et al., 2019. Projections are stored as [in, out] and have biases; query, key and value are one projection.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/ModelBuilder.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

static Value layerNorm(ModelBuilder &b, const ModelConfig &config, Value x, const Twine &symbol) {
  std::string name = symbol.str();
  Value scale = b.read(name + ".scale"), bias = b.read(name + ".bias");
  return graph::LayerNormOp::create(b.ops(), x, scale, bias, APFloat(config.normEpsilon));
}

static Value activate(ModelBuilder &b, const ModelConfig &config, Value x) {
  auto kind = config.activation == Activation::GeluErf ? graph::GeluKind::Erf : graph::GeluKind::Tanh;
  return graph::GeluOp::create(b.ops(), x.getType(), kind, x);
}

namespace {

/// One block; `symbols` and `modules` are its prefixes in the graph and in the Hugging Face model.
class Gpt2Layer {
public:
  Gpt2Layer(ModelBuilder &b, const ModelConfig &config, int64_t index)
      : b(b), config(config), symbols("layers." + std::to_string(index) + "."),
        modules("transformer.h." + std::to_string(index) + ".") {}

  Value build(Value hidden) {
    b.at(modules + "ln_1");
    Value attended = attention(layerNorm(b, config, hidden, symbols + "attn_norm"));
    b.at(modules + "attn");
    hidden = b.add(hidden, attended);
    b.at(modules + "ln_2");
    Value updated = feedForward(layerNorm(b, config, hidden, symbols + "mlp_norm"));
    b.at(modules + "mlp");
    return b.add(hidden, updated);
  }

private:
  Value project(Value x, StringRef module, StringRef weight, StringRef bias) {
    b.at(modules + module);
    Value product = b.linearTransposed(x, b.read(symbols + weight));
    return b.addBias(product, b.read(symbols + bias));
  }

  Value attention(Value x) {
    Value qkv = project(x, "attn.c_attn", "attn.wqkv", "attn.bqkv");
    auto part = [&](int64_t index) {
      return b.splitHeads(b.columns(qkv, index * config.hidden, config.hidden), config.heads);
    };
    Value query = part(0), key = part(1), value = part(2);
    b.at(modules + "attn");
    Value attended = b.mergeHeads(b.causalAttention(query, key, value));
    return project(attended, "attn.c_proj", "attn.wo", "attn.bo");
  }

  Value feedForward(Value x) {
    Value up = project(x, "mlp.c_fc", "mlp.w_up", "mlp.b_up");
    b.at(modules + "mlp.act");
    return project(activate(b, config, up), "mlp.c_proj", "mlp.w_down", "mlp.b_down");
  }

  ModelBuilder &b;
  const ModelConfig &config;
  std::string symbols, modules;
};

} // namespace

Value hf::buildGpt2Layers(ModelBuilder &b, const ModelConfig &config, Value tokens) {
  b.at("transformer.wte");
  Value hidden = graph::GatherOp::create(b.ops(), b.read("embed"), tokens);
  b.at("transformer.wpe");
  RankedTensorType type = b.typeOf(hidden);
  Value positions = graph::SliceOp::create(b.ops(), b.read("positions"), ArrayRef<int64_t>{0, 0},
                                           ArrayRef<int64_t>{type.getDimSize(1), config.hidden});
  hidden = b.add(hidden, graph::BroadcastOp::create(b.ops(), type, positions, ArrayRef<int64_t>{1, 2}));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    hidden = Gpt2Layer(b, config, layer).build(hidden);
  return hidden;
}

Value hf::buildGpt2FinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) {
  b.at("transformer.ln_f");
  return layerNorm(b, config, hidden, "norm");
}
