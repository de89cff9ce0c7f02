#include "runtime/base/gguf_model.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/rope_factors.h"

namespace bowline {
namespace {

struct Family {
  absl::string_view name;  // in general.architecture and as model_type
  absl::string_view model_class;
  bool is_interleaved;  // rows of queries and keys
};
constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", true},
    {"qwen2", "Qwen2ForCausalLM", false},
    {"qwen3", "Qwen3ForCausalLM", false},
};

const Family* FindFamily(absl::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return f.name == name; });
  return found == std::end(kFamilies) ? nullptr : found;
}

struct Name {
  absl::string_view gguf, key;
};
constexpr Name kModelNames[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};
// After "blk.N." and "model.layers.N.".
constexpr Name kLayerNames[] = {
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

// Empty for a name that these architectures do not have.
std::string KeyOf(absl::string_view name) {
  for (const Name& known : kModelNames) {
    if (known.gguf == name) return std::string(known.key);
  }
  if (!absl::ConsumePrefix(&name, "blk.")) return "";
  const size_t dot = name.find('.');
  uint32_t layer;
  // One spelling for each layer, so that two tensors have two keys.
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(name.substr(0, dot), &layer) ||
      absl::StrCat(layer) != name.substr(0, dot)) {
    return "";
  }
  for (const Name& known : kLayerNames) {
    if (known.gguf == name.substr(dot + 1)) return absl::StrCat("model.layers.", layer, ".", known.key);
  }
  return "";
}

// Keys of an architecture that ReadConfig reads, or that change nothing.
constexpr absl::string_view kKnownKeys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.type",
    "vocab_size",
};
// Mistral's files are of the architecture llama. The others have no such key, or no such window.
constexpr absl::string_view kLlamaWindow = "llama.attention.sliding_window";

constexpr absl::string_view kFrequencyFactors = "rope_freqs.weight";

}  // namespace

bool IsGgufPath(absl::string_view path) { return absl::EndsWith(path, ".gguf"); }

absl::StatusOr<GgufModel> GgufModel::Open(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  return FromFile(std::move(file));
}

absl::StatusOr<GgufModel> GgufModel::FromFile(GgufFile file) {
  GgufModel model(std::move(file));
  BOWLINE_RETURN_IF_ERROR(model.ReadConfig());
  BOWLINE_RETURN_IF_ERROR(model.RefuseUnknownKeys());
  BOWLINE_RETURN_IF_ERROR(model.ReadTensors());
  return model;
}

absl::Status GgufModel::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("'", file_.path(), "': ", what));
}

absl::Status GgufModel::ReadConfig() {
  if (file_.Has("split.count")) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t parts, file_.Integer("split.count"));
    if (parts > 1) {
      return absl::UnimplementedError(absl::StrCat("'", file_.path(), "' is one of ", parts,
                                                   " parts of a split model, which are not read; merge them first"));
    }
  }
  BOWLINE_ASSIGN_OR_RETURN(const absl::string_view name, file_.String("general.architecture"));
  const Family* const family = FindFamily(name);
  if (family == nullptr) {
    return absl::UnimplementedError(absl::StrCat("'", file_.path(), "': general.architecture \"",
                                                 absl::Utf8SafeCHexEscape(name),
                                                 "\" is not read; llama, qwen2 and qwen3 are"));
  }
  architecture_ = std::string(name);
  const auto key = [&](absl::string_view suffix) { return absl::StrCat(architecture_, ".", suffix); };
  config_ = {{"architectures", {family->model_class}}, {"model_type", family->name}, {"hidden_act", "silu"}};
  constexpr Name kIntegers[] = {
      {"context_length", "max_position_embeddings"},
      {"embedding_length", "hidden_size"},
      {"block_count", "num_hidden_layers"},
      {"feed_forward_length", "intermediate_size"},
      {"attention.head_count", "num_attention_heads"},
  };
  for (const Name& integer : kIntegers) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t value, file_.Integer(key(integer.gguf)));
    config_[std::string(integer.key)] = value;
  }
  const auto heads = config_["num_attention_heads"].get<int64_t>(), width = config_["hidden_size"].get<int64_t>();
  if (heads < 1 || width < 1) return Error("has no heads or no width; the file is corrupt");
  const auto integer_or = [&](absl::string_view suffix, int64_t fallback) -> absl::StatusOr<int64_t> {
    return file_.Has(key(suffix)) ? file_.Integer(key(suffix)) : fallback;
  };
  BOWLINE_ASSIGN_OR_RETURN(config_["num_key_value_heads"], integer_or("attention.head_count_kv", heads));
  BOWLINE_ASSIGN_OR_RETURN(const int64_t size, integer_or("attention.key_length", width / heads));
  for (const absl::string_view same : {"attention.value_length", "rope.dimension_count"}) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t other, integer_or(same, size));
    if (other != size) {
      return Error(absl::StrCat("\"", key(same), "\" = ", other, " is not supported; heads have ", size, " elements"));
    }
  }
  config_["head_dim"] = size;
  BOWLINE_ASSIGN_OR_RETURN(config_["rms_norm_eps"], file_.Number(key("attention.layer_norm_rms_epsilon")));
  BOWLINE_RETURN_IF_ERROR(ReadRotation(size));
  if (file_.Has(kLlamaWindow)) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t window, file_.Integer(kLlamaWindow));
    if (window > 0) {
      config_["model_type"] = "mistral";
      config_["architectures"] = {"MistralForCausalLM"};
      config_["sliding_window"] = window;
    }
  }
  const GgufTensor* const embedding = file_.Find("token_embd.weight");
  if (embedding == nullptr) return Error("tensor 'token_embd.weight' is missing; use a complete model");
  config_["vocab_size"] = embedding->shape.front();
  config_["tie_word_embeddings"] = file_.Find("output.weight") == nullptr;
  return absl::OkStatus();
}

absl::Status GgufModel::ReadRotation(int64_t head_dim) {
  const auto key = [&](absl::string_view suffix) { return absl::StrCat(architecture_, ".rope.", suffix); };
  config_["rope_theta"] = 10000.0;
  if (file_.Has(key("freq_base"))) {
    BOWLINE_ASSIGN_OR_RETURN(config_["rope_theta"], file_.Number(key("freq_base")));
  }
  // Positions are scaled where there is a factor, unless the type forbids it; 0 stands for no factor.
  absl::string_view type = "linear";
  double factor = 0;
  if (file_.Has(key("scaling.type"))) {
    BOWLINE_ASSIGN_OR_RETURN(type, file_.String(key("scaling.type")));
  }
  if (file_.Has(key("scaling.factor"))) {
    BOWLINE_ASSIGN_OR_RETURN(factor, file_.Number(key("scaling.factor")));
  }
  if (type != "none" && type != "linear") {
    return Error(absl::StrCat("\"", key("scaling.type"), "\" = \"", absl::Utf8SafeCHexEscape(type),
                              "\" is not supported; \"none\" and \"linear\" are"));
  }
  if (type == "linear" && factor != 0 && factor != 1) {
    config_["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  }
  const GgufTensor* const stored = file_.Find(kFrequencyFactors);
  if (stored == nullptr) return absl::OkStatus();
  const auto refuse = [&](absl::string_view what) {
    return Error(absl::StrCat("tensor '", kFrequencyFactors, "' (", DescribeTensor(*stored), ") ", what));
  };
  if (config_.contains("rope_scaling")) return refuse("is not supported beside a factor of scaling");
  if (stored->shape.size() != 1 || stored->shape[0] > head_dim / 2 || stored->shape[0] * 2 != head_dim) {
    return refuse(absl::StrCat("should have a factor for each pair of the ", head_dim, " elements of a head"));
  }
  std::vector<float> factors(static_cast<size_t>(stored->elements));
  file_.ReadRow(*stored, 0, absl::MakeSpan(factors));
  const std::optional<nlohmann::json> scaling = RopeScalingOfFactors(factors, config_["rope_theta"].get<double>());
  if (!scaling.has_value()) {
    return refuse("holds other factors than those of rope_type \"llama3\" and \"linear\", which are supported");
  }
  if (!scaling->empty()) config_["rope_scaling"] = *scaling;
  return absl::OkStatus();
}

absl::Status GgufModel::RefuseUnknownKeys() const {
  for (const auto& [key, value] : file_.metadata()) {
    absl::string_view suffix = key;
    if (!absl::ConsumePrefix(&suffix, absl::StrCat(architecture_, ".")) || key == kLlamaWindow) continue;
    if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), suffix) == std::end(kKnownKeys)) {
      return Error(absl::StrCat("the key \"", absl::Utf8SafeCHexEscape(key),
                                "\" is not supported, and it may change the mathematics; use another model"));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufModel::ReadTensors() {
  const bool is_interleaved = FindFamily(architecture_)->is_interleaved;
  for (const GgufTensor& stored : file_.tensors()) {
    if (stored.name == kFrequencyFactors) continue;
    Tensor tensor{KeyOf(stored.name), &stored};
    if (tensor.key.empty()) {
      return Error(absl::StrCat("tensor '", absl::Utf8SafeCHexEscape(stored.name), "' is not known of ", architecture_,
                                ", and it may change the mathematics; use another model"));
    }
    if (is_interleaved && absl::StrContains(tensor.key, ".self_attn.q_proj.")) {
      tensor.heads = config_["num_attention_heads"].get<int64_t>();
    } else if (is_interleaved && absl::StrContains(tensor.key, ".self_attn.k_proj.")) {
      tensor.heads = config_["num_key_value_heads"].get<int64_t>();
    }
    if (tensor.heads != 0 && (stored.shape.size() != 2 || tensor.heads < 1 || stored.shape[0] % 2 != 0 ||
                              (stored.shape[0] / 2) % tensor.heads != 0)) {
      return Error(absl::StrCat("tensor '", stored.name, "' is ", DescribeTensor(stored),
                                ", which does not divide into ", tensor.heads,
                                " heads of pairs of rows; the file is corrupt"));
    }
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return a.key < b.key; });
  return absl::OkStatus();
}

namespace {

// The number of a row in the file.
int64_t StoredRow(const GgufModel::Tensor& tensor, int64_t row) {
  if (tensor.heads == 0) return row;
  // Rotary positions turn rows i and i + half of a head together, which the file has beside each other.
  const int64_t size = tensor.stored->shape[0] / tensor.heads, half = size / 2, in_head = row % size;
  return row + 2 * (in_head % half) + in_head / half - in_head;
}

}  // namespace

void GgufModel::ReadRow(const Tensor& tensor, int64_t row, absl::Span<float> out) const {
  file_.ReadRow(*tensor.stored, StoredRow(tensor, row), out);
}

absl::Span<const uint8_t> GgufModel::RowBytes(const Tensor& tensor, int64_t row) const {
  const GgufTensor& stored = *tensor.stored;
  const uint64_t bytes =
      stored.bytes / (static_cast<uint64_t>(stored.elements) / static_cast<uint64_t>(stored.shape.back()));
  return file_.Bytes(stored).subspan(static_cast<uint64_t>(StoredRow(tensor, row)) * bytes, bytes);
}

}  // namespace bowline
