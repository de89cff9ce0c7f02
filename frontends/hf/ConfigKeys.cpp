//===- ConfigKeys.cpp - Keys of config.json that are not sizes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ConfigKeys.h"

#include <algorithm>

using namespace bowline;
using namespace bowline::hf;

//===----------------------------------------------------------------------===//
// Keys that must keep one value
//===----------------------------------------------------------------------===//

static const std::vector<FixedKey> &commonFixedKeys() {
  static const auto *keys = new std::vector<FixedKey>{
      {"is_encoder_decoder", {"false"}},         {"add_cross_attention", {"false"}}, {"tie_encoder_decoder", {"false"}},
      {"cross_attention_hidden_size", {"null"}}, {"pruned_heads", {"{}"}},           {"quantization_config", {"null"}},
  };
  return *keys;
}

static std::vector<FixedKey> withCommon(std::vector<FixedKey> keys) {
  keys.insert(keys.end(), commonFixedKeys().begin(), commonFixedKeys().end());
  return keys;
}

/// Rotary positions, gated feed-forward: what Llama and the models derived from it may add.
static std::vector<FixedKey> llamaFixedKeys() {
  return withCommon({
      {"mlp_bias", {"false"}},
      {"rope_scaling", {"null"}},
      {"rope_interleaved", {"false"}},
      {"partial_rotary_factor", {"1"}},
      {"no_rope_layers", {"null", "[]"}},
      {"use_qk_norm", {"false"}},
      {"qk_layernorm", {"false"}},
      {"attention_multiplier", {"null"}},
      {"embedding_multiplier", {"1"}},
      {"residual_multiplier", {"1"}},
      {"logits_scaling", {"1"}},
      {"logit_scale", {"1"}},
      {"attn_logit_softcapping", {"null"}},
      {"final_logit_softcapping", {"null"}},
      {"num_experts", {"null"}},
      {"num_local_experts", {"null"}},
  });
}

absl::Span<const FixedKey> hf::fixedKeys(Family family) {
  static const auto *llama = new std::vector<FixedKey>([] {
    std::vector<FixedKey> keys = llamaFixedKeys();
    keys.push_back({"attention_bias", {"false"}});
    keys.push_back({"sliding_window", {"null"}});
    return keys;
  }());
  // Qwen2 reads `sliding_window` and `max_window_layers` only where `use_sliding_window` is true, and its attention
  // has no key for biases: it always has them for queries, keys and values.
  static const auto *qwen2 = new std::vector<FixedKey>([] {
    std::vector<FixedKey> keys = llamaFixedKeys();
    keys.push_back({"use_sliding_window", {"false"}});
    keys.push_back({"use_mrope", {"false"}});
    return keys;
  }());
  static const auto *gpt2 = new std::vector<FixedKey>(withCommon({
      {"scale_attn_weights", {"true"}},
      {"scale_attn_by_inverse_layer_idx", {"false"}},
  }));
  switch (family) {
  case Family::Llama:
    return *llama;
  case Family::Qwen2:
    return *qwen2;
  case Family::Gpt2:
    return *gpt2;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

absl::Span<const absl::string_view> hf::dropoutKeys(Family family) {
  static constexpr absl::string_view kLlama[] = {"attention_dropout", "hidden_dropout", "residual_dropout"};
  static constexpr absl::string_view kGpt2[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
  return family == Family::Gpt2 ? absl::Span<const absl::string_view>(kGpt2) : kLlama;
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

/// What some token ids mean to a tokenizer. A padding token is embedded, and its embedding trained, as every other.
static constexpr absl::string_view kTokenIdKeys[] = {
    "bos_token_id", "decoder_start_token_id", "eos_token_id", "mask_token_id",
    "pad_token_id", "sep_token_id",           "unk_token_id", "tokenizer_class",
};

/// Where the file came from, and what a program returns besides logits. `torch_dtype` and `dtype` say how the weights
/// are stored, which the weights' own files say too.
static constexpr absl::string_view kBookkeepingKeys[] = {
    "_commit_hash",
    "_name_or_path",
    "dtype",
    "is_llama_config",
    "model_max_length",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_past",
    "return_dict",
    "return_dict_in_generate",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
};

/// Other ways to compute the same function, and whether the model is used as a decoder, which these always are.
static constexpr absl::string_view kExecutionKeys[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "chunk_size_feed_forward",
    "gradient_checkpointing",
    "is_decoder",
    "pretraining_tp",
    "reorder_and_upcast_attn",
    "torchscript",
    "use_bfloat16",
    "use_cache",
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

/// See fixedKeys: without effect as long as `use_sliding_window` is false.
static constexpr absl::string_view kUnusedWindowKeys[] = {"max_window_layers", "sliding_window"};

template <size_t N> static bool contains(const absl::string_view (&keys)[N], absl::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool hf::isHarmlessKey(Family family, absl::string_view key) {
  return contains(kGenerationKeys, key) || contains(kTokenIdKeys, key) || contains(kBookkeepingKeys, key) ||
         contains(kExecutionKeys, key) || contains(kOtherHeadKeys, key) ||
         (family == Family::Qwen2 && contains(kUnusedWindowKeys, key));
}
