//===- Parameters.cpp - The parameters of a model and their names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Parameters.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include <cmath>

using namespace bowline;
using namespace bowline::hf;

namespace {

/// Collects parameters under a pair of prefixes: that of symbols and that of keys.
class Collector {
public:
  explicit Collector(std::vector<Parameter> &out) : out(out) {}

  /// Following parameters are those of layer `index`, whose keys begin with `keys` and its number.
  void enterLayer(int64_t index, absl::string_view keys) {
    layer = index;
    symbolPrefix = absl::StrCat("layers.", index, ".");
    keyPrefix = absl::StrCat(keys, index, ".");
  }
  void leaveLayers() {
    layer = std::nullopt;
    symbolPrefix = keyPrefix = "";
  }
  void normal(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape, double stddev) {
    add(std::move(role), symbol, key, std::move(shape), {Initial::Kind::Normal, stddev});
  }
  void fill(Role role, absl::string_view symbol, absl::string_view key, int64_t size, double value) {
    add(std::move(role), symbol, key, {size}, {Initial::Kind::Fill, value});
  }

private:
  void add(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape, Initial initial) {
    out.push_back({absl::StrCat(symbolPrefix, symbol), absl::StrCat(keyPrefix, key), std::move(shape), initial,
                   std::move(role), layer});
  }

  std::vector<Parameter> &out;
  std::optional<int64_t> layer;
  std::string symbolPrefix, keyPrefix;
};

} // namespace

static void collectLlama(const ModelConfig &c, Collector &collect) {
  const double stddev = c.initializerRange;
  const int64_t queries = c.heads * c.headDim, keys = c.kvHeads * c.headDim;
  const Role none = {Role::Kind::None}, column = {Role::Kind::Column}, row = {Role::Kind::Row},
             vocabulary = {Role::Kind::Vocabulary}, shared = {Role::Kind::Keys, {}, c.heads / c.kvHeads};
  collect.normal(vocabulary, "embed", "model.embed_tokens.weight", {c.vocabulary, c.hidden}, stddev);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    collect.enterLayer(layer, "model.layers.");
    collect.fill(none, "attn_norm", "input_layernorm.weight", c.hidden, 1);
    collect.normal(column, "attn.wq", "self_attn.q_proj.weight", {queries, c.hidden}, stddev);
    if (c.qkvBias)
      collect.fill(column, "attn.bq", "self_attn.q_proj.bias", queries, 0);
    collect.normal(shared, "attn.wk", "self_attn.k_proj.weight", {keys, c.hidden}, stddev);
    if (c.qkvBias)
      collect.fill(shared, "attn.bk", "self_attn.k_proj.bias", keys, 0);
    collect.normal(shared, "attn.wv", "self_attn.v_proj.weight", {keys, c.hidden}, stddev);
    if (c.qkvBias)
      collect.fill(shared, "attn.bv", "self_attn.v_proj.bias", keys, 0);
    collect.normal(row, "attn.wo", "self_attn.o_proj.weight", {c.hidden, queries}, stddev);
    collect.fill(none, "mlp_norm", "post_attention_layernorm.weight", c.hidden, 1);
    collect.normal(column, "mlp.w_gate", "mlp.gate_proj.weight", {c.intermediate, c.hidden}, stddev);
    collect.normal(column, "mlp.w_up", "mlp.up_proj.weight", {c.intermediate, c.hidden}, stddev);
    collect.normal(row, "mlp.w_down", "mlp.down_proj.weight", {c.hidden, c.intermediate}, stddev);
  }
  collect.leaveLayers();
  collect.fill(none, "norm", "model.norm.weight", c.hidden, 1);
  if (!c.tiedEmbeddings)
    collect.normal(vocabulary, "head", "lm_head.weight", {c.vocabulary, c.hidden}, stddev);
}

static void collectGpt2(const ModelConfig &c, Collector &collect) {
  const double stddev = c.initializerRange;
  // Projections into the residual stream start smaller, by the number of additions to it (Radford et al., 2019, 2.3).
  const double residualStddev = stddev / std::sqrt(2.0 * static_cast<double>(c.layers));
  const Role none = {Role::Kind::None}, column = {Role::Kind::Column}, row = {Role::Kind::Row},
             vocabulary = {Role::Kind::Vocabulary}, fused = {Role::Kind::Fused, {c.hidden, c.hidden, c.hidden}};
  collect.normal(vocabulary, "embed", "transformer.wte.weight", {c.vocabulary, c.hidden}, stddev);
  collect.normal(none, "positions", "transformer.wpe.weight", {c.maxPositions, c.hidden}, stddev);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    collect.enterLayer(layer, "transformer.h.");
    collect.fill(none, "attn_norm.scale", "ln_1.weight", c.hidden, 1);
    collect.fill(none, "attn_norm.bias", "ln_1.bias", c.hidden, 0);
    collect.normal(fused, "attn.wqkv", "attn.c_attn.weight", {c.hidden, 3 * c.hidden}, stddev);
    collect.fill(fused, "attn.bqkv", "attn.c_attn.bias", 3 * c.hidden, 0);
    collect.normal(row, "attn.wo", "attn.c_proj.weight", {c.hidden, c.hidden}, residualStddev);
    collect.fill(none, "attn.bo", "attn.c_proj.bias", c.hidden, 0);
    collect.fill(none, "mlp_norm.scale", "ln_2.weight", c.hidden, 1);
    collect.fill(none, "mlp_norm.bias", "ln_2.bias", c.hidden, 0);
    collect.normal(column, "mlp.w_up", "mlp.c_fc.weight", {c.hidden, c.intermediate}, stddev);
    collect.fill(column, "mlp.b_up", "mlp.c_fc.bias", c.intermediate, 0);
    collect.normal(row, "mlp.w_down", "mlp.c_proj.weight", {c.intermediate, c.hidden}, residualStddev);
    collect.fill(none, "mlp.b_down", "mlp.c_proj.bias", c.hidden, 0);
  }
  collect.leaveLayers();
  collect.fill(none, "norm.scale", "transformer.ln_f.weight", c.hidden, 1);
  collect.fill(none, "norm.bias", "transformer.ln_f.bias", c.hidden, 0);
  if (!c.tiedEmbeddings)
    collect.normal(vocabulary, "head", "lm_head.weight", {c.vocabulary, c.hidden}, stddev);
}

std::vector<Parameter> hf::parameters(const ModelConfig &config) {
  std::vector<Parameter> result;
  Collector collect(result);
  if (config.family == Family::Gpt2)
    collectGpt2(config, collect);
  else
    collectLlama(config, collect);
  return result;
}

/// True for "<prefix>N<suffix>" with N the number of a layer.
static bool isOfLayer(absl::string_view key, absl::string_view prefix, absl::string_view suffix, int64_t layers) {
  int64_t layer;
  return absl::ConsumePrefix(&key, prefix) && absl::ConsumeSuffix(&key, suffix) && absl::SimpleAtoi(key, &layer) &&
         layer >= 0 && layer < layers;
}

bool hf::isHarmlessTensor(const ModelConfig &config, absl::string_view key) {
  if (key == "lm_head.weight")
    return config.tiedEmbeddings;
  if (config.family != Family::Gpt2)
    return isOfLayer(key, "model.layers.", ".self_attn.rotary_emb.inv_freq", config.layers) ||
           key == "model.rotary_emb.inv_freq";
  absl::ConsumePrefix(&key, "transformer.");
  // The causal mask and the number that it puts in place of a score.
  return isOfLayer(key, "h.", ".attn.bias", config.layers) || isOfLayer(key, "h.", ".attn.masked_bias", config.layers);
}
