#include "runtime/base/gguf_families.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bowline {
namespace {

constexpr GgufName kRotaryModel[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};
constexpr GgufName kRotaryLayer[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
constexpr GgufName kRotaryIntegers[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
};
constexpr absl::string_view kRotaryKeys[] = {
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.type",
    "vocab_size",
};

constexpr GgufName kGpt2Model[] = {
    {"token_embd.weight", "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {"output.weight", "lm_head.weight"},
};
constexpr GgufName kGpt2Layer[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", true},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", true},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", true},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", true},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};
constexpr GgufName kGpt2Integers[] = {
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},     {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"}, {"attention.head_count", "n_head"},
};
constexpr absl::string_view kGpt2Keys[] = {
    "attention.head_count_kv",
    "attention.layer_norm_epsilon",
    "vocab_size",
};

constexpr GgufFamily Rotary(absl::string_view name, absl::string_view model_class, bool is_interleaved) {
  return {name, model_class, is_interleaved, "model.layers.", kRotaryModel, kRotaryLayer, kRotaryIntegers, kRotaryKeys};
}

constexpr GgufFamily kFamilies[] = {
    Rotary("llama", "LlamaForCausalLM", true),
    Rotary("qwen2", "Qwen2ForCausalLM", false),
    Rotary("qwen3", "Qwen3ForCausalLM", false),
    {"gpt2", "GPT2LMHeadModel", false, "transformer.h.", kGpt2Model, kGpt2Layer, kGpt2Integers, kGpt2Keys},
};

const GgufName* Find(absl::Span<const GgufName> names, absl::string_view gguf) {
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const GgufName& name) { return name.gguf == gguf; });
  return found == names.end() ? nullptr : found;
}

}  // namespace

const GgufFamily* FindGgufFamily(absl::string_view architecture) {
  const auto* const found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                         [&](const GgufFamily& family) { return family.name == architecture; });
  return found == std::end(kFamilies) ? nullptr : found;
}

std::string NamesOfGgufFamilies() {
  std::string names;
  for (const GgufFamily& family : kFamilies) {
    const bool is_last = &family == std::end(kFamilies) - 1;
    absl::StrAppend(&names, names.empty() ? "" : is_last ? " and " : ", ", family.name);
  }
  return names;
}

GgufTensorKey KeyOfGgufTensor(const GgufFamily& family, absl::string_view name) {
  if (const GgufName* const known = Find(family.model_names, name)) return {std::string(known->key)};
  if (!absl::ConsumePrefix(&name, "blk.")) return {};
  const size_t dot = name.find('.');
  uint32_t layer;
  // One spelling for each layer, so that two tensors have two keys.
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(name.substr(0, dot), &layer) ||
      absl::StrCat(layer) != name.substr(0, dot)) {
    return {};
  }
  const GgufName* const known = Find(family.layer_names, name.substr(dot + 1));
  if (known == nullptr) return {};
  return {absl::StrCat(family.layers, layer, ".", known->key), known->is_transposed};
}

bool IsKeyOfGgufFamily(const GgufFamily& family, absl::string_view suffix) {
  return Find(family.integers, suffix) != nullptr ||
         std::find(family.more_keys.begin(), family.more_keys.end(), suffix) != family.more_keys.end();
}

}  // namespace bowline
