#ifndef BOWLINE_RUNTIME_BASE_GGUF_MODEL_H_
#define BOWLINE_RUNTIME_BASE_GGUF_MODEL_H_

// A GGUF file of a language model, in the terms of Hugging Face: the config.json that it would have, and its tensors
// with the names and the order of rows of model.safetensors.

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

// Returns whether a path names a GGUF file, and not a directory, by its ending.
bool IsGgufPath(absl::string_view path);

class GgufModel {
 public:
  struct Tensor {
    std::string key;  // "model.layers.0.self_attn.q_proj.weight"
    const GgufTensor* stored;
    std::vector<int64_t> shape;  // in Hugging Face's order
    int64_t heads = 0;           // llama's queries and keys: heads in each of which rows are interleaved; 0: none are
    bool is_transposed = false;  // GPT-2's projections: Hugging Face has [in, out], the file [out, in]
  };

  // Returns kInvalidArgument for an architecture that is not supported, a part of a split file, and a key or tensor of
  // the architecture that might change the results in an unknown way.
  static absl::StatusOr<GgufModel> Open(const std::string& path);
  static absl::StatusOr<GgufModel> FromFile(GgufFile file);

  const GgufFile& file() const { return file_; }
  const nlohmann::json& config() const { return config_; }
  // The tensors, sorted by key.
  const std::vector<Tensor>& tensors() const { return tensors_; }

  // Reads the rows [first, first + count) of the Hugging Face tensor as f32; a row lies along the last dimension. For a
  // transposed tensor this takes as long as reading all of it.
  void ReadRows(const Tensor& tensor, int64_t first, int64_t count, absl::Span<float> out) const;
  // The stored bytes from a row on, as far as rows follow each other in the file: one row of a tensor whose rows are
  // permuted, else all remaining rows. For a transposed tensor, `row` is a row of the file. The bytes are valid as long
  // as this object.
  absl::Span<const uint8_t> StoredBytes(const Tensor& tensor, int64_t row) const;

 private:
  explicit GgufModel(GgufFile file) : file_(std::move(file)) {}

  absl::Status ReadConfig();
  absl::Status ReadGpt2Config();
  absl::Status ReadRotaryConfig();
  absl::Status ReadRotation(int64_t head_dim);
  absl::Status ReadTensors();
  absl::Status RefuseUnknownKeys() const;
  // KeyOf prefixes a suffix with the architecture and a dot. IntegerOr reads that key, if the file has it.
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
