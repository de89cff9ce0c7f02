#ifndef BOWLINE_RUNTIME_TOOLS_TOKENIZE_TEXT_H_
#define BOWLINE_RUNTIME_TOOLS_TOKENIZE_TEXT_H_

#include <string>

#include "runtime/base/status.h"

namespace bowline {

struct TokenizeOptions {
  std::string text;                 // a file, or - for the standard input
  std::string tokenizer = "bytes";  // or a directory with tokenizer.json
  std::string output;
};

// Writes a token file, whole or not at all. Special tokens in the text are tokens; none are added.
absl::Status TokenizeText(const TokenizeOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_TOKENIZE_TEXT_H_
