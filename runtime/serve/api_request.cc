#include "runtime/serve/api_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"

namespace bowline::serve {
namespace {

using Value = nlohmann::json;
using FieldDefaults = std::map<std::string, std::vector<Value>, std::less<>>;

constexpr int32_t kMostAnswers = 128;
constexpr const char* kIgnored[] = {"metadata", "store", "user"};

ApiError Wrong(std::string param, std::string message, std::string code) {
  ApiError error;
  error.message = std::move(message);
  error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

ApiError WrongType(const std::string& param, std::string message) {
  return Wrong(param, std::move(message), "invalid_type");
}
ApiError WrongValue(const std::string& param, std::string message) {
  return Wrong(param, std::move(message), "invalid_value");
}

// Values under which a field changes nothing, for those that are not honoured.
const FieldDefaults& Defaults() {
  static const auto* const defaults = new FieldDefaults{
      {"best_of", {1}},
      {"echo", {false}},
      {"frequency_penalty", {0}},
      {"function_call", {"none", "auto"}},
      {"functions", {}},
      {"ignore_eos", {false}},
      {"logit_bias", {}},
      {"min_p", {0}},
      {"min_tokens", {0}},
      {"modalities", {Value::array({"text"})}},
      {"parallel_tool_calls", {true, false}},
      {"presence_penalty", {0}},
      {"repetition_penalty", {1}},
      {"response_format", {Value{{"type", "text"}}}},
      {"service_tier", {"auto", "default"}},
      {"suffix", {}},
      {"tool_choice", {"none", "auto"}},
      {"tools", {}},
  };
  return *defaults;
}

bool IsEmpty(const Value& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

// A reader of the fields of an object: what was read is honoured, the rest has to be a default.
class Fields {
 public:
  // Errors name fields with `prefix` before.
  explicit Fields(const Value& body, std::string prefix = "") : body_(body), prefix_(std::move(prefix)) {}

  // Null where the field is absent or null.
  const Value* Find(const char* name) {
    read_.emplace_back(name);
    const auto found = body_.find(name);
    return found == body_.end() || found->is_null() ? nullptr : &*found;
  }

  std::optional<ApiError> CheckRest() const {
    for (const auto& [name, value] : body_.items()) {
      const bool ignored =
          prefix_.empty() && std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored);
      if (ignored || std::find(read_.begin(), read_.end(), name) != read_.end() || IsDefault(name, value)) continue;
      const bool known = prefix_.empty() && Defaults().contains(name);
      const std::string field = prefix_ + name;
      return Wrong(field,
                   absl::StrCat("this server does not support ", known ? "this value of '" : "the field '", field,
                                "'; leave it out"),
                   known ? "unsupported_value" : "unknown_parameter");
    }
    return std::nullopt;
  }

  const std::vector<std::string>& read() const { return read_; }

 private:
  bool IsDefault(const std::string& name, const Value& value) const {
    if (IsEmpty(value)) return true;
    const auto found = Defaults().find(name);
    return prefix_.empty() && found != Defaults().end() &&
           std::find(found->second.begin(), found->second.end(), value) != found->second.end();
  }

  const Value& body_;
  const std::string prefix_;
  std::vector<std::string> read_;
};

std::optional<ApiError> ReadBool(Fields& fields, const char* name, bool* to) {
  const Value* value = fields.Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    return WrongType(name, absl::StrCat("'", name, "' is ", DescribeJsonType(*value), ", and not a boolean"));
  }
  *to = value->get<bool>();
  return std::nullopt;
}

std::optional<ApiError> ReadText(Fields& fields, const char* name, std::string* to) {
  const Value* value = fields.Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    return WrongType(name, absl::StrCat("'", name, "' is ", DescribeJsonType(*value), ", and not a text"));
  }
  *to = value->get<std::string>();
  return std::nullopt;
}

// A whole number from `least` to `most`; `more` is said of others.
template <typename Integer>
std::optional<ApiError> ReadInteger(Fields& fields, const char* name, int64_t least, int64_t most,
                                    std::optional<Integer>* to, absl::string_view more = "") {
  const Value* value = fields.Find(name);
  if (value == nullptr) return std::nullopt;
  const bool whole = value->is_number_integer();
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
  if (!whole || huge || value->get<int64_t>() < least) {
    return Wrong(name, absl::StrCat("'", name, "' is no whole number from ", least, " to ", most, more),
                 whole ? "invalid_value" : "invalid_type");
  }
  *to = static_cast<Integer>(value->get<int64_t>());
  return std::nullopt;
}

std::optional<ApiError> ReadStop(Fields& fields, std::vector<std::string>* stop) {
  const Value* value = fields.Find("stop");
  if (value == nullptr) return std::nullopt;
  const std::vector<Value> texts = value->is_array() ? value->get<std::vector<Value>>() : std::vector<Value>{*value};
  if (texts.size() > 4) return WrongValue("stop", "'stop' has more than 4 texts");
  for (const Value& text : texts) {
    if (!text.is_string()) return WrongType("stop", "'stop' is neither a text nor an array of texts");
    if (!text.get_ref<const std::string&>().empty()) stop->push_back(text.get<std::string>());
  }
  return std::nullopt;
}

std::optional<ApiError> ReadLimits(Fields& fields, bool chat, ApiRequest* request) {
  if (chat) {
    if (auto error = ReadInteger(fields, "max_completion_tokens", 1, INT32_MAX, &request->max_tokens)) return error;
  }
  std::optional<int64_t> most;
  if (auto error = ReadInteger(fields, "max_tokens", 1, INT32_MAX, &most)) return error;
  if (most && request->max_tokens && *most != *request->max_tokens) {
    return WrongValue("max_tokens", "'max_tokens' and 'max_completion_tokens' differ; give one of them");
  }
  if (most) request->max_tokens = most;
  std::optional<int32_t> n;
  if (auto error = ReadInteger(fields, "n", 1, kMostAnswers, &n)) return error;
  request->n = n.value_or(1);
  return std::nullopt;
}

std::optional<ApiError> ReadSampling(Fields& fields, ApiRequest* request) {
  if (const Value* value = fields.Find("temperature")) {
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() <= 2)) {
      return WrongValue("temperature", "'temperature' is no number from 0 to 2");
    }
    request->temperature = value->get<double>();
  }
  if (const Value* value = fields.Find("top_p")) {
    if (!value->is_number() || !(value->get<double>() > 0 && value->get<double>() <= 1)) {
      return WrongValue("top_p", "'top_p' is no number above 0 and up to 1");
    }
    request->top_p = value->get<double>();
  }
  if (auto error = ReadInteger(fields, "top_k", -1, INT32_MAX, &request->top_k, "; 0 and -1 limit nothing")) {
    return error;
  }
  if (request->top_k) request->top_k = std::max(0, *request->top_k);
  if (const Value* value = fields.Find("seed")) {
    if (!value->is_number_integer()) return WrongType("seed", "'seed' is no whole number of 64 bits");
    request->seed = value->is_number_unsigned() ? value->get<uint64_t>() : static_cast<uint64_t>(value->get<int64_t>());
  }
  return std::nullopt;
}

// A number in requests for completions; in those of chats a boolean, and a number beside it.
std::optional<ApiError> ReadLogprobs(Fields& fields, bool chat, ApiRequest* request) {
  if (!chat) {
    const Value* value = fields.Find("logprobs");
    if (value != nullptr && value->is_boolean() && !value->get<bool>()) return std::nullopt;
    return ReadInteger(fields, "logprobs", 0, 5, &request->logprobs);
  }
  bool wanted = false;
  std::optional<int32_t> top;
  if (auto error = ReadBool(fields, "logprobs", &wanted)) return error;
  if (auto error = ReadInteger(fields, "top_logprobs", 0, 20, &top)) return error;
  if (!wanted && top.value_or(0) != 0) {
    return WrongValue("top_logprobs", "'top_logprobs' is for requests with 'logprobs'; set it to true");
  }
  if (wanted) request->logprobs = top.value_or(0);
  return std::nullopt;
}

std::optional<ApiError> ReadStream(Fields& fields, ApiRequest* request) {
  if (auto error = ReadBool(fields, "stream", &request->stream)) return error;
  const Value* options = fields.Find("stream_options");
  if (options == nullptr) return std::nullopt;
  if (!options->is_object()) return WrongType("stream_options", "'stream_options' is no object");
  if (!request->stream && !options->empty()) {
    return WrongValue("stream_options", "'stream_options' is for streams; set 'stream' to true");
  }
  Fields inner(*options, "stream_options.");
  if (auto error = ReadBool(inner, "include_usage", &request->include_usage)) return error;
  return inner.CheckRest();
}

// The texts of a content: a text, or parts of the type text.
std::variant<std::string, ApiError> ContentOf(const Value& content, const std::string& place) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return std::string();
  if (!content.is_array()) {
    return WrongType("messages", absl::StrCat(place, " is ", DescribeJsonType(content),
                                              ", and neither a text nor an array of parts"));
  }
  std::string text;
  for (const Value& part : content) {
    const bool is_text =
        part.is_object() && part.value("type", Value()) == "text" && part.contains("text") && part["text"].is_string();
    if (!is_text) {
      return WrongValue("messages", absl::StrCat(place, " has a part that is no text; this server takes texts alone"));
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

std::optional<ApiError> ReadMessages(Fields& fields, nlohmann::ordered_json* messages) {
  const Value* value = fields.Find("messages");
  constexpr char kExpected[] = "'messages' is to be an array of at least one message";
  if (value == nullptr) return Wrong("messages", kExpected, "missing_required_parameter");
  if (!value->is_array()) return WrongType("messages", kExpected);
  if (value->empty()) return WrongValue("messages", kExpected);
  *messages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < value->size(); ++i) {
    const Value& message = (*value)[i];
    const std::string place = absl::StrCat("messages[", i, "]");
    if (!message.is_object()) {
      return WrongType("messages", absl::StrCat(place, " is ", DescribeJsonType(message), ", and not an object"));
    }
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      return Wrong("messages", absl::StrCat(place, " has no role"), "missing_required_parameter");
    }
    std::string name = role->get<std::string>();
    if (name == "developer") name = "system";
    if (name != "system" && name != "user" && name != "assistant") {
      return WrongValue("messages", absl::StrCat(place, " has the role '", name,
                                                 "'; there are system, developer, user and assistant"));
    }
    for (const auto& [key, field] : message.items()) {
      if (key == "role" || key == "content" || key == "name" || IsEmpty(field)) continue;
      return Wrong("messages",
                   absl::StrCat(place, ": this server does not support the field '", key, "'; leave it out"),
                   "unknown_parameter");
    }
    auto content =
        ContentOf(message.contains("content") ? message["content"] : Value(), absl::StrCat(place, ".content"));
    if (auto* error = std::get_if<ApiError>(&content)) return *error;
    messages->push_back({{"role", name}, {"content", std::get<std::string>(std::move(content))}});
  }
  return std::nullopt;
}

std::optional<ApiError> ReadPrompt(Fields& fields, ApiRequest* request) {
  const Value* value = fields.Find("prompt");
  constexpr char kExpected[] =
      "'prompt' is to be a text, or an array of ids of tokens; this server takes one prompt a request";
  if (value == nullptr) return Wrong("prompt", kExpected, "missing_required_parameter");
  // An array of one prompt.
  if (value->is_array() && value->size() == 1 && !(*value)[0].is_number()) value = &(*value)[0];
  if (value->is_string()) {
    request->prompt = value->get<std::string>();
    return std::nullopt;
  }
  std::vector<int32_t> ids;
  bool valid = value->is_array() && !value->empty();
  for (size_t i = 0; valid && i < value->size(); ++i) {
    const Value& id = (*value)[i];
    valid = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (valid) ids.push_back(id.get<int32_t>());
  }
  if (!valid) return WrongType("prompt", kExpected);
  request->prompt = std::move(ids);
  return std::nullopt;
}

std::optional<ApiError> ReadRequest(Fields& fields, bool chat, ApiRequest* request) {
  if (auto error = ReadText(fields, "model", &request->model)) return error;
  if (auto error = chat ? ReadMessages(fields, &request->messages) : ReadPrompt(fields, request)) return error;
  if (auto error = ReadLimits(fields, chat, request)) return error;
  if (auto error = ReadSampling(fields, request)) return error;
  if (auto error = ReadLogprobs(fields, chat, request)) return error;
  if (auto error = ReadStop(fields, &request->stop)) return error;
  if (auto error = ReadStream(fields, request)) return error;
  return fields.CheckRest();
}

std::variant<Value, ApiError> ParseObject(absl::string_view body) {
  JsonLimits limits;
  limits.max_values = size_t{1} << 20;
  absl::StatusOr<Value> parsed = ParseJson(body, "the body", limits);
  if (!parsed.ok()) return Wrong("", std::string(parsed.status().message()), "");
  if (!parsed->is_object()) {
    return WrongType("", absl::StrCat("the body is ", DescribeJsonType(*parsed), ", and not an object"));
  }
  return *std::move(parsed);
}

std::variant<ApiRequest, ApiError> ParseRequest(absl::string_view body, bool chat) {
  const auto parsed = ParseObject(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  ApiRequest request;
  Fields fields(std::get<Value>(parsed));
  if (auto error = ReadRequest(fields, chat, &request)) return *error;
  return request;
}

// What the parser reads of a body that is right.
RequestFields FieldsOf(const Value& body, bool chat) {
  ApiRequest request;
  Fields fields(body);
  ReadRequest(fields, chat, &request);
  RequestFields known;
  known.honoured = fields.read();
  std::sort(known.honoured.begin(), known.honoured.end());
  known.honoured.erase(std::unique(known.honoured.begin(), known.honoured.end()), known.honoured.end());
  known.ignored.assign(std::begin(kIgnored), std::end(kIgnored));
  known.defaults = Defaults();
  return known;
}

}  // namespace

std::string ApiError::Json() const {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json json = {
      {"error", {{"message", message}, {"type", type}, {"param", text_or_null(param)}, {"code", text_or_null(code)}}}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::variant<ApiRequest, ApiError> ParseChatRequest(absl::string_view body) { return ParseRequest(body, true); }
std::variant<ApiRequest, ApiError> ParseCompletionRequest(absl::string_view body) { return ParseRequest(body, false); }

std::variant<TokenizeRequest, ApiError> ParseTokenizeRequest(absl::string_view body) {
  const auto parsed = ParseObject(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  TokenizeRequest request;
  Fields fields(std::get<Value>(parsed));
  if (fields.Find("prompt") == nullptr) {
    return Wrong("prompt", "the body is to be an object with the text 'prompt'", "missing_required_parameter");
  }
  if (auto error = ReadText(fields, "prompt", &request.prompt)) return *error;
  if (auto error = ReadText(fields, "model", &request.model)) return *error;
  if (auto error = ReadBool(fields, "add_special_tokens", &request.add_special)) return *error;
  if (auto error = fields.CheckRest()) return *error;
  return request;
}

RequestFields FieldsOfChatRequests() {
  return FieldsOf({{"messages", Value::array({{{"role", "user"}, {"content", ""}}})}}, true);
}
RequestFields FieldsOfCompletionRequests() { return FieldsOf({{"prompt", "a"}}, false); }

}  // namespace bowline::serve
