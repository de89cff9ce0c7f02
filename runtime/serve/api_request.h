#ifndef BOWLINE_RUNTIME_SERVE_API_REQUEST_H_
#define BOWLINE_RUNTIME_SERVE_API_REQUEST_H_

// Bodies of /v1/completions and /v1/chat/completions, as OpenAI's API defines them.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace bowline::serve {

// Objects of replies have their fields in the order in which they are written.
using OrderedJson = nlohmann::ordered_json;

// The reply in place of a result, in OpenAI's form.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the field that is wrong; "" for none
  std::string code;   // "" for none

  std::string Json() const;
};

struct ApiRequest {
  std::string model;
  // Of /v1/chat/completions: an array of objects with the texts "role" and "content".
  nlohmann::ordered_json messages;
  // Of /v1/completions: a text, or ids.
  std::variant<std::string, std::vector<int32_t>> prompt;
  std::optional<int64_t> max_tokens;
  double temperature = 1;
  double top_p = 1;   // above 0, up to 1, which limits nothing
  int32_t top_k = 0;  // 0 limits nothing
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;  // at most 4, none empty
  bool stream = false;
  bool include_usage = false;  // as the last event of a stream
};

// Fields that are null or have their default are accepted whatever they are called; others that are not honoured are an
// error that names them.
std::variant<ApiRequest, ApiError> ParseChatRequest(absl::string_view body);
std::variant<ApiRequest, ApiError> ParseCompletionRequest(absl::string_view body);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_API_REQUEST_H_
