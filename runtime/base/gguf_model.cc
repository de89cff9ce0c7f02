#include "runtime/base/gguf_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/gguf_families.h"
#include "runtime/base/rope_factors.h"

namespace bowline {
namespace {

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
      return absl::InvalidArgumentError(absl::StrCat("'", file_.path(), "' is one of ", parts,
                                                     " parts of a split model, which are not read; merge them first"));
    }
  }
  BOWLINE_ASSIGN_OR_RETURN(const absl::string_view name, file_.String("general.architecture"));
  family_ = FindGgufFamily(name);
  if (family_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("'", file_.path(), "': general.architecture \"",
                                                   absl::Utf8SafeCHexEscape(name), "\" is not read; ",
                                                   NamesOfGgufFamilies(), " are"));
  }
  config_ = {{"architectures", {family_->model_class}}, {"model_type", family_->name}};
  for (const GgufName& integer : family_->integers) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t value, file_.Integer(KeyOf(integer.gguf)));
    config_[std::string(integer.key)] = value;
  }
  BOWLINE_RETURN_IF_ERROR(family_->name == "gpt2" ? ReadGpt2Config() : ReadRotaryConfig());
  const GgufTensor* const embedding = file_.Find("token_embd.weight");
  if (embedding == nullptr) return Error("tensor 'token_embd.weight' is missing; use a complete model");
  config_["vocab_size"] = embedding->shape.front();
  config_["tie_word_embeddings"] = file_.Find("output.weight") == nullptr;
  return absl::OkStatus();
}

std::string GgufModel::KeyOf(absl::string_view suffix) const { return absl::StrCat(family_->name, ".", suffix); }

absl::StatusOr<int64_t> GgufModel::IntegerOr(absl::string_view suffix, int64_t fallback) const {
  const std::string key = KeyOf(suffix);
  return file_.Has(key) ? file_.Integer(key) : fallback;
}

absl::Status GgufModel::ReadGpt2Config() {
  BOWLINE_ASSIGN_OR_RETURN(config_["layer_norm_epsilon"], file_.Number(KeyOf("attention.layer_norm_epsilon")));
  config_["activation_function"] = "gelu_new";  // the only one of this architecture's files
  const auto heads = config_["n_head"].get<int64_t>();
  BOWLINE_ASSIGN_OR_RETURN(const int64_t key_heads, IntegerOr("attention.head_count_kv", heads));
  if (key_heads == heads) return absl::OkStatus();
  return Error(absl::StrCat("\"", KeyOf("attention.head_count_kv"), "\" = ", key_heads,
                            " is not supported; GPT-2 has as many heads of keys as of queries, ", heads));
}

absl::Status GgufModel::ReadRotaryConfig() {
  config_["hidden_act"] = "silu";
  const auto heads = config_["num_attention_heads"].get<int64_t>(), width = config_["hidden_size"].get<int64_t>();
  if (heads < 1 || width < 1) return Error("has no heads or no width; the file is corrupt");
  BOWLINE_ASSIGN_OR_RETURN(config_["num_key_value_heads"], IntegerOr("attention.head_count_kv", heads));
  BOWLINE_ASSIGN_OR_RETURN(const int64_t size, IntegerOr("attention.key_length", width / heads));
  for (const absl::string_view same : {"attention.value_length", "rope.dimension_count"}) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t other, IntegerOr(same, size));
    if (other != size) {
      return Error(
          absl::StrCat("\"", KeyOf(same), "\" = ", other, " is not supported; heads have ", size, " elements"));
    }
  }
  config_["head_dim"] = size;
  BOWLINE_ASSIGN_OR_RETURN(config_["rms_norm_eps"], file_.Number(KeyOf("attention.layer_norm_rms_epsilon")));
  BOWLINE_RETURN_IF_ERROR(ReadRotation(size));
  if (!file_.Has(kLlamaWindow)) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const int64_t window, file_.Integer(kLlamaWindow));
  if (window > 0) {
    config_["model_type"] = "mistral";
    config_["architectures"] = {"MistralForCausalLM"};
    config_["sliding_window"] = window;
  }
  return absl::OkStatus();
}

absl::Status GgufModel::ReadRotation(int64_t head_dim) {
  const auto key = [&](absl::string_view suffix) { return absl::StrCat(family_->name, ".rope.", suffix); };
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
    if (!absl::ConsumePrefix(&suffix, absl::StrCat(family_->name, ".")) || key == kLlamaWindow) continue;
    if (!IsKeyOfGgufFamily(*family_, suffix)) {
      return Error(absl::StrCat("the key \"", absl::Utf8SafeCHexEscape(key),
                                "\" is not supported, and it may change the mathematics; use another model"));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufModel::ReadTensors() {
  const bool is_interleaved = family_->is_interleaved;
  for (const GgufTensor& stored : file_.tensors()) {
    if (stored.name == kFrequencyFactors && family_->name != "gpt2") continue;
    GgufTensorKey key = KeyOfGgufTensor(*family_, stored.name);
    if (key.key.empty()) {
      return Error(absl::StrCat("tensor '", absl::Utf8SafeCHexEscape(stored.name), "' is not known of ", family_->name,
                                ", and it may change the mathematics; use another model"));
    }
    Tensor tensor{std::move(key.key), &stored, stored.shape};
    if (key.is_transposed) {
      if (stored.shape.size() != 2) {
        return Error(absl::StrCat("tensor '", stored.name, "' is ", DescribeTensor(stored),
                                  ", and should be a matrix; the file is corrupt"));
      }
      tensor.is_transposed = true;
      std::swap(tensor.shape[0], tensor.shape[1]);
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

void GgufModel::ReadRows(const Tensor& tensor, int64_t first, int64_t count, absl::Span<float> out) const {
  const auto width = static_cast<size_t>(tensor.shape.back());
  if (!tensor.is_transposed) {
    for (int64_t i = 0; i < count; ++i) {
      file_.ReadRow(*tensor.stored, StoredRow(tensor, first + i), out.subspan(static_cast<size_t>(i) * width, width));
    }
    return;
  }
  // A row of the file is a column here.
  std::vector<float> column(static_cast<size_t>(tensor.shape[0]));
  for (size_t j = 0; j < width; ++j) {
    file_.ReadRow(*tensor.stored, static_cast<int64_t>(j), absl::MakeSpan(column));
    for (int64_t i = 0; i < count; ++i) {
      out[static_cast<size_t>(i) * width + j] = column[static_cast<size_t>(first + i)];
    }
  }
}

absl::Span<const uint8_t> GgufModel::StoredBytes(const Tensor& tensor, int64_t row) const {
  const GgufTensor& stored = *tensor.stored;
  const uint64_t bytes =
      stored.bytes / (static_cast<uint64_t>(stored.elements) / static_cast<uint64_t>(stored.shape.back()));
  const absl::Span<const uint8_t> rest =
      file_.Bytes(stored).subspan(static_cast<uint64_t>(StoredRow(tensor, row)) * bytes);
  return tensor.heads > 0 ? rest.first(bytes) : rest;
}

}  // namespace bowline
