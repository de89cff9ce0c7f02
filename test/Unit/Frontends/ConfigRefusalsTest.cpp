//===- ConfigRefusalsTest.cpp - Keys and values of config.json that are refused
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ConfigKeys.h"
#include "test/Unit/Frontends/ConfigCases.h"
#include "test/Unit/Frontends/HfTestSupport.h"

#include <nlohmann/json.hpp>
#include <set>

using namespace bowline;
using namespace bowline::hf;
using namespace bowline::hf::test;
using nlohmann::json;
using testing::HasSubstr;

/// A value that no fixed key supports.
static json otherThan(absl::Span<const absl::string_view> supported) {
  json first = json::parse(supported.front());
  if (first.is_boolean())
    return !first.get<bool>();
  return first.is_number() ? json(0.5) : json({{"type", "other"}});
}

TEST(Config, EveryFixedKeyIsRefusedWithItsSupportedValues) {
  for (const Family *family : families()) {
    ASSERT_FALSE(family->fixedKeys.empty());
    for (const FixedKey &fixed : fixedKeys(*family)) {
      std::string key(fixed.key), value = otherThan(fixed.supported).dump(), supported(fixed.supported.front());
      expectRefused(minimal(family->name), {family->name, key.c_str(), value.c_str(), "changes the mathematics"});
      expectRefused(minimal(family->name), {family->name, key.c_str(), value.c_str(), supported.c_str()});
      for (absl::string_view good : fixed.supported) {
        json document = minimal(family->name);
        document[key] = json::parse(good);
        EXPECT_TRUE(parse(document).ok()) << key << " = " << good << ": " << parse(document).status();
      }
    }
  }
}

TEST(Config, FixedKeysCoverWhatTheFamiliesKnow) {
  auto isFixed = [](absl::string_view family, absl::string_view key) {
    for (const FixedKey &fixed : fixedKeys(familyOf(family)))
      if (fixed.key == key)
        return true;
    return false;
  };
  for (const char *key : {"attention_bias", "mlp_bias", "partial_rotary_factor", "quantization_config",
                          "attention_multiplier", "logits_scaling"})
    EXPECT_TRUE(isFixed("llama", key)) << key;
  for (const char *key : {"use_mrope", "quantization_config"})
    EXPECT_TRUE(isFixed("qwen2", key)) << key;
  EXPECT_TRUE(isFixed("qwen3", "attention_bias"));
  for (const char *key : {"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    EXPECT_TRUE(isFixed("gpt2", key)) << key;
}

TEST(Config, EveryOtherRefusal) {
  const Refused tests[] = {
      // Values of the wrong kind or size, one per reader.
      {"llama", "vocab_size", "0", "an integer from 1 to"},
      {"llama", "vocab_size", "-5", "an integer from 1 to"},
      {"llama", "vocab_size", "9223372036854775807", "an integer from 1 to"},
      {"llama", "vocab_size", "18446744073709551615", "an integer from 1 to"},
      {"llama", "vocab_size", "1e30", "an integer from 1 to"},
      {"llama", "vocab_size", "97.0", "an integer from 1 to"},
      {"llama", "vocab_size", "\"97\"", "an integer from 1 to"},
      {"llama", "vocab_size", "[97]", "an integer from 1 to"},
      {"llama", "vocab_size", "true", "an integer from 1 to"},
      {"llama", "hidden_size", "16777217", "from 1 to 16777216"},
      {"llama", "num_hidden_layers", "4097", "from 1 to 4096"},
      {"llama", "num_attention_heads", "0", "from 1 to 65536"},
      {"llama", "num_key_value_heads", "0", "from 1 to 65536"},
      {"llama", "intermediate_size", "0", "an integer from 1 to"},
      {"llama", "max_position_embeddings", "0", "an integer from 1 to"},
      {"llama", "head_dim", "0", "an integer from 1 to"},
      {"llama", "rms_norm_eps", "0", "greater than 0"},
      {"llama", "rms_norm_eps", "\"small\"", "greater than 0"},
      {"llama", "rope_theta", "-10000.0", "greater than 0"},
      {"llama", "initializer_range", "-0.1", "at least 0"},
      {"llama", "tie_word_embeddings", "1", "true or false"},
      {"llama", "attention_dropout", "1.0", "should be in [0, 1)"},
      {"llama", "attention_dropout", "\"much\"", "at least 0"},
      // Sizes that do not fit together.
      {"llama", "num_attention_heads", "7", "does not divide \"hidden_size\" = 24"},
      {"llama", "num_key_value_heads", "4", "does not divide \"num_attention_heads\" = 6"},
      {"llama", "num_key_value_heads", "12", "does not divide \"num_attention_heads\" = 6"},
      {"llama", "head_dim", "7", "must be even"},
      {"llama", "num_attention_heads", "24", "gives heads of 1 elements"},
      {"llama", "head_dim", "16777216", "more than 16777216 in total"},
      {"gpt2", "n_head", "5", "does not divide \"n_embd\" = 24"},
      {"gpt2", "n_ctx", "17", "contradicts \"n_positions\" = 16"},
      {"gpt2", "n_embd", "4194305", "from 1 to 4194304"},
      // Another model.
      {"llama", "model_type", "\"mamba\"", "use gpt2, llama, mistral, qwen2 or qwen3"},
      {"llama", "model_type", "7", "use gpt2, llama, mistral, qwen2 or qwen3"},
      {"llama", "architectures", "[\"LlamaForSequenceClassification\"]", "use [\"LlamaForCausalLM\"]"},
      {"llama", "architectures", "[]", "use [\"LlamaForCausalLM\"]"},
      {"llama", "architectures", "\"LlamaForCausalLM\"", "use [\"LlamaForCausalLM\"]"},
      {"qwen2", "architectures", "[\"LlamaForCausalLM\"]", "use [\"Qwen2ForCausalLM\"]"},
      {"gpt2", "architectures", "[\"GPT2Model\"]", "use [\"GPT2LMHeadModel\"]"},
      {"llama", "hidden_act", "\"gelu\"", "use silu"},
      {"gpt2", "activation_function", "\"relu\"", "use gelu_new, gelu_pytorch_tanh or gelu"},
      {"llama", "rope_scaling", "3", "should be an object"},
      {"llama", "rope_scaling", "[]", "should be an object"},
      {"qwen2", "layer_types", R"(["full_attention","sliding_attention"])",
       R"(gives layer 1 the type "sliding_attention"; layers other than)"},
      {"qwen2", "layer_types", R"(["full_attention"])", "is no list with one type for each of the 2 layers"},
      {"qwen2", "layer_types", "3", "each of the 2 layers"},
      {"qwen3", "use_qk_norm", "false", "true"},
      {"llama", "use_qk_norm", "true", "false"},
      {"qwen3", "layer_types", R"(["sliding_attention","sliding_attention"])",
       R"(gives layer 0 the type "sliding_attention"; layers other than)"},
      {"mistral", "sliding_window", "0", "an integer from 1 to"},
      {"mistral", "sliding_window", "-1", "an integer from 1 to"},
      {"mistral", "sliding_window", "1073741825", "from 1 to 1073741824"},
      {"mistral", "sliding_window", "4096.5", "an integer from 1 to"},
      {"mistral", "sliding_window", "false", "an integer from 1 to"},
      {"llama", "rope_parameters", "[]", "should be an object"},
      // Keys that nobody knows, also those of another family.
      {"llama", "alibi", "true", "not a known key of model_type \"llama\""},
      {"llama", "n_embd", "24", "not a known key of model_type \"llama\""},
      {"llama", "max_window_layers", "2", "not a known key of model_type \"llama\""},
      {"gpt2", "n_special", "4", "the only supported value is 0"},
      {"gpt2", "rope_theta", "10000.0", "not a known key of model_type \"gpt2\""},
      {"qwen2", "attention_bias", "false", "the only supported value is true"},
      {"mistral", "use_sliding_window", "true", "not a known key of model_type \"mistral\""},
      {"mistral", "layer_types", R"(["full_attention","full_attention"])", "not a known key of model_type"},
  };
  for (const Refused &test : tests)
    expectRefused(minimal(test.family), test);
}

TEST(Config, MissingKeys) {
  for (const Family *family : families()) {
    const json complete = minimal(family->name);
    for (const auto &[key, value] : complete.items()) {
      if (key == "num_key_value_heads")
        continue;
      for (bool isNull : {false, true}) {
        json document = complete;
        document.erase(key);
        if (isNull)
          document[key] = nullptr;
        absl::Status status = parse(document).status();
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
        EXPECT_THAT(std::string(status.message()), HasSubstr("the key \"" + key + "\" is missing; it should be "));
      }
    }
  }
}

TEST(Config, BrokenText) {
  for (const char *text : {"", "{", "[]", "7", "null", "\"llama\"", "{\"model_type\": \"llama\",}", "\xff\xfe{}",
                           "{\"vocab_size\": 1, \"vocab_size\": 2}", "{\"vocab_size\": 1e999}"}) {
    absl::Status status = parseConfig(text, "dir/config.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'dir/config.json'")) << text;
  }
}

TEST(Config, MissingFile) {
  absl::Status status = readConfig(BOWLINE_TEST_DIR "/Models/no-such-model").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-model/config.json"));
}
