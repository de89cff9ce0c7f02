#ifndef BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_
#define BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_

#include <memory>
#include <string>

#include "runtime/base/gguf.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/tokenizer_parts.h"

namespace bowline {

// Reads the keys tokenizer.ggml.* of a file. kInvalidArgument, naming the key, if it is missing or of another type.
absl::StatusOr<TokenizerParts> ReadTokenizerParts(const GgufFile& file);

// Makes the tokenizer that a GGUF file describes.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(const GgufFile& file);

// Opens the tokenizer of a GGUF file (*.gguf) or of a Hugging Face directory (runtime/text/tokenizer_json.h).
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenModelTokenizer(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_GGUF_TOKENIZER_H_
