//===- Gpt2.cpp - GPT-2
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Radford et al., 2019. Projections are stored as [in, out] and have biases; query, key and value are one projection.
//
//   symbol                            shape             key in safetensors, after "transformer."
//   embed, positions                  [V, D], [P, D]    wte.weight, wpe.weight
//   layers.N.attn_norm.{scale,bias}   [D]               h.N.ln_1.{weight,bias}
//   layers.N.attn.wqkv, bqkv          [D, 3 D], [3 D]   h.N.attn.c_attn.{weight,bias}
//   layers.N.attn.wo, bo              [D, D], [D]       h.N.attn.c_proj.{weight,bias}
//   layers.N.mlp_norm.{scale,bias}    [D]               h.N.ln_2.{weight,bias}
//   layers.N.mlp.w_up, b_up           [D, F], [F]       h.N.mlp.c_fc.{weight,bias}
//   layers.N.mlp.w_down, b_down       [F, D], [D]       h.N.mlp.c_proj.{weight,bias}
//   norm.{scale,bias}                 [D]               ln_f.{weight,bias}
//   head, if not tied                 [V, D]            lm_head.weight, without the prefix
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/ModelBuilder.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <iterator>

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

static Value layerNorm(ModelBuilder &b, const ModelConfig &config, Value x, const Twine &symbol) {
  std::string name = symbol.str();
  Value scale = b.read(name + ".scale"), bias = b.read(name + ".bias");
  return graph::LayerNormOp::create(b.ops(), x, scale, bias, APFloat(config.normEpsilon));
}

namespace {

/// One block; `symbols` and `modules` are its prefixes in the graph and in the Hugging Face model.
class Gpt2Layer {
public:
  Gpt2Layer(ModelBuilder &b, const ModelConfig &config, graph::GeluKind activation, int64_t index)
      : b(b), config(config), activation(activation), symbols("layers." + std::to_string(index) + "."),
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
    Value activated = graph::GeluOp::create(b.ops(), up.getType(), activation, up);
    return project(activated, "mlp.c_proj", "mlp.w_down", "mlp.b_down");
  }

  ModelBuilder &b;
  const ModelConfig &config;
  graph::GeluKind activation;
  std::string symbols, modules;
};

class Gpt2 : public Architecture {
public:
  explicit Gpt2(graph::GeluKind activation) : activation(activation) {}

  void declareParameters(const ModelConfig &config, ParameterList &parameters) const override;
  Value buildLayers(ModelBuilder &b, const ModelConfig &config, Value tokens) const override;
  Value buildFinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) const override;
  std::set<std::string> ignoredTensors(const ModelConfig &config) const override;

private:
  graph::GeluKind activation;
};

} // namespace

Value Gpt2::buildLayers(ModelBuilder &b, const ModelConfig &config, Value tokens) const {
  b.at("transformer.wte");
  Value hidden = b.embed(tokens);
  b.at("transformer.wpe");
  RankedTensorType type = b.typeOf(hidden);
  int64_t length = type.getDimSize(1);
  // Positions from 0 on are the first rows, which have a simpler derivative than rows by number.
  Value positions = b.serves() ? b.rows("positions", b.positions(length))
                               : graph::SliceOp::create(b.ops(), b.read("positions"), ArrayRef<int64_t>{0, 0},
                                                        ArrayRef<int64_t>{length, config.hidden});
  hidden = b.add(hidden, graph::BroadcastOp::create(b.ops(), type, positions, ArrayRef<int64_t>{1, 2}));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    hidden = Gpt2Layer(b, config, activation, layer).build(hidden);
  return hidden;
}

Value Gpt2::buildFinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) const {
  b.at("transformer.ln_f");
  return layerNorm(b, config, hidden, "norm");
}

void Gpt2::declareParameters(const ModelConfig &c, ParameterList &parameters) const {
  const double stddev = c.initializerRange;
  // Projections into the residual stream start smaller, by the number of additions to it (Radford et al., 2019, 2.3).
  const double residualStddev = stddev / std::sqrt(2.0 * static_cast<double>(c.layers));
  const Role none = {Role::Kind::None}, column = {Role::Kind::Column}, row = {Role::Kind::Row},
             vocabulary = {Role::Kind::Vocabulary}, fused = {Role::Kind::Fused, {c.hidden, c.hidden, c.hidden}};
  parameters.normal(vocabulary, "embed", "transformer.wte.weight", {c.vocabulary, c.hidden}, stddev);
  parameters.normal(none, "positions", "transformer.wpe.weight", {c.maxPositions, c.hidden}, stddev);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    parameters.enterLayer(layer, "transformer.h.");
    parameters.fill(none, "attn_norm.scale", "ln_1.weight", c.hidden, 1);
    parameters.fill(none, "attn_norm.bias", "ln_1.bias", c.hidden, 0);
    parameters.normalTransposed(fused, "attn.wqkv", "attn.c_attn.weight", {c.hidden, 3 * c.hidden}, stddev);
    parameters.fill(fused, "attn.bqkv", "attn.c_attn.bias", 3 * c.hidden, 0);
    parameters.normalTransposed(row, "attn.wo", "attn.c_proj.weight", {c.hidden, c.hidden}, residualStddev);
    parameters.fill(none, "attn.bo", "attn.c_proj.bias", c.hidden, 0);
    parameters.fill(none, "mlp_norm.scale", "ln_2.weight", c.hidden, 1);
    parameters.fill(none, "mlp_norm.bias", "ln_2.bias", c.hidden, 0);
    parameters.normalTransposed(column, "mlp.w_up", "mlp.c_fc.weight", {c.hidden, c.intermediate}, stddev);
    parameters.fill(column, "mlp.b_up", "mlp.c_fc.bias", c.intermediate, 0);
    parameters.normalTransposed(row, "mlp.w_down", "mlp.c_proj.weight", {c.intermediate, c.hidden}, residualStddev);
    parameters.fill(none, "mlp.b_down", "mlp.c_proj.bias", c.hidden, 0);
  }
  parameters.leaveLayers();
  parameters.fill(none, "norm.scale", "transformer.ln_f.weight", c.hidden, 1);
  parameters.fill(none, "norm.bias", "transformer.ln_f.bias", c.hidden, 0);
  if (!c.tiedEmbeddings)
    parameters.normal(vocabulary, "head", "lm_head.weight", {c.vocabulary, c.hidden}, stddev);
}

std::set<std::string> Gpt2::ignoredTensors(const ModelConfig &config) const {
  std::set<std::string> names;
  // The causal mask and the number that it puts in place of a score.
  for (int64_t layer = 0; layer < config.layers; ++layer)
    for (absl::string_view prefix : {"transformer.", ""})
      for (absl::string_view buffer : {"bias", "masked_bias"})
        names.insert(absl::StrCat(prefix, "h.", layer, ".attn.", buffer));
  return names;
}

static std::shared_ptr<const Architecture> read(ConfigReader &reader, ModelConfig &config) {
  config.vocabulary = reader.positiveInteger("vocab_size", kMaxVocabulary);
  config.hidden = reader.positiveInteger("n_embd", kMaxWidth / 4);
  config.layers = reader.positiveInteger("n_layer", kMaxLayers);
  config.heads = config.kvHeads = reader.positiveInteger("n_head", kMaxHeads);
  config.intermediate = reader.positiveIntegerOr("n_inner", kMaxWidth, 4 * config.hidden);
  config.maxPositions = reader.positiveInteger("n_positions", kMaxPositions);
  config.normEpsilon = reader.positiveNumberOr("layer_norm_epsilon", 1e-5);
  config.initializerRange = reader.nonNegativeNumberOr("initializer_range", 0.02);
  reader.isNoPartOfFunction("initializer_range");
  config.tiedEmbeddings = reader.booleanOr("tie_word_embeddings", true);

  static constexpr absl::string_view kNames[] = {"gelu_new", "gelu_pytorch_tanh", "gelu"};
  static constexpr graph::GeluKind kKinds[] = {graph::GeluKind::Tanh, graph::GeluKind::Tanh, graph::GeluKind::Erf};
  static_assert(std::size(kNames) == std::size(kKinds));
  graph::GeluKind activation = kKinds[reader.choiceOr("activation_function", kNames, 0)];

  if (config.hidden % config.heads != 0)
    reader.fail("n_head", absl::StrCat("does not divide \"n_embd\" = ", config.hidden, "; use a divisor of it"));
  else
    config.headDim = config.hidden / config.heads;
  // An old name of n_positions.
  if (reader.positiveIntegerOr("n_ctx", kMaxPositions, config.maxPositions) != config.maxPositions)
    reader.fail("n_ctx", absl::StrCat("contradicts \"n_positions\" = ", config.maxPositions, "; make them equal"));
  return std::make_shared<Gpt2>(activation);
}

namespace bowline::hf {
const Family &familyGpt2() {
  static const Family family = {
      .name = "gpt2",
      .modelClass = "GPT2LMHeadModel",
      .fixedKeys = {{"scale_attn_weights", {"true"}},
                    {"scale_attn_by_inverse_layer_idx", {"false"}},
                    {"n_special", {"0"}}},
      .dropoutKeys = {"attn_pdrop", "embd_pdrop", "resid_pdrop"},
      // The key is about the tokens that n_special counts, of which there are none.
      .harmlessKeys = {"predict_special_tokens"},
      .read = read,
  };
  return family;
}
} // namespace bowline::hf
