//===- ConfigTest.cpp - Keys and values of config.json
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

//===----------------------------------------------------------------------===//
// Configurations as they are published
//===----------------------------------------------------------------------===//

TEST(Config, LlamaWithEverything) {
  ModelConfig config = configOf("llama-tiny");
  EXPECT_EQ(config.family->name, "llama");
  EXPECT_EQ(config.vocabulary, 257);
  EXPECT_EQ(config.hidden, 36);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 6);
  EXPECT_EQ(config.kvHeads, 2);
  EXPECT_EQ(config.headDim, 10) << "explicit, not hidden / heads";
  EXPECT_EQ(config.intermediate, 53);
  EXPECT_EQ(config.maxPositions, 64);
  EXPECT_EQ(config.normEpsilon, 1e-5);
  EXPECT_EQ(config.ropeTheta, 10000);
  EXPECT_EQ(config.initializerRange, 0.02);
  EXPECT_FALSE(config.tiedEmbeddings);
  EXPECT_TRUE(config.remarks.empty());
}

TEST(Config, LlamaTiedWithRopeParameters) {
  ModelConfig config = configOf("llama-tied");
  EXPECT_EQ(config.headDim, 10);
  EXPECT_EQ(config.kvHeads, config.heads) << "absent num_key_value_heads";
  EXPECT_EQ(config.ropeTheta, 500000);
  EXPECT_TRUE(config.tiedEmbeddings);
}

TEST(Config, Qwen2) {
  ModelConfig config = configOf("qwen2-tiny");
  EXPECT_EQ(config.family->name, "qwen2");
  EXPECT_EQ(config.kvHeads, 1);
  EXPECT_EQ(config.ropeTheta, 1e6);
}

TEST(Config, Qwen3) {
  ModelConfig config = configOf("qwen3-tiny");
  EXPECT_EQ(config.family->name, "qwen3");
  EXPECT_EQ(config.hidden, 34);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kvHeads, 2);
  EXPECT_EQ(config.headDim, 12) << "explicit, not hidden / heads";
  EXPECT_TRUE(config.tiedEmbeddings);
}

TEST(Config, Mistral) {
  ModelConfig config = configOf("mistral-tiny");
  EXPECT_EQ(config.family->name, "mistral");
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.headDim, 6);
}

TEST(Config, Gpt2) {
  ModelConfig config = configOf("gpt2-tiny");
  EXPECT_EQ(config.family->name, "gpt2");
  EXPECT_EQ(config.hidden, 39);
  EXPECT_EQ(config.heads, 3);
  EXPECT_EQ(config.kvHeads, 3);
  EXPECT_EQ(config.headDim, 13);
  EXPECT_EQ(config.intermediate, 67);
  EXPECT_EQ(config.maxPositions, 29);
  EXPECT_TRUE(config.tiedEmbeddings);
}

TEST(Config, Demo) {
  absl::StatusOr<ModelConfig> config = readConfig(BOWLINE_TEST_DIR "/../examples/demo");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocabulary, 256) << "one token per byte";
}

TEST(Config, PublishedGpt2SmallWithDropout) {
  absl::StatusOr<ModelConfig> config = parseConfig(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
    "summary_type": "cls_index", "summary_use_proj": true,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})",
                                                   "gpt2/config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->intermediate, 4 * 768);
  ASSERT_EQ(config->remarks.size(), 3u);
  EXPECT_EQ(config->remarks[0], "'gpt2/config.json': \"attn_pdrop\" = 0.1 has no effect: training uses no dropout");
}

TEST(Config, PublishedGpt2Medium) {
  json document = {{"architectures", {"GPT2LMHeadModel"}},
                   {"model_type", "gpt2"},
                   {"n_ctx", 1024},
                   {"n_embd", 1024},
                   {"n_head", 16},
                   {"n_layer", 24},
                   {"n_positions", 1024},
                   {"n_special", 0},
                   {"predict_special_tokens", true},
                   {"vocab_size", 50257}};
  absl::StatusOr<ModelConfig> config = parse(document);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers, 24);
  document["n_special"] = 4;
  EXPECT_NE(parse(document).status().message().find("n_special"), std::string::npos);
}

TEST(Config, PublishedLlama2) {
  absl::StatusOr<ModelConfig> config = parseConfig(R"({
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 4096,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false,
    "torch_dtype": "float16", "transformers_version": "4.31.0.dev0", "use_cache": true, "vocab_size": 32000})",
                                                   "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->headDim, 128);
}

TEST(Config, PublishedQwen3) {
  absl::StatusOr<ModelConfig> config = parseConfig(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
    "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 151936})",
                                                   "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->headDim, 128);
  EXPECT_EQ(config->ropeTheta, 1e6);
  EXPECT_TRUE(config->tiedEmbeddings);
}

TEST(Config, PublishedMistral) {
  const std::string common = R"({
    "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768,
    "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, )";
  for (const char *version :
       {R"("rope_theta": 10000.0, "sliding_window": 4096, "transformers_version": "4.34.0.dev0", "vocab_size": 32000})",
        R"("attention_dropout": 0.0, "rope_theta": 1000000.0, "sliding_window": null, "transformers_version": "4.42.0",
           "vocab_size": 32768})"}) {
    absl::StatusOr<ModelConfig> config = parseConfig(common + version, "config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->headDim, 128);
    EXPECT_EQ(config->kvHeads, 8);
  }
}

// The families' own code gives absent sizes other values than Llama's does; null is that of Llama's.
/// Weights are compared by these keys: those that a family reads, and those that it refuses with other values.
TEST(Config, KeysOfTheFunction) {
  absl::StatusOr<ModelConfig> mistral = readConfig(BOWLINE_TEST_DIR "/Models/mistral-tiny");
  ASSERT_TRUE(mistral.ok()) << mistral.status();
  for (const char *key : {"model_type", "num_attention_heads", "num_key_value_heads", "rms_norm_eps", "hidden_act",
                          "rope_theta", "tie_word_embeddings", "attn_logit_softcapping"})
    EXPECT_EQ(mistral->functionKeys.count(key), 1u) << key;
  EXPECT_TRUE(mistral->functionKeys.at("sliding_window").nullIsValue);
  EXPECT_FALSE(mistral->functionKeys.at("num_key_value_heads").nullIsValue);
  EXPECT_EQ(mistral->functionKeys.at("rope_theta").absent, 10000.0);
  EXPECT_EQ(mistral->functionKeys.at("hidden_size").absent, std::nullopt);
  for (const char *key : {"architectures", "max_position_embeddings", "initializer_range", "attention_dropout",
                          "torch_dtype", "use_cache", "eos_token_id"})
    EXPECT_EQ(mistral->functionKeys.count(key), 0u) << key;

  absl::StatusOr<ModelConfig> gpt2 = readConfig(BOWLINE_TEST_DIR "/Models/gpt2-tiny");
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  for (const char *key : {"n_head", "layer_norm_epsilon", "activation_function", "scale_attn_weights",
                          "scale_attn_by_inverse_layer_idx", "tie_word_embeddings"})
    EXPECT_EQ(gpt2->functionKeys.count(key), 1u) << key;
  EXPECT_EQ(gpt2->functionKeys.count("initializer_range"), 0u);
}

TEST(Config, AbsentSizesOfFamilies) {
  json qwen3 = minimal("qwen3"), mistral = minimal("mistral");
  for (json *document : {&qwen3, &mistral}) {
    (*document)["num_attention_heads"] = 32, (*document)["hidden_size"] = 64;
    document->erase("num_key_value_heads");
  }
  EXPECT_EQ(parse(qwen3)->kvHeads, 32);
  EXPECT_EQ(parse(qwen3)->headDim, 128);
  EXPECT_EQ(parse(mistral)->kvHeads, 8);
  EXPECT_EQ(parse(mistral)->headDim, 2);
  for (json *document : {&qwen3, &mistral})
    (*document)["num_key_value_heads"] = (*document)["head_dim"] = nullptr;
  EXPECT_EQ(parse(qwen3)->headDim, 2);
  EXPECT_EQ(parse(mistral)->kvHeads, 32);
}

TEST(Config, Defaults) {
  absl::StatusOr<ModelConfig> llama = parse(minimal("llama")), gpt2 = parse(minimal("gpt2"));
  ASSERT_TRUE(llama.ok()) << llama.status();
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  EXPECT_EQ(llama->normEpsilon, 1e-6);
  EXPECT_EQ(llama->ropeTheta, 10000);
  EXPECT_EQ(llama->initializerRange, 0.02);
  EXPECT_FALSE(llama->tiedEmbeddings);
  EXPECT_EQ(gpt2->normEpsilon, 1e-5);
  EXPECT_EQ(gpt2->intermediate, 96);
  EXPECT_TRUE(gpt2->tiedEmbeddings);
}

//===----------------------------------------------------------------------===//
// Keys that change nothing
//===----------------------------------------------------------------------===//

// Keys of published files and their mirrors, beside the sizes.
TEST(Config, KeysOfPublishedFilesAndMirrors) {
  const std::pair<absl::string_view, const char *> tests[] = {
      {"gpt2", R"({"_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}})"},
      {"gpt2", R"({"n_special": 0, "predict_special_tokens": true})"},
      {"gpt2", R"({"n_special": null, "n_inner": null, "pruned_heads": {}, "use_bfloat16": false})"},
      {"gpt2", R"({"finetuning_task": null, "num_labels": 1, "output_attentions": false, "torchscript": false})"},
      {"llama", R"({"unsloth_fixed": true, "unsloth_version": "2025.3.14", "pad_token": "<pad>"})"},
      {"llama", R"({"max_sequence_length": 2048, "pad_token_id": -1, "_some_tool": {"x": [1]}})"},
      {"llama", R"({"tokenizer_model_max_length": 4096, "tokenizer_padding_side": "right", "use_flash_attn": true})"},
      {"llama", R"({"rope_scaling": null, "layer_norm_type": null, "num_experts": 0, "num_local_experts": null})"},
      {"llama", R"({"auto_map": {"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"}})"},
      {"qwen2", R"({"auto_map": {"AutoModel": "modeling_qwen2.Qwen2Model"}})"},
      // Keys of other families whose values switch the feature off.
      {"mistral", R"({"sliding_window": null, "attention_bias": false, "use_sliding_window": false})"},
      {"mistral", R"({"sliding_window": null, "layer_types": ["full_attention", "full_attention"]})"},
      {"llama", R"({"hidden_act": "swish", "no_rope_layers": [1, 1], "use_sliding_window": false})"},
      {"llama", R"({"embd_pdrop": 0.0, "z_loss": 0.0, "output_router_logits": false, "base_model": "x"})"},
      {"mistral", R"({"sliding_window": null, "use_sliding_window": true})"},
      {"llama", R"({"sliding_window": null, "use_sliding_window": true})"},
      {"qwen2", R"({"attention_bias": true, "use_parallel_residual": false})"},
      {"qwen3", R"({"use_qk_norm": true, "qk_layernorm": true})"},
      {"gpt2", R"({"multi_query": false, "num_experts": 0, "residual_multiplier": 1.0, "use_sliding_window": false})"},
      {"mistral", R"({"_attn_implementation_internal": "sdpa", "quantization_config": null, "dtype": "bfloat16"})"},
  };
  for (auto [family, keys] : tests) {
    json document = minimal(family);
    document.update(json::parse(keys));
    EXPECT_TRUE(parse(document).ok()) << family << keys << parse(document).status();
  }
}

TEST(Config, NotesOfKeysThatAreLeftOut) {
  json document = minimal("llama");
  document["_num_labels"] = 1, document["layer_norm_type"] = nullptr, document["use_cache"] = true;
  absl::StatusOr<ModelConfig> config = parse(document);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->remarks.size(), 1u);
  EXPECT_EQ(config->remarks[0],
            "'dir/config.json': no effect: \"_num_labels\", \"layer_norm_type\"; a key that is null "
            "counts as absent, one that begins with _ is a library's own, and others say that something is off");
  // Another order of the same products, as in the first revision of Llama 2 13B.
  document = minimal("llama");
  document["pretraining_tp"] = 2, document["gradient_checkpointing"] = false, document["use_bfloat16"] = nullptr;
  ASSERT_EQ(parse(document)->remarks.size(), 1u);
  EXPECT_THAT(parse(document)->remarks[0], HasSubstr("no effect: \"pretraining_tp\"; such keys choose another way"));
  document["pretraining_tp"] = 1;
  EXPECT_TRUE(parse(document)->remarks.empty());
  document = minimal("llama");
  document["auto_map"] = {{"AutoModelForCausalLM", "modeling.LlamaForCausalLM"}};
  ASSERT_EQ(parse(document)->remarks.size(), 1u);
  EXPECT_THAT(parse(document)->remarks[0], HasSubstr("which is not read"));
  expectRefused(document,
                {"llama", "auto_map", R"({"AutoModelForCausalLM":"modeling_x.OtherForCausalLM"})", "another model"});
  expectRefused(document, {"llama", "auto_map", "3", "another model"});
}

// distilgpt2 as it was first published, and a Llama without its longest sequence.
TEST(Config, ArchitecturesStandForAnAbsentModelType) {
  json document = minimal("gpt2");
  document.erase("model_type");
  EXPECT_THAT(std::string(parse(document).status().message()), HasSubstr("\"model_type\" is missing"));
  document["architectures"] = {"GPT2LMHeadModel"};
  absl::StatusOr<ModelConfig> config = parse(document);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->family->name, "gpt2");
  ASSERT_EQ(config->remarks.size(), 1u);
  EXPECT_THAT(config->remarks[0], HasSubstr("no \"model_type\"; \"architectures\" = [\"GPT2LMHeadModel\"]"));
  document["architectures"] = {"MambaForCausalLM"};
  EXPECT_THAT(std::string(parse(document).status().message()), HasSubstr("\"model_type\" is missing"));
  document = minimal("llama");
  document.erase("model_type"), document.erase("max_position_embeddings");
  document["architectures"] = {"LlamaForCausalLM"};
  EXPECT_THAT(std::string(parse(document).status().message()), HasSubstr("\"max_position_embeddings\" is missing"));
}

// Of 2 layers that take 16 positions.
TEST(Config, WindowsThatHideNothing) {
  for (const char *family : {"qwen2", "qwen3"}) {
    for (const char *keys : {R"({"max_window_layers": 2, "sliding_window": 4})", R"({"sliding_window": null})",
                             R"({"sliding_window": 16, "max_window_layers": 0})", R"({"sliding_window": 4})",
                             R"({"layer_types": ["full_attention", "full_attention"], "max_window_layers": 0})"}) {
      json document = minimal(family);
      document["use_sliding_window"] = true;
      document.update(json::parse(keys));
      absl::StatusOr<ModelConfig> config = parse(document);
      ASSERT_TRUE(config.ok()) << keys << config.status();
      ASSERT_EQ(config->remarks.size(), 1u);
      EXPECT_THAT(config->remarks[0], HasSubstr("\"use_sliding_window\" = true has no effect"));
      document["use_sliding_window"] = false;
      EXPECT_TRUE(parse(document)->remarks.empty());
    }
    json typed = minimal(family);
    typed["layer_types"] = {"sliding_attention", "full_attention"};
    typed["use_sliding_window"] = true, typed["sliding_window"] = 16;
    ASSERT_TRUE(parse(typed).ok()) << parse(typed).status();
    EXPECT_THAT(parse(typed)->remarks[0], HasSubstr("\"use_sliding_window\" = true has no effect"));
    json document = minimal(family);
    document["sliding_window"] = 15, document["max_window_layers"] = 1;
    EXPECT_EQ(parse(document)->maxPositions, 16);
    expectRefused(document, {family, "use_sliding_window", "\"yes\"", "should be true or false"});
    document["use_sliding_window"] = true;
    expectRefused(document, {family, "max_window_layers", "-1", "an integer from 0 to"});
    expectRefused(document, {family, "sliding_window", "0", "an integer from 1 to"});
  }
}

// Of 16 positions; in shorter sequences the windows hide nothing.
TEST(Config, WindowsThatHideKeysLimitThePositions) {
  for (const char *family : {"qwen2", "qwen3", "llama"}) {
    json document = minimal(family);
    const bool isLlama = document["model_type"] == "llama";
    document["sliding_window"] = 15;
    if (!isLlama)
      document["use_sliding_window"] = true, document["max_window_layers"] = 1;
    absl::StatusOr<ModelConfig> config = parse(document);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->maxPositions, 15);
    EXPECT_EQ(config->functionKeys.count("sliding_window"), 0u);
    ASSERT_EQ(config->remarks.size(), 1u);
    EXPECT_THAT(config->remarks[0], HasSubstr(isLlama ? "layers from 0 on see the last 15 keys alone"
                                                      : "layers from 1 on see the last 15 keys alone"));
    EXPECT_THAT(config->positionsSource, HasSubstr("windows are not supported"));
  }
  // The same by a type for each layer.
  json typed = minimal("qwen2");
  typed["use_sliding_window"] = true, typed["sliding_window"] = 15;
  typed["layer_types"] = {"full_attention", "sliding_attention"};
  absl::StatusOr<ModelConfig> limited = parse(typed);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->maxPositions, 15);
  EXPECT_THAT(limited->remarks[0], HasSubstr("layers from 1 on see the last 15 keys alone"));
  typed["sliding_window"] = nullptr;
  EXPECT_THAT(std::string(parse(typed).status().message()), HasSubstr("gives layer 1 the type \"sliding_attention\""));

  json document = minimal("llama");
  for (const char *window : {"16", "4096"}) {
    document["sliding_window"] = json::parse(window);
    absl::StatusOr<ModelConfig> config = parse(document);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->maxPositions, 16);
    ASSERT_EQ(config->remarks.size(), 1u);
    EXPECT_THAT(config->remarks[0], HasSubstr(absl::StrCat("\"sliding_window\" = ", window, " has no effect")));
  }
  document["sliding_window"] = nullptr;
  EXPECT_TRUE(parse(document)->remarks.empty());
  expectRefused(document, {"llama", "sliding_window", "0", "an integer from 1 to"});
}

// Llama 3.1 as transformers 5 writes it, and with the keys that 3.2 has instead.
TEST(Config, PublishedLlama31And32) {
  json document = json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
    "dtype": "bfloat16", "eos_token_id": [128001, 128008, 128009], "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "pad_token_id": null, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_parameters": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_theta": 500000.0, "rope_type": "llama3"},
    "tie_word_embeddings": false, "transformers_version": "5.9.0", "use_cache": true, "vocab_size": 128256})");
  absl::StatusOr<ModelConfig> config = parse(document);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ropeTheta, 500000);
  EXPECT_EQ(config->ropeScaling, (RopeScaling{8, 8192, 1, 4}));
  json scaling = document["rope_parameters"];
  document.erase("rope_parameters");
  document["rope_theta"] = scaling["rope_theta"];
  scaling.erase("rope_theta");
  scaling["factor"] = 32.0;
  document["rope_scaling"] = scaling;
  document.update({{"head_dim", 64},
                   {"hidden_size", 2048},
                   {"intermediate_size", 8192},
                   {"num_hidden_layers", 16},
                   {"tie_word_embeddings", true}});
  config = parse(document);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ropeTheta, 500000);
  EXPECT_EQ(config->ropeScaling, (RopeScaling{32, 8192, 1, 4}));
}

static const char kLlama3[] = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";

TEST(Config, RopeScaling) {
  json document = minimal("llama");
  EXPECT_EQ(parse(document)->ropeScaling, RopeScaling());
  const std::pair<const char *, RopeScaling> tests[] = {
      {"null", {}},
      {"{}", {}},
      {R"({"rope_type": "default"})", {}},
      {R"({"type": "default", "rope_type": null})", {}},
      {R"({"rope_type": "default", "factor": null, "beta_fast": null, "partial_rotary_factor": null})", {}},
      {R"({"rope_type": "default", "factor": 1.0, "original_max_position_embeddings": 4096})", {}},
      {R"({"rope_type": "default", "factor": 4.0, "attention_factor": 2.0, "mrope_section": [16, 24, 24]})", {}},
      {R"({"type": "linear", "factor": 4.0, "attention_factor": 1, "low_freq_factor": null})", {4}},
      {R"({"type": "linear", "factor": 4.0})", {4}},
      {R"({"type": "linear", "rope_type": "linear", "factor": 2})", {2}},
      {kLlama3, {8, 8192, 1, 4}},
  };
  for (const char *key : {"rope_scaling", "rope_parameters"})
    for (auto [value, scaling] : tests) {
      document = minimal("llama");
      document[key] = json::parse(value);
      absl::StatusOr<ModelConfig> config = parse(document);
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->ropeScaling, scaling) << key << value;
    }
  // Files that say it twice have to say the same.
  document["rope_scaling"] = json::parse(kLlama3);
  EXPECT_EQ(parse(document)->ropeScaling.factor, 8);
  document["rope_scaling"]["factor"] = 16;
  EXPECT_THAT(std::string(parse(document).status().message()), HasSubstr("contradicts \"rope_scaling\""));
}

TEST(Config, RefusedRopeScaling) {
  auto with = [](const char *key, json value) {
    json scaling = json::parse(kLlama3);
    scaling[key] = std::move(value);
    return scaling;
  };
  const std::pair<json, const char *> refused[] = {
      {{{"type", "yarn"}, {"factor", 4}}, "\"type\" = \"yarn\" is not supported; use default, linear or llama3"},
      {{{"rope_type", "longrope"}}, "\"rope_type\" = \"longrope\" is not supported"},
      {{{"rope_type", "dynamic"}, {"factor", 2}}, "\"rope_type\" = \"dynamic\" is not supported"},
      {{{"type", "linear"}}, "rope_type \"linear\" needs a number"},
      {{{"type", "linear"}, {"rope_type", "llama3"}, {"factor", 2}}, "contradicts \"rope_type\" = \"llama3\""},
      {{{"type", "linear"}, {"factor", 0.5}}, "should be at least 1"},
      {{{"type", "linear"}, {"factor", -2}}, "greater than 0"},
      {{{"type", "linear"}, {"factor", "2"}}, "greater than 0"},
      {{{"factor", 2}}, "\"factor\" = 2 is not supported with rope_type \"default\""},
      {{{"type", "linear"}, {"factor", 2}, {"low_freq_factor", 1}}, "is not supported with rope_type \"linear\""},
      {with("low_freq_factor", nullptr), "\"low_freq_factor\" = null is not supported; rope_type \"llama3\" needs"},
      {with("low_freq_factor", 4), "should be less than \"high_freq_factor\" = 4"},
      {with("high_freq_factor", 0), "greater than 0"},
      {with("original_max_position_embeddings", 0), "an integer from 1 to"},
      {with("original_max_position_embeddings", nullptr), "is missing"},
      {with("attention_factor", 0.5), "is not supported with rope_type \"llama3\""},
  };
  for (const auto &[value, says] : refused) {
    json document = minimal("llama");
    document["rope_scaling"] = value;
    absl::Status status = parse(document).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("'dir/config.json': in \"rope_scaling\": ")) << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST(Config, RopeParameters) {
  const std::pair<const char *, const char *> refused[] = {
      {R"({"rope_type":"yarn"})", "\"rope_type\" = \"yarn\" is not supported; use default"},
      {R"({"rope_type":"default","beta_fast":4.0})", "\"beta_fast\" = 4.0 is not supported"},
      {R"({"partial_rotary_factor":0.5})", "\"partial_rotary_factor\" = 0.5 changes the mathematics"},
      {R"({"rope_theta":-1})", "\"rope_theta\" = -1 is not supported"},
      {R"({"full_attention":{"rope_type":"default"}})", "\"full_attention\" = {\"rope_type\":\"default\"} is not"},
  };
  for (auto [value, says] : refused) {
    json document = minimal("llama");
    document["rope_parameters"] = json::parse(value);
    absl::Status status = parse(document).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("'dir/config.json': in \"rope_parameters\": ")) << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
  json document = minimal("llama");
  document["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}, {"partial_rotary_factor", 1.0}};
  EXPECT_EQ(parse(document)->ropeTheta, 5e5);
  document["rope_theta"] = 5e5;
  EXPECT_EQ(parse(document)->ropeTheta, 5e5);
  document["rope_theta"] = 1e4;
  EXPECT_THAT(std::string(parse(document).status().message()), HasSubstr("contradicts \"rope_theta\" = 10000"));
}

TEST(Config, FamiliesHaveNamesOfTheirOwn) {
  std::set<absl::string_view> names, classes;
  for (const Family *family : families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_TRUE(classes.insert(family->modelClass).second) << family->modelClass;
  }
}

TEST(Config, HarmlessKeysAreReallyUnused) {
  // No key is both read and listed as harmless: the list would then hide a value that matters.
  for (const Family *family : families()) {
    const json complete = minimal(family->name);
    for (const auto &[key, value] : complete.items())
      EXPECT_FALSE(isHarmlessKey(*family, key)) << key;
    for (const FixedKey &fixed : fixedKeys(*family))
      EXPECT_FALSE(isHarmlessKey(*family, fixed.key)) << fixed.key;
    for (absl::string_view key : family->dropoutKeys)
      EXPECT_FALSE(isHarmlessKey(*family, key)) << key;
  }
}
