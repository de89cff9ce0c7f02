#ifndef BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_
#define BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_

// The files that a server reads beside the weights: the tokenizer, the chat template, the tokens that end an answer.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

// How generation_config.json says that tokens are chosen where a request does not. Absent keys and null say nothing.
struct GenerationDefaults {
  std::optional<bool> do_sample;          // false: always the most likely token
  std::optional<double> temperature;      // at least 0
  std::optional<double> top_p;            // in (0, 1]
  std::optional<int64_t> top_k;           // 0: of all tokens
  std::optional<int64_t> max_new_tokens;  // at least 1
};

struct ModelFiles {
  std::string name;  // of the model, as clients call it: the one in the file, or the file's own
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;  // the text; empty where there is none
  std::string begin_text, end_text;
  std::vector<int32_t> end_tokens;
  GenerationDefaults defaults;
};

// `config` is the object that the file at `path` holds. Keys apart from those above are not looked at. kInvalidArgument
// names path and key of a value that cannot be one.
absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const nlohmann::json& config, const std::string& path);

// Of a GGUF file, or of a Hugging Face directory: tokenizer.json, tokenizer_config.json, chat_template.jinja,
// generation_config.json and config.json, of which only the first has to be there.
absl::StatusOr<ModelFiles> OpenModelFiles(const std::string& path);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_
