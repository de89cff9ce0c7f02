#ifndef BOWLINE_RUNTIME_SERVE_API_REQUEST_H_
#define BOWLINE_RUNTIME_SERVE_API_REQUEST_H_

// Bodies of /v1/completions and /v1/chat/completions, as OpenAI's API defines them.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/serve/api_error.h"

namespace bowline::serve {

// The type of objects in replies: fields keep the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

struct ApiRequest {
  std::string model;
  // For /v1/chat/completions: an array of objects with the texts "role" and "content", and with "name" if it was given.
  nlohmann::ordered_json messages;
  // For /v1/completions: a text, or token ids.
  std::variant<std::string, std::vector<int32_t>> prompt;
  int32_t n = 1;  // number of answers; at most 128
  std::optional<int64_t> max_tokens;
  // If absent, the model's default holds (GenerationDefaults).
  std::optional<double> temperature;
  std::optional<double> top_p;   // above 0, at most 1; 1 limits nothing
  std::optional<int32_t> top_k;  // 0 limits nothing
  std::optional<uint64_t> seed;
  // How many most likely tokens to report with each token, all with log probabilities. Absent: no log probabilities.
  std::optional<int32_t> logprobs;
  std::vector<std::string> stop;  // stop texts; at most 4, none empty
  bool stream = false;
  bool include_usage = false;  // token counts in the last event of a stream
};

struct TokenizeRequest {
  std::string model, prompt;
  bool add_special = true;
};

// Parse a request. A field that is null, or an empty text, array or object, counts as absent. A field that is neither
// honoured nor ignored may only have a default value; otherwise the error names the field.
std::variant<ApiRequest, ApiError> ParseChatRequest(absl::string_view body);
std::variant<ApiRequest, ApiError> ParseCompletionRequest(absl::string_view body);
std::variant<TokenizeRequest, ApiError> ParseTokenizeRequest(absl::string_view body);

// The fields of a request, by how the server treats them.
struct RequestFields {
  std::vector<std::string> honoured, ignored;
  // The values that other fields may have because they change nothing, besides null and empty values.
  std::map<std::string, std::vector<nlohmann::json>, std::less<>> defaults;
};
RequestFields FieldsOfChatRequests();
RequestFields FieldsOfCompletionRequests();

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_API_REQUEST_H_
