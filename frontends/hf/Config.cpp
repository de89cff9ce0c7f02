//===- Config.cpp - Reads config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ConfigKeys.h"
#include "frontends/hf/ConfigReader.h"
#include "frontends/hf/ModelConfig.h"
#include "runtime/base/json.h"

#include <iterator>

using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Limits: far above every published model, and such that sizes multiply without overflow.
//===----------------------------------------------------------------------===//

static constexpr int64_t kMaxVocabulary = int64_t{1} << 28;
static constexpr int64_t kMaxWidth = int64_t{1} << 24;
static constexpr int64_t kMaxHeads = int64_t{1} << 16;
static constexpr int64_t kMaxLayers = 4096;
static constexpr int64_t kMaxPositions = int64_t{1} << 30;
static constexpr size_t kMaxConfigBytes = size_t{16} << 20;

static constexpr absl::string_view kFamilyNames[] = {"llama", "qwen2", "gpt2"};
static constexpr absl::string_view kModelClasses[] = {"LlamaForCausalLM", "Qwen2ForCausalLM", "GPT2LMHeadModel"};

absl::string_view hf::nameOf(Family family) { return kFamilyNames[static_cast<size_t>(family)]; }

//===----------------------------------------------------------------------===//
// Keys that all families share
//===----------------------------------------------------------------------===//

/// `architectures` says which model stands on the shared body: weights of a classifier are no language model.
static void readArchitectures(ConfigReader &reader, Family family) {
  const json *value = reader.take("architectures");
  absl::string_view expected = kModelClasses[static_cast<size_t>(family)];
  if (value && !(value->is_array() && value->size() == 1 && (*value)[0] == std::string(expected)))
    reader.fail("architectures", absl::StrCat("is not supported; use [\"", expected, "\"]"));
}

static void readFixedAndDropout(ConfigReader &reader, ModelConfig &config, absl::string_view fileName) {
  for (const FixedKey &fixed : fixedKeys(config.family))
    reader.require(fixed.key, fixed.supported);
  for (absl::string_view key : dropoutKeys(config.family)) {
    double rate = reader.nonNegativeNumberOr(key, 0);
    if (rate >= 1)
      reader.fail(key, "is not a rate of dropout; it should be in [0, 1)");
    if (rate > 0)
      config.remarks.push_back(
          absl::StrCat("'", fileName, "': \"", key, "\" = ", rate, " has no effect: training uses no dropout"));
  }
}

static void refuseUnknownKeys(ConfigReader &reader, Family family) {
  for (const std::string &key : reader.unread())
    if (!isHarmlessKey(family, key))
      reader.fail(key, absl::StrCat("is not a known key of model_type \"", nameOf(family),
                                    "\", so it may change the mathematics; remove it if it does not"));
}

//===----------------------------------------------------------------------===//
// Llama and Qwen2
//===----------------------------------------------------------------------===//

/// Newer files keep everything about rotary positions in `rope_parameters`, older ones have `rope_theta` beside the
/// sizes; both may be there and must agree.
static double readRopeTheta(ConfigReader &reader, absl::string_view fileName) {
  constexpr double kDefaultTheta = 10000.0;
  bool isBeside = reader.has("rope_theta");
  double beside = reader.positiveNumberOr("rope_theta", kDefaultTheta);
  const json *parameters = reader.take("rope_parameters");
  if (!parameters)
    return beside;
  if (!parameters->is_object()) {
    reader.fail("rope_parameters", "is not supported; it should be an object");
    return beside;
  }
  ConfigReader inner(*parameters, absl::StrCat("'", fileName, "': in \"rope_parameters\""));
  inner.choiceOr("rope_type", {"default"}, 0);
  inner.choiceOr("type", {"default"}, 0);
  inner.require("partial_rotary_factor", {"1"});
  double theta = inner.positiveNumberOr("rope_theta", beside);
  for (const std::string &key : inner.unread())
    inner.fail(key, "is not supported; use rope_type \"default\" with rope_theta alone");
  if (isBeside && theta != beside)
    inner.fail("rope_theta", absl::StrCat("contradicts \"rope_theta\" = ", beside, " outside of it; keep one"));
  reader.fail(inner.status());
  return theta;
}

static void readLayerTypes(ConfigReader &reader, int64_t layers) {
  const json *value = reader.take("layer_types");
  if (!value)
    return;
  bool supported = value->is_array() && value->size() == static_cast<size_t>(layers);
  for (size_t i = 0; supported && i < value->size(); ++i)
    supported = (*value)[i] == "full_attention";
  if (!supported)
    reader.fail("layer_types",
                absl::StrCat("is not supported; use \"full_attention\" for each of the ", layers, " layers"));
}

static void readLlama(ConfigReader &reader, ModelConfig &config, absl::string_view fileName) {
  config.vocabulary = reader.positiveInteger("vocab_size", kMaxVocabulary);
  config.hidden = reader.positiveInteger("hidden_size", kMaxWidth);
  config.layers = reader.positiveInteger("num_hidden_layers", kMaxLayers);
  config.heads = reader.positiveInteger("num_attention_heads", kMaxHeads);
  config.kvHeads = reader.positiveIntegerOr("num_key_value_heads", kMaxHeads, config.heads);
  config.intermediate = reader.positiveInteger("intermediate_size", kMaxWidth);
  config.maxPositions = reader.positiveInteger("max_position_embeddings", kMaxPositions);
  config.normEpsilon = reader.positiveNumberOr("rms_norm_eps", 1e-6);
  config.initializerRange = reader.nonNegativeNumberOr("initializer_range", 0.02);
  config.tiedEmbeddings = reader.booleanOr("tie_word_embeddings", false);
  config.ropeTheta = readRopeTheta(reader, fileName);
  config.qkvBias = config.family == Family::Qwen2;
  config.activation = Activation::Silu;
  reader.choiceOr("hidden_act", {"silu"}, 0);
  readLayerTypes(reader, config.layers);

  if (reader.has("head_dim"))
    config.headDim = reader.positiveInteger("head_dim", kMaxWidth);
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

//===----------------------------------------------------------------------===//
// GPT-2
//===----------------------------------------------------------------------===//

static void readGpt2(ConfigReader &reader, ModelConfig &config) {
  config.vocabulary = reader.positiveInteger("vocab_size", kMaxVocabulary);
  config.hidden = reader.positiveInteger("n_embd", kMaxWidth / 4);
  config.layers = reader.positiveInteger("n_layer", kMaxLayers);
  config.heads = config.kvHeads = reader.positiveInteger("n_head", kMaxHeads);
  config.intermediate = reader.positiveIntegerOr("n_inner", kMaxWidth, 4 * config.hidden);
  config.maxPositions = reader.positiveInteger("n_positions", kMaxPositions);
  config.normEpsilon = reader.positiveNumberOr("layer_norm_epsilon", 1e-5);
  config.initializerRange = reader.nonNegativeNumberOr("initializer_range", 0.02);
  config.tiedEmbeddings = reader.booleanOr("tie_word_embeddings", true);

  static constexpr absl::string_view kNames[] = {"gelu_new", "gelu_pytorch_tanh", "gelu"};
  static constexpr Activation kActivations[] = {Activation::GeluTanh, Activation::GeluTanh, Activation::GeluErf};
  static_assert(std::size(kNames) == std::size(kActivations));
  config.activation = kActivations[reader.choiceOr("activation_function", kNames, 0)];

  if (config.hidden % config.heads != 0)
    reader.fail("n_head", absl::StrCat("does not divide \"n_embd\" = ", config.hidden, "; use a divisor of it"));
  else
    config.headDim = config.hidden / config.heads;
  // An old name of n_positions.
  if (reader.positiveIntegerOr("n_ctx", kMaxPositions, config.maxPositions) != config.maxPositions)
    reader.fail("n_ctx", absl::StrCat("contradicts \"n_positions\" = ", config.maxPositions, "; make them equal"));
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static absl::StatusOr<ModelConfig> interpret(const json &document, absl::string_view fileName) {
  std::string where = absl::StrCat("'", fileName, "'");
  if (!document.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(where, " holds ", DescribeJsonType(document), "; a model's config.json is an object"));
  ConfigReader reader(document, where);
  ModelConfig config;
  config.family = static_cast<Family>(reader.choice("model_type", kFamilyNames));
  BOWLINE_RETURN_IF_ERROR(reader.status());

  readArchitectures(reader, config.family);
  if (config.family == Family::Gpt2)
    readGpt2(reader, config);
  else
    readLlama(reader, config, fileName);
  readFixedAndDropout(reader, config, fileName);
  refuseUnknownKeys(reader, config.family);
  BOWLINE_RETURN_IF_ERROR(reader.status());
  return config;
}

absl::StatusOr<ModelConfig> hf::parseConfig(absl::string_view text, absl::string_view fileName) {
  BOWLINE_ASSIGN_OR_RETURN(const json document, ParseJson(text, absl::StrCat("'", fileName, "'")));
  return interpret(document, fileName);
}

absl::StatusOr<ModelConfig> hf::readConfig(const std::string &directory) {
  std::string path = absl::StrCat(directory, "/config.json");
  BOWLINE_ASSIGN_OR_RETURN(const json document, ReadJsonFile(path, kMaxConfigBytes));
  return interpret(document, path);
}
