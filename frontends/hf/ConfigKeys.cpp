//===- ConfigKeys.cpp - Keys of config.json that are not sizes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ConfigKeys.h"

#include <algorithm>
#include <iterator>
#include <utility>

using namespace bowline;
using namespace bowline::hf;

//===----------------------------------------------------------------------===//
// Keys that must keep one value
//===----------------------------------------------------------------------===//

std::vector<FixedKey> hf::fixedKeys(const Family &family) {
  std::vector<FixedKey> keys = family.fixedKeys;
  keys.push_back({"is_encoder_decoder", {"false"}});
  keys.push_back({"add_cross_attention", {"false"}});
  keys.push_back({"tie_encoder_decoder", {"false"}});
  keys.push_back({"cross_attention_hidden_size", {"null"}});
  keys.push_back({"pruned_heads", {"{}"}});
  keys.push_back({"quantization_config", {"null"}});
  return keys;
}

//===----------------------------------------------------------------------===//
// Keys that change nothing
//===----------------------------------------------------------------------===//

/// Defaults of text generation: how a next token is chosen, which is said on the command line.
static constexpr absl::string_view kGenerationKeys[] = {
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "prefix",
    "remove_invalid_values",
    "repetition_penalty",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
};

/// Token ids with a meaning for tokenizers alone. A model embeds and trains a padding token as every other token.
static constexpr absl::string_view kTokenIdKeys[] = {
    "bos_token", "bos_token_id", "decoder_start_token_id", "eos_token", "eos_token_id", "mask_token_id",
    "pad_token", "pad_token_id", "sep_token_id",           "unk_token", "unk_token_id", "tokenizer_class",
};

/// Keys with the origin of the file, and with results of a program besides logits. `torch_dtype` and `dtype` give the
/// stored type of weights, which the weights' own files give too. Longest texts of tools are bounds of those tools.
static constexpr absl::string_view kBookkeepingKeys[] = {
    "_commit_hash",
    "_name_or_path",
    "base_model",
    "base_model_name_or_path",
    "dtype",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "license",
    "max_seq_len",
    "max_sequence_length",
    "model_max_length",
    "model_name",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_past",
    "return_dict",
    "return_dict_in_generate",
    "seq_length",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_return_dict",
};

/// Other ways to compute the same function, and whether the model is used as a decoder, which these always are.
static constexpr absl::string_view kExecutionKeys[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "attn_implementation_autoset",
    "chunk_size_feed_forward",
    "flash_attn",
    "gradient_checkpointing",
    "gradient_checkpointing_kwargs",
    "is_decoder",
    "pretraining_tp",
    "reorder_and_upcast_attn",
    "torchscript",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention",
    "use_flash_attention_2",
    "use_flash_attn",
    "use_xformers",
};

/// Classification and summary heads, which a language model does not have.
static constexpr absl::string_view kOtherHeadKeys[] = {
    "classifier_dropout",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "tf_legacy_loss",
};

/// Features of other families, and the values (JSON texts) at which these leave out the feature.
static constexpr std::pair<absl::string_view, absl::string_view> kNeutralKeys[] = {
    {"alibi", "false"},
    {"attention_dropout", "0"},
    {"attn_pdrop", "0"},
    {"embd_pdrop", "0"},
    {"embedding_multiplier", "1"},
    {"hidden_dropout", "0"},
    {"logits_scaling", "1"},
    {"mlp_bias", "false"},
    {"multi_query", "false"},
    {"num_experts", "0"},
    {"num_local_experts", "0"},
    {"output_router_logits", "false"},
    {"parallel_attn", "false"},
    {"partial_rotary_factor", "1"},
    {"qk_layernorm", "false"},
    {"resid_pdrop", "0"},
    {"residual_dropout", "0"},
    {"residual_multiplier", "1"},
    {"router_aux_loss_coef", "0"},
    {"use_mrope", "false"},
    {"use_parallel_residual", "false"},
    {"use_qk_norm", "false"},
    {"use_sliding_window", "false"},
    {"z_loss", "0"},
};

/// Lists with a value for each layer: attention without a window, and with rotary positions.
static constexpr std::pair<absl::string_view, absl::string_view> kNeutralLists[] = {
    {"layer_types", R"("full_attention")"},
    {"no_rope_layers", "1"},
};

bool hf::isNeutral(absl::string_view key, const nlohmann::json &value) {
  for (const auto &[neutral, text] : kNeutralKeys)
    if (key == neutral)
      return value == nlohmann::json::parse(text);
  for (const auto &[neutral, text] : kNeutralLists)
    if (key == neutral)
      return value.is_array() && std::all_of(value.begin(), value.end(), [&](const nlohmann::json &layer) {
               return layer == nlohmann::json::parse(text);
             });
  return false;
}

/// Keys that choose another way to compute the same function, and the values at which they choose none.
static constexpr std::pair<absl::string_view, absl::string_view> kUsualExecution[] = {
    {"chunk_size_feed_forward", "0"}, {"gradient_checkpointing", "false"},
    {"pretraining_tp", "1"},          {"reorder_and_upcast_attn", "false"},
    {"torchscript", "false"},         {"use_bfloat16", "false"},
};

bool hf::choosesOtherExecution(absl::string_view key, const nlohmann::json &value) {
  return std::any_of(std::begin(kUsualExecution), std::end(kUsualExecution), [&](const auto &usual) {
    return key == usual.first && !value.is_null() && value != nlohmann::json::parse(usual.second);
  });
}

template <typename Keys> static bool contains(const Keys &keys, absl::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool hf::isPrivateKey(absl::string_view key) { return !key.empty() && key.front() == '_'; }

bool hf::isHarmlessKey(const Family &family, absl::string_view key) {
  return contains(kGenerationKeys, key) || contains(kTokenIdKeys, key) || contains(kBookkeepingKeys, key) ||
         contains(kExecutionKeys, key) || contains(kOtherHeadKeys, key) || contains(family.harmlessKeys, key);
}
