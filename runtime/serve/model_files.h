#ifndef BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_
#define BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_

// The files that a server reads beside the weights: the tokenizer, the chat template, the tokens that end an answer.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

struct ModelFiles {
  std::string name;  // of the model, as clients call it: what the file says, or the file's own name
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;  // the text; empty where there is none
  std::string begin_text, end_text;
  std::vector<int32_t> end_tokens;
};

// Of a GGUF file, or of a Hugging Face directory: tokenizer.json, tokenizer_config.json, chat_template.jinja,
// generation_config.json and config.json, of which only the first has to be there.
absl::StatusOr<ModelFiles> OpenModelFiles(const std::string& path);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_
