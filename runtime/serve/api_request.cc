#include "runtime/serve/api_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"
#include "runtime/serve/request_fields.h"

namespace bowline::serve {
namespace {

using Value = nlohmann::json;

constexpr int32_t kMostAnswers = 128;

const std::vector<std::string>& Ignored() {
  static const auto* const ignored = new std::vector<std::string>{"metadata", "store", "user"};
  return *ignored;
}

const std::vector<std::string>& NoNames() {
  static const auto* const none = new std::vector<std::string>;
  return *none;
}

// Those of OpenAI's and vLLM's fields that are not honoured.
FieldDefaults MakeDefaults(bool chat) {
  FieldDefaults defaults = {
      {"add_generation_prompt", {true}},
      {"add_special_tokens", {!chat}},
      {"audio", {}},
      {"best_of", {1}},
      {"continue_final_message", {false}},
      {"echo", {false}},
      {"frequency_penalty", {0}},
      {"function_call", {"none", "auto"}},
      {"functions", {}},
      {"ignore_eos", {false}},
      {"include_reasoning", {true}},
      {"include_stop_str_in_output", {false}},
      {"length_penalty", {1}},
      {"logit_bias", {}},
      {"min_p", {0}},
      {"min_tokens", {0}},
      {"modalities", {Value::array({"text"})}},
      {"parallel_tool_calls", {true, false}},
      {"prediction", {}},
      {"presence_penalty", {0}},
      {"priority", {0}},
      {"prompt_cache_retention", {"in_memory", "in-memory"}},
      {"reasoning_effort", {"medium", "none"}},
      {"repetition_penalty", {1}},
      {"response_format", {Value{{"type", "text"}}}},
      {"return_token_ids", {false}},
      {"return_tokens_as_token_ids", {false}},
      {"service_tier", {"auto", "default"}},
      {"skip_special_tokens", {true}},
      {"spaces_between_special_tokens", {true}},
      {"stop_token_ids", {}},
      {"suffix", {}},
      {"tool_choice", {"none", "auto"}},
      {"tools", {}},
      {"use_beam_search", {false}},
      {"verbosity", {"medium"}},
      {"web_search_options", {}},
  };
  if (!chat) defaults["top_logprobs"] = {0};
  return defaults;
}

const FieldDefaults& Defaults(bool chat) {
  static const auto* const of_chats = new FieldDefaults(MakeDefaults(true));
  static const auto* const of_completions = new FieldDefaults(MakeDefaults(false));
  return chat ? *of_chats : *of_completions;
}

// Of vLLM's request.
const FieldDefaults& DefaultsOfTokenize() {
  static const auto* const defaults = new FieldDefaults{{"return_token_strs", {false}}};
  return *defaults;
}

const FieldDefaults& NoDefaults() {
  static const auto* const none = new FieldDefaults;
  return *none;
}

// No piece of a stream is padded, so that either value of OpenAI's field is right.
const FieldDefaults& DefaultsOfStreamOptions() {
  static const auto* const defaults =
      new FieldDefaults{{"continuous_usage_stats", {false}}, {"include_obfuscation", {true, false}}};
  return *defaults;
}

std::optional<ApiError> ReadStop(RequestObject& fields, std::vector<std::string>* stop) {
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

std::optional<ApiError> ReadLimits(RequestObject& fields, bool chat, ApiRequest* request) {
  if (chat) {
    if (auto error = fields.ReadInteger("max_completion_tokens", 1, INT32_MAX, &request->max_tokens)) return error;
  }
  std::optional<int64_t> most;
  if (auto error = fields.ReadInteger("max_tokens", 1, INT32_MAX, &most)) return error;
  if (most && request->max_tokens && *most != *request->max_tokens) {
    return WrongValue("max_tokens", "'max_tokens' and 'max_completion_tokens' differ; give one of them");
  }
  if (most) request->max_tokens = most;
  std::optional<int32_t> n;
  if (auto error = fields.ReadInteger("n", 1, kMostAnswers, &n)) return error;
  request->n = n.value_or(1);
  return std::nullopt;
}

std::optional<ApiError> ReadSampling(RequestObject& fields, ApiRequest* request) {
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
  if (auto error = fields.ReadInteger("top_k", -1, INT32_MAX, &request->top_k, "; 0 and -1 limit nothing")) {
    return error;
  }
  if (request->top_k) request->top_k = std::max(0, *request->top_k);
  if (const Value* value = fields.Find("seed")) {
    const Value seed = AsWhole(*value);
    if (!seed.is_number_integer()) return WrongType("seed", "'seed' is no whole number of 64 bits");
    request->seed = seed.is_number_unsigned() ? seed.get<uint64_t>() : static_cast<uint64_t>(seed.get<int64_t>());
  }
  return std::nullopt;
}

// A number in requests for completions; in those of chats a boolean, and a number beside it.
std::optional<ApiError> ReadLogprobs(RequestObject& fields, bool chat, ApiRequest* request) {
  if (!chat) {
    const Value* value = fields.Find("logprobs");
    if (value != nullptr && value->is_boolean() && !value->get<bool>()) return std::nullopt;
    return fields.ReadInteger("logprobs", 0, 5, &request->logprobs);
  }
  bool wanted = false;
  std::optional<int32_t> top;
  if (auto error = fields.ReadBool("logprobs", &wanted)) return error;
  if (auto error = fields.ReadInteger("top_logprobs", 0, 20, &top)) return error;
  if (!wanted && top.value_or(0) != 0) {
    return WrongValue("top_logprobs", "'top_logprobs' is for requests with 'logprobs'; set it to true");
  }
  if (wanted) request->logprobs = top.value_or(0);
  return std::nullopt;
}

std::optional<ApiError> ReadStream(RequestObject& fields, ApiRequest* request) {
  if (auto error = fields.ReadBool("stream", &request->stream)) return error;
  const Value* options = fields.Find("stream_options");
  if (options == nullptr) return std::nullopt;
  if (!options->is_object()) return WrongType("stream_options", "'stream_options' is no object");
  RequestObject inner(*options, DefaultsOfStreamOptions(), NoNames(), "stream_options.");
  if (auto error = inner.ReadBool("include_usage", &request->include_usage)) return error;
  if (request->include_usage && !request->stream) {
    return WrongValue("stream_options", "'stream_options' is for streams; set 'stream' to true");
  }
  return inner.CheckRest();
}

// The text of a part of a content.
std::variant<std::string, ApiError> TextOfPart(const Value& part, const std::string& place) {
  if (!part.is_object() || part.value("type", Value()) != "text") {
    return WrongValue("messages", absl::StrCat(place, " is a part that is no text; this server takes texts alone"));
  }
  if (!part.contains("text") || !part["text"].is_string()) {
    return WrongType("messages", absl::StrCat(place, ".text is ", part.contains("text") ? "no text" : "missing"));
  }
  RequestObject fields(part, NoDefaults(), NoNames(), absl::StrCat(place, "."));
  fields.Find("type");
  fields.Find("text");
  if (auto error = fields.CheckRest()) return *std::move(error);
  return part["text"].get<std::string>();
}

// The texts of a content: a text, or parts of the type text.
std::variant<std::string, ApiError> ContentOf(const Value* content, const std::string& place) {
  if (content == nullptr) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    return WrongType("messages", absl::StrCat(place, " is ", DescribeJsonType(*content),
                                              ", and neither a text nor an array of parts"));
  }
  std::string whole;
  for (size_t i = 0; i < content->size(); ++i) {
    auto text = TextOfPart((*content)[i], absl::StrCat(place, "[", i, "]"));
    if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
    whole += std::get<std::string>(text);
  }
  return whole;
}

std::variant<OrderedJson, ApiError> MessageOf(const Value& message, const std::string& place) {
  if (!message.is_object()) {
    return WrongType("messages", absl::StrCat(place, " is ", DescribeJsonType(message), ", and not an object"));
  }
  RequestObject fields(message, NoDefaults(), NoNames(), absl::StrCat(place, "."));
  const Value* given = fields.Find("role");
  if (given == nullptr || !given->is_string()) {
    return WrongField("messages", absl::StrCat(place, " has no role"), "missing_required_parameter");
  }
  std::string role = given->get<std::string>();
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant") {
    return WrongValue(
        "messages", absl::StrCat(place, " has the role '", role, "'; there are system, developer, user and assistant"));
  }
  std::string name;
  if (auto error = fields.ReadText("name", &name)) return *std::move(error);
  auto content = ContentOf(fields.Find("content"), absl::StrCat(place, ".content"));
  if (auto* error = std::get_if<ApiError>(&content)) return std::move(*error);
  if (auto error = fields.CheckRest()) return *std::move(error);
  OrderedJson read = {{"role", std::move(role)}, {"content", std::get<std::string>(std::move(content))}};
  if (!name.empty()) read["name"] = std::move(name);
  return read;
}

std::optional<ApiError> ReadMessages(RequestObject& fields, nlohmann::ordered_json* messages) {
  const Value* value = fields.FindAlsoEmpty("messages");
  constexpr char kExpected[] = "'messages' is to be an array of at least one message";
  if (value == nullptr) return WrongField("messages", kExpected, "missing_required_parameter");
  if (!value->is_array()) return WrongType("messages", kExpected);
  if (value->empty()) return WrongValue("messages", kExpected);
  *messages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < value->size(); ++i) {
    auto message = MessageOf((*value)[i], absl::StrCat("messages[", i, "]"));
    if (auto* error = std::get_if<ApiError>(&message)) return std::move(*error);
    messages->push_back(std::get<OrderedJson>(std::move(message)));
  }
  return std::nullopt;
}

std::optional<ApiError> ReadPrompt(RequestObject& fields, ApiRequest* request) {
  const Value* value = fields.FindAlsoEmpty("prompt");
  constexpr char kExpected[] =
      "'prompt' is to be a text, or an array of ids of tokens; this server takes one prompt a request";
  if (value == nullptr) return WrongField("prompt", kExpected, "missing_required_parameter");
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

std::optional<ApiError> ReadRequest(RequestObject& fields, bool chat, ApiRequest* request) {
  if (auto error = fields.ReadText("model", &request->model)) return error;
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
  if (!parsed.ok()) return WrongField("", std::string(parsed.status().message()), "");
  if (!parsed->is_object()) {
    return WrongType("", absl::StrCat("the body is ", DescribeJsonType(*parsed), ", and not an object"));
  }
  return *std::move(parsed);
}

std::variant<ApiRequest, ApiError> ParseRequest(absl::string_view body, bool chat) {
  const auto parsed = ParseObject(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  ApiRequest request;
  RequestObject fields(std::get<Value>(parsed), Defaults(chat), Ignored());
  if (auto error = ReadRequest(fields, chat, &request)) return *error;
  return request;
}

// The fields that the parser reads of a valid body.
RequestFields FieldsOf(const Value& body, bool chat) {
  ApiRequest request;
  RequestObject fields(body, Defaults(chat), Ignored());
  ReadRequest(fields, chat, &request);
  RequestFields known;
  known.honoured = fields.read();
  std::sort(known.honoured.begin(), known.honoured.end());
  known.honoured.erase(std::unique(known.honoured.begin(), known.honoured.end()), known.honoured.end());
  known.ignored = Ignored();
  known.defaults = Defaults(chat);
  return known;
}

}  // namespace

std::variant<ApiRequest, ApiError> ParseChatRequest(absl::string_view body) { return ParseRequest(body, true); }
std::variant<ApiRequest, ApiError> ParseCompletionRequest(absl::string_view body) { return ParseRequest(body, false); }

std::variant<TokenizeRequest, ApiError> ParseTokenizeRequest(absl::string_view body) {
  const auto parsed = ParseObject(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  TokenizeRequest request;
  RequestObject fields(std::get<Value>(parsed), DefaultsOfTokenize(), Ignored());
  const Value* prompt = fields.FindAlsoEmpty("prompt");
  if (prompt == nullptr) {
    return WrongField("prompt", "the body is to be an object with the text 'prompt'", "missing_required_parameter");
  }
  // An empty text is one, and an empty object is none.
  if (!prompt->is_string()) {
    return WrongType("prompt", absl::StrCat("'prompt' is ", DescribeJsonType(*prompt), ", and not a text"));
  }
  request.prompt = prompt->get<std::string>();
  if (auto error = fields.ReadText("model", &request.model)) return *error;
  if (auto error = fields.ReadBool("add_special_tokens", &request.add_special)) return *error;
  if (auto error = fields.CheckRest()) return *error;
  return request;
}

RequestFields FieldsOfChatRequests() {
  return FieldsOf({{"messages", Value::array({{{"role", "user"}, {"content", ""}}})}}, true);
}
RequestFields FieldsOfCompletionRequests() { return FieldsOf({{"prompt", "a"}}, false); }

}  // namespace bowline::serve
