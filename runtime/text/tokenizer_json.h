#ifndef BOWLINE_RUNTIME_TEXT_TOKENIZER_JSON_H_
#define BOWLINE_RUNTIME_TEXT_TOKENIZER_JSON_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

namespace bowline {

// Opens the tokenizer of a Hugging Face directory: tokenizer.json, and the names of the begin, end and pad tokens from
// tokenizer_config.json or special_tokens_map.json. An error names contents that are not supported.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& directory);

// Parses a tokenizer.json alone. Messages begin with `what`.
absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view text, absl::string_view what);

// Read parts of tokenizer.json into `definition`. `where` is for messages; a null value changes nothing.
absl::Status ReadNormalizer(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition);
absl::Status ReadPreTokenizer(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition);
absl::Status ReadPostProcessor(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition);
absl::Status ReadDecoder(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_TOKENIZER_JSON_H_
