#ifndef BOWLINE_RUNTIME_TEXT_TOKENIZER_PARTS_H_
#define BOWLINE_RUNTIME_TEXT_TOKENIZER_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace bowline {

// A tokenizer as the keys tokenizer.ggml.* of a GGUF file describe it. Readers of such files fill it.
struct TokenizerParts {
  std::string model;                // .model: gpt2 or llama
  std::string pre_tokenizer;        // .pre, of gpt2
  std::vector<std::string> tokens;  // .tokens
  std::vector<float> scores;        // .scores, of llama
  std::vector<int32_t> types;       // .token_type; may be empty: all normal
  std::vector<std::string> merges;  // .merges, of gpt2: two tokens with a space between
  int32_t begin = -1;               // .bos_token_id
  int32_t end = -1;                 // .eos_token_id
  int32_t pad = -1;                 // .padding_token_id
  int32_t unknown = -1;             // .unknown_token_id
  bool add_begin = false;           // .add_bos_token; where the key is missing, true for llama
  bool add_end = false;             // .add_eos_token
  bool add_space_prefix = true;     // .add_space_prefix, of llama
};

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerParts parts);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_TOKENIZER_PARTS_H_
