#ifndef BOWLINE_RUNTIME_BASE_GGUF_MODEL_H_
#define BOWLINE_RUNTIME_BASE_GGUF_MODEL_H_

// A GGUF file of a language model, in the terms of Hugging Face: what its config.json would say, and its tensors under
// the names and in the order of rows of model.safetensors.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/gguf.h"
#include "runtime/base/status.h"

namespace bowline {

struct GgufFamily;

// Whether a path stands for a GGUF file, not for a directory.
bool IsGgufPath(absl::string_view path);

class GgufModel {
 public:
  struct Tensor {
    std::string key;  // "model.layers.0.self_attn.q_proj.weight"
    const GgufTensor* stored;
    std::vector<int64_t> shape;  // as Hugging Face has it
    int64_t heads = 0;  // llama's queries and keys: rows of each of so many heads are interleaved; 0: they are not
    bool is_transposed = false;  // GPT-2's projections: Hugging Face has [in, out], and the file [out, in]
  };

  // kInvalidArgument for an architecture or a split file that is not read, and for a key or a tensor of the
  // architecture that might change what the model computes.
  static absl::StatusOr<GgufModel> Open(const std::string& path);
  static absl::StatusOr<GgufModel> FromFile(GgufFile file);

  const GgufFile& file() const { return file_; }
  const nlohmann::json& config() const { return config_; }
  // Tensors are in the order of keys.
  const std::vector<Tensor>& tensors() const { return tensors_; }

  // Reads `count` rows of the Hugging Face tensor, its last dimension, from `first` on, as f32. Of a transposed tensor
  // this takes the time of reading it all.
  void ReadRows(const Tensor& tensor, int64_t first, int64_t count, absl::Span<float> out) const;
  // The bytes from a row on as they are stored, as many as follow each other in the file: one row of a tensor whose
  // rows are permuted, all others of the rest. Of a transposed tensor, `row` is the file's. Valid as long as this
  // object.
  absl::Span<const uint8_t> StoredBytes(const Tensor& tensor, int64_t row) const;

 private:
  explicit GgufModel(GgufFile file) : file_(std::move(file)) {}

  absl::Status ReadConfig();
  absl::Status ReadGpt2Config();
  absl::Status ReadRotaryConfig();
  absl::Status ReadRotation(int64_t head_dim);
  absl::Status ReadTensors();
  absl::Status RefuseUnknownKeys() const;
  // The key of the file's architecture with this suffix, and the integer that it has, if any.
  std::string KeyOf(absl::string_view suffix) const;
  absl::StatusOr<int64_t> IntegerOr(absl::string_view suffix, int64_t fallback) const;
  absl::Status Error(absl::string_view what) const;

  GgufFile file_;
  const GgufFamily* family_ = nullptr;  // of the architecture
  nlohmann::json config_;
  std::vector<Tensor> tensors_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_MODEL_H_
