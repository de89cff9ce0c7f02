#ifndef BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_
#define BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_

// The supported architectures of GGUF files: how GGUF and Hugging Face's files name their tensors and keys.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

struct GgufName {
  absl::string_view gguf, key;
  bool is_transposed = false;  // the file has [out, in], Hugging Face [in, out]
};

struct GgufFamily {
  absl::string_view name;  // in general.architecture and as model_type
  absl::string_view model_class;
  bool is_interleaved;                            // whether rows of queries and keys are interleaved
  absl::string_view layers;                       // the text before a layer's number in Hugging Face's names
  absl::Span<const GgufName> model_names;         // names of tensors outside of layers
  absl::Span<const GgufName> layer_names;         // names in layers: after "blk.N.", and after `layers`, N and a dot
  absl::Span<const GgufName> integers;            // required keys, after the architecture and a dot
  absl::Span<const absl::string_view> more_keys;  // other keys that are read, or that change nothing
};

// Null if the architecture is not supported.
const GgufFamily* FindGgufFamily(absl::string_view architecture);
// "llama, qwen2, qwen3 and gpt2"
std::string NamesOfGgufFamilies();

// The Hugging Face name of a tensor; `key` is empty for a tensor that the family does not have.
struct GgufTensorKey {
  std::string key;
  bool is_transposed = false;
};
GgufTensorKey KeyOfGgufTensor(const GgufFamily& family, absl::string_view name);

// Returns whether the family has the key that consists of the architecture, a dot and `suffix`.
bool IsKeyOfGgufFamily(const GgufFamily& family, absl::string_view suffix);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_
