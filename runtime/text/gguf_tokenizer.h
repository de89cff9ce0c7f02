#ifndef BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_
#define BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_

#include <memory>
#include <string>

#include "runtime/base/gguf.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/tokenizer_parts.h"

namespace bowline {

// The keys tokenizer.ggml.* of a file. kInvalidArgument names a key that is missing or of another type.
absl::StatusOr<TokenizerParts> ReadTokenizerParts(const GgufFile& file);

// The tokenizer of a file.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(const GgufFile& file);

// Of a GGUF file (*.gguf), or of a Hugging Face directory (runtime/text/tokenizer_json.h).
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenModelTokenizer(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_
