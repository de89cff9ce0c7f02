#ifndef BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_
#define BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_

// The architectures of GGUF files that are read: names of their tensors and keys there, and in Hugging Face's files.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

struct GgufName {
  absl::string_view gguf, key;
  bool is_transposed = false;  // the file has [out, in], and Hugging Face [in, out]
};

struct GgufFamily {
  absl::string_view name;  // in general.architecture and as model_type
  absl::string_view model_class;
  bool is_interleaved;                            // rows of queries and keys
  absl::string_view layers;                       // the text before the number of a layer in Hugging Face's names
  absl::Span<const GgufName> model_names;         // of tensors outside of layers
  absl::Span<const GgufName> layer_names;         // after "blk.N.", and after `layers`, the number and a dot
  absl::Span<const GgufName> integers;            // keys that must be there, after the architecture and a dot
  absl::Span<const absl::string_view> more_keys;  // others that are read, or that change nothing
};

// nullptr for an architecture that is not read.
const GgufFamily* FindGgufFamily(absl::string_view architecture);
// "llama, qwen2, qwen3 and gpt2"
std::string NamesOfGgufFamilies();

// How Hugging Face names a tensor; an empty key for a name that the family does not have.
struct GgufTensorKey {
  std::string key;
  bool is_transposed = false;
};
GgufTensorKey KeyOfGgufTensor(const GgufFamily& family, absl::string_view name);

// Whether the family has a key of this name, which follows the architecture and a dot.
bool IsKeyOfGgufFamily(const GgufFamily& family, absl::string_view suffix);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_FAMILIES_H_
