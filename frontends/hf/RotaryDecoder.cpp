//===- RotaryDecoder.cpp - Parts that families of Llama's kind share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryDecoder.h"
#include "frontends/hf/RotaryPositions.h"

#include "dialects/Graph/GraphOps.h"
#include "runtime/base/json.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

std::vector<FixedKey> hf::rotaryDecoderFixedKeys(std::vector<FixedKey> ofFamily) {
  std::vector<FixedKey> keys = {
      {"mlp_bias", {"false"}},         {"rope_interleaved", {"false"}},      {"partial_rotary_factor", {"1"}},
      {"use_qk_norm", {"false"}},      {"qk_layernorm", {"false"}},          {"attention_multiplier", {"null"}},
      {"embedding_multiplier", {"1"}}, {"residual_multiplier", {"1"}},       {"logits_scaling", {"1"}},
      {"logit_scale", {"1"}},          {"attn_logit_softcapping", {"null"}}, {"final_logit_softcapping", {"null"}},
      {"num_experts", {"null", "0"}},  {"num_local_experts", {"null", "0"}},
  };
  for (FixedKey &own : ofFamily) {
    auto known = llvm::find_if(keys, [&](const FixedKey &key) { return key.key == own.key; });
    if (known == keys.end())
      keys.push_back(std::move(own));
    else
      *known = std::move(own);
  }
  return keys;
}

std::vector<absl::string_view> hf::rotaryDecoderDropoutKeys() {
  return {"attention_dropout", "hidden_dropout", "residual_dropout"};
}

/// The first layer that "layer_types" gives a window; none where all layers see all positions. Windows are refused
/// unless `mayHaveWindows`.
static std::optional<int64_t> firstLayerWithWindow(ConfigReader &reader, const ModelConfig &config,
                                                   bool mayHaveWindows) {
  const json *value = reader.take("layer_types");
  std::optional<int64_t> first;
  if (!value)
    return first;
  if (!value->is_array() || value->size() != static_cast<size_t>(config.layers)) {
    reader.fail("layer_types", absl::StrCat("is no list with one type for each of the ", config.layers, " layers"));
    return first;
  }
  for (size_t i = 0; i < value->size(); ++i) {
    if ((*value)[i] == "full_attention")
      continue;
    if (mayHaveWindows && (*value)[i] == "sliding_attention") {
      first = first.value_or(static_cast<int64_t>(i));
      continue;
    }
    reader.fail("layer_types", absl::StrCat("gives layer ", i, " the type ", (*value)[i].dump().substr(0, 100),
                                            "; layers other than \"full_attention\" are not supported, and another "
                                            "type would be another model"));
    break;
  }
  return first;
}

void hf::requireFullAttention(ConfigReader &reader, const ModelConfig &config) {
  firstLayerWithWindow(reader, config, /*mayHaveWindows=*/false);
}

void hf::requireNoWindow(ConfigReader &reader, ModelConfig &config) {
  // The values that the families' own code takes for absent keys.
  constexpr int64_t kDefaultWindow = 4096, kDefaultFullLayers = 28;
  const bool areTypesGiven = reader.has("layer_types");
  const bool isOn = reader.booleanOr("use_sliding_window", false);
  int64_t window = isOn ? reader.positiveIntegerOrNull("sliding_window", kMaxPositions, kDefaultWindow) : 0;
  int64_t fullLayers = firstLayerWithWindow(reader, config, /*mayHaveWindows=*/window > 0).value_or(config.layers);
  if (isOn && !areTypesGiven)
    fullLayers = reader.nonNegativeIntegerOr("max_window_layers", kMaxLayers, kDefaultFullLayers);
  // These keys say nothing where no layer has a window, and elsewhere the model is refused.
  for (absl::string_view key : {"sliding_window", "max_window_layers"}) {
    reader.ignore(key);
    reader.isNoPartOfFunction(key);
  }
  if (!isOn)
    return;
  if (window == 0 || window >= config.maxPositions || fullLayers >= config.layers)
    config.remarks.push_back(absl::StrCat(reader.place(), ": \"use_sliding_window\" = true has no effect: no layer of ",
                                          config.layers, " has a window that hides one of ", config.maxPositions,
                                          " positions"));
  else
    limitToWindow(reader, config, window, fullLayers);
}

void hf::limitToWindow(const ConfigReader &reader, ModelConfig &config, int64_t window, int64_t fullLayers) {
  config.remarks.push_back(
      absl::StrCat(reader.place(), ": layers from ", fullLayers, " on see the last ", window,
                   " keys alone, which is not supported and changes nothing in sequences of up to ", window,
                   " positions; the model is taken with so many instead of ", config.maxPositions));
  config.maxPositions = window;
  config.positionsSource = "in which the window of its layers hides none; windows are not supported";
}

void hf::readUnsupportedWindow(ConfigReader &reader, ModelConfig &config) {
  const int64_t window = reader.positiveIntegerOrNull("sliding_window", kMaxPositions, 0);
  reader.isNoPartOfFunction("sliding_window");
  if (window == 0)
    return;
  if (window < config.maxPositions)
    limitToWindow(reader, config, window, /*fullLayers=*/0);
  else
    config.remarks.push_back(absl::StrCat(reader.place(), ": \"sliding_window\" = ", window,
                                          " has no effect: it hides none of ", config.maxPositions, " positions"));
}

static void readHeads(ConfigReader &reader, ModelConfig &config, AbsentSizes absent) {
  config.heads = reader.positiveInteger("num_attention_heads", kMaxHeads);
  bool isDefault = absent.kvHeads > 0 && !reader.isNull("num_key_value_heads");
  config.kvHeads =
      reader.positiveIntegerOr("num_key_value_heads", kMaxHeads, isDefault ? absent.kvHeads : config.heads);
  if (reader.has("head_dim") || (absent.headDim > 0 && !reader.isNull("head_dim")))
    config.headDim = reader.positiveIntegerOr("head_dim", kMaxWidth, absent.headDim);
  else if (reader.ignore("head_dim"); config.hidden % config.heads == 0)
    config.headDim = config.hidden / config.heads;
  else
    reader.fail("num_attention_heads", absl::StrCat("does not divide \"hidden_size\" = ", config.hidden,
                                                    "; use a divisor, or give \"head_dim\""));
  if (config.heads % config.kvHeads != 0)
    reader.fail("num_key_value_heads",
                absl::StrCat("does not divide \"num_attention_heads\" = ", config.heads, "; use a divisor of it"));
  absl::string_view source = reader.has("head_dim") ? "head_dim" : "num_attention_heads";
  if (config.headDim % 2 != 0)
    reader.fail(source, absl::StrCat("gives heads of ", config.headDim,
                                     " elements; rotary positions turn pairs of them, so the number must be even"));
  if (config.heads * config.headDim > kMaxWidth)
    reader.fail(source, absl::StrCat("makes ", config.heads, " heads of ", config.headDim, " elements, more than ",
                                     kMaxWidth, " in total; use smaller sizes"));
}

void hf::readRotaryDecoder(ConfigReader &reader, ModelConfig &config, AbsentSizes absent) {
  config.vocabulary = reader.positiveInteger("vocab_size", kMaxVocabulary);
  config.hidden = reader.positiveInteger("hidden_size", kMaxWidth);
  config.layers = reader.positiveInteger("num_hidden_layers", kMaxLayers);
  config.intermediate = reader.positiveInteger("intermediate_size", kMaxWidth);
  config.maxPositions = reader.positiveInteger("max_position_embeddings", kMaxPositions);
  reader.isNoPartOfFunction("max_position_embeddings");
  config.normEpsilon = reader.positiveNumberOr("rms_norm_eps", 1e-6);
  config.initializerRange = reader.nonNegativeNumberOr("initializer_range", 0.02);
  reader.isNoPartOfFunction("initializer_range");
  config.tiedEmbeddings = reader.booleanOr("tie_word_embeddings", false);
  readRotaryPositions(reader, config);
  reader.choiceOr("hidden_act", {"silu", "swish"}, 0); // two names of one function
  readHeads(reader, config, absent);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static int64_t headsOf(const ModelConfig &config, char which) { return which == 'q' ? config.heads : config.kvHeads; }

static Role roleOf(const ModelConfig &config, char which) {
  if (which == 'q')
    return {Role::Kind::Column};
  return {Role::Kind::Keys, {}, config.heads / config.kvHeads};
}

void hf::declareProjection(const ModelConfig &config, ParameterList &parameters, char which) {
  std::string name(1, which);
  parameters.normal(roleOf(config, which), "attn.w" + name, "self_attn." + name + "_proj.weight",
                    {headsOf(config, which) * config.headDim, config.hidden}, config.initializerRange);
}

void hf::declareProjectionBias(const ModelConfig &config, ParameterList &parameters, char which) {
  std::string name(1, which);
  parameters.fill(roleOf(config, which), "attn.b" + name, "self_attn." + name + "_proj.bias",
                  headsOf(config, which) * config.headDim, 0);
}

void RotaryDecoder::declareParameters(const ModelConfig &c, ParameterList &parameters) const {
  const double stddev = c.initializerRange;
  const Role none = {Role::Kind::None}, column = {Role::Kind::Column}, row = {Role::Kind::Row},
             vocabulary = {Role::Kind::Vocabulary};
  parameters.normal(vocabulary, "embed", "model.embed_tokens.weight", {c.vocabulary, c.hidden}, stddev);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    parameters.enterLayer(layer, "model.layers.");
    parameters.fill(none, "attn_norm", "input_layernorm.weight", c.hidden, 1);
    declareAttention(c, parameters);
    parameters.normal(row, "attn.wo", "self_attn.o_proj.weight", {c.hidden, c.heads * c.headDim}, stddev);
    parameters.fill(none, "mlp_norm", "post_attention_layernorm.weight", c.hidden, 1);
    parameters.normal(column, "mlp.w_gate", "mlp.gate_proj.weight", {c.intermediate, c.hidden}, stddev);
    parameters.normal(column, "mlp.w_up", "mlp.up_proj.weight", {c.intermediate, c.hidden}, stddev);
    parameters.normal(row, "mlp.w_down", "mlp.down_proj.weight", {c.hidden, c.intermediate}, stddev);
  }
  parameters.leaveLayers();
  parameters.fill(none, "norm", "model.norm.weight", c.hidden, 1);
  if (!c.tiedEmbeddings)
    parameters.normal(vocabulary, "head", "lm_head.weight", {c.vocabulary, c.hidden}, stddev);
}

std::set<std::string> RotaryDecoder::ignoredTensors(const ModelConfig &config) const {
  std::set<std::string> names = {"model.rotary_emb.inv_freq"};
  for (int64_t layer = 0; layer < config.layers; ++layer)
    names.insert(absl::StrCat("model.layers.", layer, ".self_attn.rotary_emb.inv_freq"));
  return names;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

DecoderLayer::DecoderLayer(ModelBuilder &b, const ModelConfig &config, RopeTables rope, int64_t index)
    : b(b), config(config), rope(rope), symbols("layers." + std::to_string(index) + "."),
      modules("model.layers." + std::to_string(index) + ".") {}

Value DecoderLayer::norm(Value x, StringRef symbol, StringRef module) {
  b.at(modules + module);
  return graph::RmsNormOp::create(b.ops(), x, b.read(symbols + symbol), APFloat(config.normEpsilon));
}

Value DecoderLayer::project(Value x, char which) {
  b.at(Twine(modules) + "self_attn." + Twine(which) + "_proj");
  return b.linear(x, b.read(Twine(symbols) + "attn.w" + Twine(which)));
}

Value DecoderLayer::addProjectionBias(Value y, char which) {
  b.at(Twine(modules) + "self_attn." + Twine(which) + "_proj");
  return b.addBias(y, b.read(Twine(symbols) + "attn.b" + Twine(which)));
}

Value DecoderLayer::splitHeads(Value y) { return b.splitHeads(y, b.typeOf(y).getShape().back() / config.headDim); }

Value DecoderLayer::attend(Value query, Value key, Value value, int64_t window) {
  b.at(modules + "self_attn");
  query = graph::RopeOp::create(b.ops(), query, rope.cosine, rope.sine);
  key = graph::RopeOp::create(b.ops(), key, rope.cosine, rope.sine);
  return b.causalAttention(query, key, value, window);
}

Value DecoderLayer::feedForward(Value x) {
  b.at(modules + "mlp.gate_proj");
  Value gate = b.linear(x, b.read(symbols + "mlp.w_gate"));
  b.at(modules + "mlp.up_proj");
  Value up = b.linear(x, b.read(symbols + "mlp.w_up"));
  b.at(modules + "mlp.act_fn");
  Value gated = b.multiply(graph::SiluOp::create(b.ops(), gate.getType(), gate), up);
  b.at(modules + "mlp.down_proj");
  return b.linear(gated, b.read(symbols + "mlp.w_down"));
}

Value DecoderLayer::build(Value hidden, function_ref<Value(DecoderLayer &, Value)> attention) {
  Value attended = b.mergeHeads(attention(*this, norm(hidden, "attn_norm", "input_layernorm")));
  b.at(modules + "self_attn.o_proj");
  attended = b.linear(attended, b.read(symbols + "attn.wo"));
  b.at(modules + "self_attn");
  hidden = b.add(hidden, attended);
  Value updated = feedForward(norm(hidden, "mlp_norm", "post_attention_layernorm"));
  b.at(modules + "mlp");
  return b.add(hidden, updated);
}

static graph::RopeScalingAttr scalingOf(const ModelConfig &config, MLIRContext *context) {
  const RopeScaling &scaling = config.ropeScaling;
  if (scaling == RopeScaling())
    return {};
  if (scaling.original == 0)
    return graph::RopeScalingAttr::get(context, scaling.factor);
  return graph::RopeScalingAttr::get(context, scaling.factor, scaling.original, scaling.lowTurns, scaling.highTurns);
}

static RopeTables buildRopeTables(ModelBuilder &b, const ModelConfig &config, int64_t length) {
  b.at("model.rotary_emb");
  Value positions = b.positions(length);
  RankedTensorType table = b.f32({length, config.headDim / 2});
  auto angles = graph::RopeAnglesOp::create(b.ops(), table, table, positions, APFloat(config.ropeTheta),
                                            scalingOf(config, b.ops().getContext()));
  return {angles.getCosine(), angles.getSine()};
}

Value RotaryDecoder::buildLayers(ModelBuilder &b, const ModelConfig &config, Value tokens) const {
  b.at("model.embed_tokens");
  Value hidden = b.embed(tokens);
  RopeTables rope = buildRopeTables(b, config, b.typeOf(tokens).getDimSize(1));
  auto attention = [&](DecoderLayer &layer, Value x) { return buildAttention(layer, x); };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    hidden = DecoderLayer(b, config, rope, layer).build(hidden, attention);
  return hidden;
}

Value RotaryDecoder::buildFinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) const {
  b.at("model.norm");
  return graph::RmsNormOp::create(b.ops(), hidden, b.read("norm"), APFloat(config.normEpsilon));
}
