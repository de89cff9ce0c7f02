//===- WeightsTest.cpp - Names and shapes of weights
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Weights.h"

#include "absl/strings/strip.h"
#include "frontends/hf/Parameters.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/safetensors_writer.h"
#include "runtime/base/weight_key.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Frontends/HfTestSupport.h"

#include <set>

using namespace bowline;
using namespace bowline::hf;
using namespace bowline::hf::test;
using testing::HasSubstr;

static std::vector<SafetensorsSpec> specsOf(const ModelConfig &config) {
  std::vector<SafetensorsSpec> specs;
  for (const Parameter &parameter : parameters(config))
    specs.push_back({parameter.key, ElementType::kF32, parameter.shape});
  return specs;
}

static void writeZeros(const std::string &path, const std::vector<SafetensorsSpec> &specs) {
  std::vector<uint8_t> zeros(1 << 20);
  std::vector<SafetensorsSource> sources;
  for (const SafetensorsSpec &spec : specs)
    sources.push_back({spec, zeros.data()});
  ASSERT_TRUE(WriteSafetensors(path, sources).ok());
}

static absl::StatusOr<WeightsOnDisk> check(const ModelConfig &config, const std::vector<SafetensorsSpec> &specs) {
  TempDirectory directory;
  writeZeros(directory / "model.safetensors", specs);
  return checkWeights(config, directory.path());
}

static SafetensorsSpec &find(std::vector<SafetensorsSpec> &specs, const std::string &name) {
  for (SafetensorsSpec &spec : specs)
    if (spec.name == name)
      return spec;
  ADD_FAILURE() << "no " << name;
  return specs.front();
}

static void expectRefused(const ModelConfig &config, const std::vector<SafetensorsSpec> &specs,
                          const std::string &says) {
  absl::Status status = check(config, specs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/model.safetensors': "));
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

namespace {
class Model : public testing::TestWithParam<const char *> {
protected:
  ModelConfig config = configOf(GetParam());
};
} // namespace
INSTANTIATE_TEST_SUITE_P(All, Model, testing::ValuesIn(kModels), testName);

// The files were written by code that shares nothing with Parameters.cpp: test/oracle/models.py, whose names and shapes
// the reference library accepts.
TEST_P(Model, ParametersAreThoseOfTheFile) {
  absl::StatusOr<SafetensorsDirectory> weights = SafetensorsDirectory::Open(modelDirectory(GetParam()));
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::set<std::string> symbols, keys;
  for (const Parameter &parameter : parameters(config)) {
    EXPECT_TRUE(symbols.insert(parameter.symbol).second) << parameter.symbol;
    EXPECT_TRUE(keys.insert(parameter.key).second) << parameter.key;
    const auto *entry = weights->Find(parameter.key);
    ASSERT_TRUE(entry) << parameter.key;
    EXPECT_EQ(entry->tensor->shape, parameter.shape) << parameter.key;
  }
  EXPECT_EQ(keys.size(), weights->tensors().size());
  absl::StatusOr<WeightsOnDisk> found = checkWeights(config, modelDirectory(GetParam()));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, WeightsOnDisk::Match);
}

TEST_P(Model, EveryMissingTensorIsNamed) {
  const std::vector<SafetensorsSpec> all = specsOf(config);
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<SafetensorsSpec> specs = all;
    specs.erase(specs.begin() + static_cast<ptrdiff_t>(i));
    expectRefused(config, specs,
                  "no tensor '" + all[i].name + "', which config.json asks for as " +
                      DescribeTensor(ElementType::kF32, all[i].shape));
  }
}

TEST_P(Model, EveryWrongShapeIsNamed) {
  const std::vector<SafetensorsSpec> all = specsOf(config);
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<SafetensorsSpec> specs = all;
    ++specs[i].shape.back();
    expectRefused(config, specs,
                  "tensor '" + all[i].name + "' is " + DescribeTensor(ElementType::kF32, specs[i].shape) +
                      ", but config.json asks for " + DescribeTensor(ElementType::kF32, all[i].shape));
  }
}

TEST(Parameters, InitialValuesOfTheFamilies) {
  auto initialOf = [](const ModelConfig &config, const std::string &symbol) {
    for (const Parameter &parameter : parameters(config))
      if (parameter.symbol == symbol)
        return std::pair(parameter.initial.kind, parameter.initial.value);
    ADD_FAILURE() << "no " << symbol;
    return std::pair(Initial::Kind::Fill, 0.0);
  };
  using Kind = Initial::Kind;
  ModelConfig llama = configOf("llama-tiny"), qwen2 = configOf("qwen2-tiny"), gpt2 = configOf("gpt2-tiny");
  EXPECT_EQ(initialOf(llama, "embed"), std::pair(Kind::Normal, 0.02));
  EXPECT_EQ(initialOf(llama, "layers.1.attn.wo"), std::pair(Kind::Normal, 0.02));
  EXPECT_EQ(initialOf(llama, "layers.1.mlp_norm"), std::pair(Kind::Fill, 1.0));
  EXPECT_EQ(initialOf(qwen2, "layers.0.attn.bk"), std::pair(Kind::Fill, 0.0));
  EXPECT_EQ(initialOf(gpt2, "layers.0.attn.wqkv"), std::pair(Kind::Normal, 0.02));
  EXPECT_EQ(initialOf(gpt2, "layers.0.attn.wo"), std::pair(Kind::Normal, 0.01)) << "two layers: 0.02 / sqrt(2 * 2)";
  EXPECT_EQ(initialOf(gpt2, "layers.1.mlp.w_down"), std::pair(Kind::Normal, 0.01));
  EXPECT_EQ(initialOf(gpt2, "norm.bias"), std::pair(Kind::Fill, 0.0));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST(Weights, ElementTypes) {
  ModelConfig config = configOf("llama-tiny");
  std::vector<SafetensorsSpec> specs = specsOf(config);
  for (ElementType type : {ElementType::kF16, ElementType::kBF16}) {
    find(specs, "model.norm.weight").type = type;
    EXPECT_TRUE(check(config, specs).ok());
  }
  find(specs, "model.norm.weight").type = ElementType::kI8;
  expectRefused(config, specs, "tensor 'model.norm.weight' is I8 [36]; supported element types are F32, F16 and BF16");
}

TEST(Weights, ExtraTensorsAreRefusedUnlessHarmless) {
  struct Extra {
    const char *model, *name;
    bool isHarmless;
  };
  const Extra extras[] = {
      {"llama-tiny", "model.layers.1.self_attn.rotary_emb.inv_freq", true},
      {"llama-tiny", "model.rotary_emb.inv_freq", true},
      {"llama-tiny", "model.layers.2.self_attn.rotary_emb.inv_freq", false},
      {"llama-tiny", "model.layers.x.self_attn.rotary_emb.inv_freq", false},
      {"llama-tiny", "model.layers.0.self_attn.q_proj.bias", false},
      {"llama-tiny", "model.layers.2.input_layernorm.weight", false},
      {"llama-tied", "lm_head.weight", true},
      {"gpt2-tiny", "lm_head.weight", true},
      {"gpt2-tiny", "transformer.h.0.attn.bias", true},
      {"gpt2-tiny", "h.1.attn.masked_bias", true},
      {"gpt2-tiny", "transformer.h.2.attn.bias", false},
      {"gpt2-tiny", "score.weight", false},
      // Beside "transformer.wte.weight": which of the two is meant?
      {"gpt2-tiny", "wte.weight", false},
  };
  for (const Extra &extra : extras) {
    ModelConfig config = configOf(extra.model);
    std::vector<SafetensorsSpec> specs = specsOf(config);
    specs.push_back({extra.name, ElementType::kF32, {3}});
    if (extra.isHarmless)
      EXPECT_TRUE(check(config, specs).ok()) << extra.name << ": " << check(config, specs).status();
    else
      expectRefused(config, specs, std::string("tensor '") + extra.name + "' (F32 [3]) belongs to no parameter");
  }
}

TEST(Weights, Gpt2WithoutPrefix) {
  ModelConfig config = configOf("gpt2-tiny");
  std::vector<SafetensorsSpec> specs = specsOf(config);
  for (SafetensorsSpec &spec : specs)
    spec.name = std::string(LegacyWeightKey(spec.name));
  EXPECT_TRUE(check(config, specs).ok());
  ++find(specs, "wpe.weight").shape[0];
  expectRefused(config, specs, "tensor 'wpe.weight' is F32 [30, 39], but config.json asks for F32 [29, 39]");
}

TEST(Weights, Shards) {
  ModelConfig config = configOf("llama-tied");
  std::vector<SafetensorsSpec> specs = specsOf(config);
  TempDirectory directory;
  std::string map;
  for (size_t i = 0; i < specs.size(); ++i) {
    std::string shard = "model-0000" + std::to_string(1 + i % 2) + "-of-00002.safetensors";
    map += (i ? ", \"" : "\"") + specs[i].name + "\": \"" + shard + "\"";
  }
  for (size_t part : {0, 1}) {
    std::vector<SafetensorsSpec> mine;
    for (size_t i = part; i < specs.size(); i += 2)
      mine.push_back(specs[i]);
    writeZeros(directory / ("model-0000" + std::to_string(1 + part) + "-of-00002.safetensors"), mine);
  }
  WriteWholeFile(directory / "model.safetensors.index.json", "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
  absl::StatusOr<WeightsOnDisk> found = checkWeights(config, directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, WeightsOnDisk::Match);

  // An index may list a tensor that no shard has, unless the model needs it.
  std::string first = "model-00001-of-00002.safetensors", index = directory / "model.safetensors.index.json";
  WriteWholeFile(index, "{\"weight_map\": {" + map + ", \"v_head.weight\": \"" + first + "\"}}");
  std::vector<std::string> remarks;
  ASSERT_TRUE(checkWeights(config, directory.path(), &remarks).ok());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "this model does not need tensor 'v_head.weight', which '" + index + "' lists in '" +
                            (directory / first) + "', but that shard does not have it");
  std::vector<SafetensorsSpec> mine;
  for (size_t i = 2; i < specs.size(); i += 2)
    mine.push_back(specs[i]);
  writeZeros(directory / first, mine);
  absl::Status status = checkWeights(config, directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the model needs tensor '" + specs[0].name + "' (F32 ["));
  EXPECT_THAT(std::string(status.message()), HasSubstr("which '" + index + "' lists in '" + (directory / first) + "'"));
}

TEST(Weights, NoneAndBroken) {
  TempDirectory directory;
  ModelConfig config = configOf("llama-tied");
  EXPECT_EQ(*checkWeights(config, directory.path()), WeightsOnDisk::None);
  WriteWholeFile(directory / "model.safetensors", "short");
  EXPECT_FALSE(checkWeights(config, directory.path()).ok());
}
