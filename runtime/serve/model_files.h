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

// The defaults of generation_config.json for requests that do not choose. Absent: the key is absent or null.
struct GenerationDefaults {
  std::optional<bool> do_sample;          // false: always the most likely token
  std::optional<double> temperature;      // at least 0
  std::optional<double> top_p;            // in (0, 1]; 1 limits nothing
  std::optional<int64_t> top_k;           // 0: choose from all tokens
  std::optional<int64_t> max_new_tokens;  // at least 1
};

struct ModelFiles {
  std::string name;  // the model's name for clients: that of the file without its ending, or of the directory
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;  // the template's text; empty if there is none
  std::string template_name;  // the template's file and key, for messages
  std::string begin_text, end_text;
  std::vector<int32_t> end_tokens;
  GenerationDefaults defaults;
};

// `config` is the object in the file at `path`. Reads only the keys above. Returns kInvalidArgument, naming path and
// key, if a value is invalid.
absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const nlohmann::json& config, const std::string& path);

// Opens a GGUF file, or a Hugging Face directory with tokenizer.json, tokenizer_config.json, chat_template.jinja,
// generation_config.json and config.json. Only the first of these must exist.
absl::StatusOr<ModelFiles> OpenModelFiles(const std::string& path);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_MODEL_FILES_H_
