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
  // Of /v1/chat/completions: an array of objects with the texts "role" and "content", and "name" where it was given.
  nlohmann::ordered_json messages;
  // Of /v1/completions: a text, or ids.
  std::variant<std::string, std::vector<int32_t>> prompt;
  int32_t n = 1;  // answers; at most 128
  std::optional<int64_t> max_tokens;
  // Absent: the model's own.
  std::optional<double> temperature;
  std::optional<double> top_p;   // above 0, up to 1, which limits nothing
  std::optional<int32_t> top_k;  // 0 limits nothing
  std::optional<uint64_t> seed;
  // How many likely tokens come with the logarithm of each token's probability; absent: none of these.
  std::optional<int32_t> logprobs;
  std::vector<std::string> stop;  // at most 4, none empty
  bool stream = false;
  bool include_usage = false;  // as the last event of a stream
};

struct TokenizeRequest {
  std::string model, prompt;
  bool add_special = true;
};

// A field that is null or empty (a text, an array or an object) is as one that is absent, whether it is honoured or
// not; others that are not honoured are accepted with their defaults, and otherwise an error that names them.
std::variant<ApiRequest, ApiError> ParseChatRequest(absl::string_view body);
std::variant<ApiRequest, ApiError> ParseCompletionRequest(absl::string_view body);
std::variant<TokenizeRequest, ApiError> ParseTokenizeRequest(absl::string_view body);

// How the fields of a request are taken.
struct RequestFields {
  std::vector<std::string> honoured, ignored;
  // Values of those that are not honoured under which they change nothing, beside null and empty ones.
  std::map<std::string, std::vector<nlohmann::json>, std::less<>> defaults;
};
RequestFields FieldsOfChatRequests();
RequestFields FieldsOfCompletionRequests();

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_API_REQUEST_H_
