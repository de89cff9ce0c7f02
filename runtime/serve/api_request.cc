#include "runtime/serve/api_request.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"

namespace bowline::serve {
namespace {

using Value = nlohmann::json;

ApiError Wrong(std::string param, std::string message) {
  ApiError error;
  error.message = std::move(message);
  error.param = std::move(param);
  return error;
}

// Values under which a field changes nothing, for those that are not honoured.
const std::map<std::string, std::vector<Value>, std::less<>>& Defaults() {
  static const auto* const defaults = new std::map<std::string, std::vector<Value>, std::less<>>{
      {"min_p", {0, 0.0}},
      {"n", {1}},
      {"best_of", {1}},
      {"frequency_penalty", {0, 0.0}},
      {"presence_penalty", {0, 0.0}},
      {"repetition_penalty", {1, 1.0}},
      {"logprobs", {false}},
      {"top_logprobs", {0}},
      {"logit_bias", {Value::object()}},
      {"echo", {false}},
      {"suffix", {""}},
      {"tools", {Value::array()}},
      {"functions", {Value::array()}},
      {"tool_choice", {"none", "auto"}},
      {"function_call", {"none", "auto"}},
      {"parallel_tool_calls", {true, false}},
      {"response_format", {Value{{"type", "text"}}}},
      {"modalities", {Value{"text"}}},
      {"service_tier", {"auto", "default"}},
      {"stop", {Value::array(), ""}},
  };
  return *defaults;
}

bool IsIgnored(absl::string_view field) { return field == "user" || field == "metadata" || field == "store"; }

// A reader of the fields of a body: what was read is honoured, the rest has to be a default.
class Fields {
 public:
  explicit Fields(const Value& body) : body_(body) {}

  // Null where the field is absent or null.
  const Value* Find(const char* name) {
    read_.push_back(name);
    const auto found = body_.find(name);
    return found == body_.end() || found->is_null() ? nullptr : &*found;
  }

  std::optional<ApiError> CheckRest() const {
    for (const auto& [name, value] : body_.items()) {
      if (std::find(read_.begin(), read_.end(), name) != read_.end() || IsIgnored(name) || IsDefault(name, value)) {
        continue;
      }
      const bool known = Defaults().contains(name);
      return Wrong(name, absl::StrCat("this server does not support ", known ? "this value of '" : "the field '", name,
                                      "'; leave it out"));
    }
    return std::nullopt;
  }

 private:
  static bool IsDefault(const std::string& name, const Value& value) {
    if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) return true;
    const auto found = Defaults().find(name);
    return found != Defaults().end() &&
           std::find(found->second.begin(), found->second.end(), value) != found->second.end();
  }

  const Value& body_;
  std::vector<std::string> read_;
};

std::optional<ApiError> ReadBool(Fields& fields, const char* name, bool* to) {
  const Value* value = fields.Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean())
    return Wrong(name, absl::StrCat("'", name, "' is ", DescribeJsonType(*value), ", and not a boolean"));
  *to = value->get<bool>();
  return std::nullopt;
}

std::optional<ApiError> ReadStop(Fields& fields, std::vector<std::string>* stop) {
  const Value* value = fields.Find("stop");
  if (value == nullptr) return std::nullopt;
  const std::vector<Value> texts = value->is_array() ? value->get<std::vector<Value>>() : std::vector<Value>{*value};
  if (texts.size() > 4) return Wrong("stop", "'stop' has more than 4 texts");
  for (const Value& text : texts) {
    if (!text.is_string()) return Wrong("stop", "'stop' is neither a text nor an array of texts");
    if (!text.get_ref<const std::string&>().empty()) stop->push_back(text.get<std::string>());
  }
  return std::nullopt;
}

std::optional<ApiError> ReadSampling(Fields& fields, bool chat, ApiRequest* request) {
  for (const char* name : {"max_completion_tokens", "max_tokens"}) {
    if (!chat && name == std::string("max_completion_tokens")) continue;
    const Value* value = fields.Find(name);
    if (value == nullptr) continue;
    if (!value->is_number_integer() || value->get<int64_t>() < 1 ||
        value->is_number_unsigned() && value->get<uint64_t>() > INT32_MAX) {
      return Wrong(name, absl::StrCat("'", name, "' is no whole number from 1 to 2147483647"));
    }
    if (request->max_tokens.has_value() && *request->max_tokens != value->get<int64_t>()) {
      return Wrong(name, "'max_tokens' and 'max_completion_tokens' differ; give one of them");
    }
    request->max_tokens = value->get<int64_t>();
  }
  if (const Value* value = fields.Find("temperature")) {
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() <= 2)) {
      return Wrong("temperature", "'temperature' is no number from 0 to 2");
    }
    request->temperature = value->get<double>();
  }
  if (const Value* value = fields.Find("top_p")) {
    if (!value->is_number() || !(value->get<double>() > 0 && value->get<double>() <= 1)) {
      return Wrong("top_p", "'top_p' is no number above 0 and up to 1");
    }
    request->top_p = value->get<double>();
  }
  if (const Value* value = fields.Find("top_k")) {
    if (!value->is_number_integer() || value->get<int64_t>() < -1 ||
        value->is_number_unsigned() && value->get<uint64_t>() > INT32_MAX) {
      return Wrong("top_k", "'top_k' is no whole number from 1 to 2147483647; 0 and -1 limit nothing");
    }
    request->top_k = static_cast<int32_t>(std::max<int64_t>(0, value->get<int64_t>()));
  }
  if (const Value* value = fields.Find("seed")) {
    if (!value->is_number_integer()) return Wrong("seed", "'seed' is no whole number");
    request->seed = value->is_number_unsigned() ? value->get<uint64_t>() : static_cast<uint64_t>(value->get<int64_t>());
  }
  return std::nullopt;
}

std::optional<ApiError> ReadStream(Fields& fields, ApiRequest* request) {
  if (auto error = ReadBool(fields, "stream", &request->stream)) return error;
  const Value* options = fields.Find("stream_options");
  if (options == nullptr) return std::nullopt;
  if (!options->is_object()) return Wrong("stream_options", "'stream_options' is no object");
  if (!request->stream) return Wrong("stream_options", "'stream_options' is for streams; set 'stream' to true");
  Fields inner(*options);
  if (auto error = ReadBool(inner, "include_usage", &request->include_usage)) return error;
  return inner.CheckRest();
}

// The texts of a content: a text, or parts of the type text.
std::variant<std::string, ApiError> ContentOf(const Value& content, const std::string& place) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return std::string();
  if (!content.is_array())
    return Wrong("messages",
                 absl::StrCat(place, " is ", DescribeJsonType(content), ", and neither a text nor an array of parts"));
  std::string text;
  for (const Value& part : content) {
    const bool is_text =
        part.is_object() && part.value("type", Value()) == "text" && part.contains("text") && part["text"].is_string();
    if (!is_text)
      return Wrong("messages", absl::StrCat(place, " has a part that is no text; this server takes texts alone"));
    text += part["text"].get<std::string>();
  }
  return text;
}

std::optional<ApiError> ReadMessages(Fields& fields, nlohmann::ordered_json* messages) {
  const Value* value = fields.Find("messages");
  if (value == nullptr || !value->is_array() || value->empty()) {
    return Wrong("messages", "'messages' is to be an array of at least one message");
  }
  *messages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < value->size(); ++i) {
    const Value& message = (*value)[i];
    const std::string place = absl::StrCat("messages[", i, "]");
    if (!message.is_object())
      return Wrong("messages", absl::StrCat(place, " is ", DescribeJsonType(message), ", and not an object"));
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) return Wrong("messages", absl::StrCat(place, " has no role"));
    std::string name = role->get<std::string>();
    if (name == "developer") name = "system";
    if (name != "system" && name != "user" && name != "assistant") {
      return Wrong("messages",
                   absl::StrCat(place, " has the role '", name, "'; there are system, developer, user and assistant"));
    }
    for (const auto& [key, field] : message.items()) {
      if (key == "role" || key == "content" || key == "name" || field.is_null() ||
          ((field.is_array() || field.is_object()) && field.empty()))
        continue;
      return Wrong("messages",
                   absl::StrCat(place, ": this server does not support the field '", key, "'; leave it out"));
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
  if (value != nullptr && value->is_array() && value->size() == 1 && (*value)[0].is_string()) value = &(*value)[0];
  if (value != nullptr && value->is_string()) {
    request->prompt = value->get<std::string>();
    return std::nullopt;
  }
  std::vector<int32_t> ids;
  bool valid = value != nullptr && value->is_array() && !value->empty();
  for (size_t i = 0; valid && i < value->size(); ++i) {
    const Value& id = (*value)[i];
    valid = id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() <= INT32_MAX;
    if (valid) ids.push_back(id.get<int32_t>());
  }
  if (!valid)
    return Wrong("prompt",
                 "'prompt' is to be a text, or an array of ids of tokens; this server takes one prompt a request");
  request->prompt = std::move(ids);
  return std::nullopt;
}

std::variant<ApiRequest, ApiError> ParseRequest(absl::string_view body, bool chat) {
  JsonLimits limits;
  limits.max_values = size_t{1} << 20;
  const absl::StatusOr<Value> parsed = ParseJson(body, "the body", limits);
  if (!parsed.ok()) return Wrong("", std::string(parsed.status().message()));
  if (!parsed->is_object())
    return Wrong("", absl::StrCat("the body is ", DescribeJsonType(*parsed), ", and not an object"));
  ApiRequest request;
  Fields fields(*parsed);
  if (const Value* model = fields.Find("model")) {
    if (!model->is_string()) return Wrong("model", "'model' is no text");
    request.model = model->get<std::string>();
  }
  if (auto error = chat ? ReadMessages(fields, &request.messages) : ReadPrompt(fields, &request)) return *error;
  if (auto error = ReadSampling(fields, chat, &request)) return *error;
  if (auto error = ReadStop(fields, &request.stop)) return *error;
  if (auto error = ReadStream(fields, &request)) return *error;
  if (auto error = fields.CheckRest()) return *error;
  return request;
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

}  // namespace bowline::serve
