#include "runtime/serve/service.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "openssl/crypto.h"
#include "runtime/base/json.h"
#include "runtime/serve/answer.h"

namespace bowline::serve {
namespace {

constexpr char kJson[] = "application/json";

void Refuse(HttpExchange& exchange, const ApiError& error, HttpHeaders headers = {}) {
  exchange.Reply(error.status, kJson, error.Json(), std::move(headers));
}

ApiError ErrorOf(int status, std::string message, std::string code = "", std::string param = "") {
  ApiError error;
  error.status = status;
  error.message = std::move(message);
  error.code = std::move(code);
  error.param = std::move(param);
  if (status >= 500) error.type = "server_error";
  return error;
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The paths that there are, with their methods.
struct Path {
  absl::string_view method, path;
};
constexpr Path kPaths[] = {{"GET", "/v1/models"},       {"POST", "/v1/chat/completions"},
                           {"POST", "/v1/completions"}, {"POST", "/tokenize"},
                           {"GET", "/health"},          {"GET", "/ready"},
                           {"GET", "/metrics"}};

}  // namespace

Service::Service(const ServedModel& model, Engine* engine, std::vector<std::string> api_keys)
    : model_(model), engine_(engine), api_keys_(std::move(api_keys)) {}

bool Service::MayUse(const HttpRequest& request) const {
  if (api_keys_.empty()) return true;
  absl::string_view given = request.header("authorization");
  if (!absl::ConsumePrefix(&given, "Bearer ")) return false;
  // The time that the comparison takes says nothing about a key.
  bool same = false;
  for (const std::string& key : api_keys_) {
    same |= key.size() == given.size() && CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0;
  }
  return same;
}

void Service::Handle(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const absl::string_view path = request.path, method = request.method == "HEAD" ? "GET" : request.method;
  const auto* known = std::find_if(std::begin(kPaths), std::end(kPaths), [&](const Path& p) { return p.path == path; });
  if (known == std::end(kPaths)) {
    return Refuse(*exchange, ErrorOf(404, absl::StrCat("there is no '", path, "'; there are ",
                                                       absl::StrJoin(kPaths, ", ", [](std::string* out, const Path& p) {
                                                         absl::StrAppend(out, p.method, " ", p.path);
                                                       }))));
  }
  if (known->method != method) {
    return Refuse(*exchange, ErrorOf(405, absl::StrCat("'", path, "' takes ", known->method, " alone")),
                  {{"Allow", std::string(known->method)}});
  }
  if ((absl::StartsWith(path, "/v1/") || path == "/tokenize") && !MayUse(request)) {
    return Refuse(*exchange, ErrorOf(401, "the request has no valid key; send the header 'Authorization: Bearer KEY'",
                                     "invalid_api_key"));
  }
  if (path == "/health") return exchange->Reply(200, "text/plain", "ok\n");
  if (path == "/ready") {
    return exchange->Reply(draining_ ? 503 : 200, "text/plain", draining_ ? "shutting down\n" : "ready\n");
  }
  if (path == "/metrics") return exchange->Reply(200, "text/plain; version=0.0.4", Metrics());
  if (path == "/v1/models") return exchange->Reply(200, kJson, Models());
  if (path == "/tokenize") return Tokenize(*exchange);
  Complete(exchange, path == "/v1/chat/completions");
}

void Service::Complete(const std::shared_ptr<HttpExchange>& exchange, bool chat) {
  const std::string& body = exchange->request().body;
  auto parsed = chat ? ParseChatRequest(body) : ParseCompletionRequest(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return Refuse(*exchange, *error);
  const ApiRequest request = std::get<ApiRequest>(std::move(parsed));
  if (!request.model.empty() && request.model != model_.name) {
    return Refuse(*exchange,
                  ErrorOf(404, absl::StrCat("there is no model '", request.model, "'; there is '", model_.name, "'"),
                          "model_not_found", "model"));
  }
  Generation generation;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&request.prompt); !chat && ids != nullptr) {
    generation.prompt = *ids;
    for (const int32_t id : *ids) {
      if (id < model_.tokenizer->vocabulary_size()) continue;
      return Refuse(*exchange, ErrorOf(400, absl::StrCat("the vocabulary has no token ", id), "", "prompt"));
    }
  } else {
    if (chat && model_.render == nullptr) {
      return Refuse(*exchange, ErrorOf(400, "the model has no chat template that is understood; use /v1/completions"));
    }
    absl::StatusOr<std::string> text = chat ? model_.render(request.messages) : std::get<std::string>(request.prompt);
    if (!text.ok()) return Refuse(*exchange, ErrorOf(400, std::string(text.status().message()), "", "messages"));
    // A template writes the begin token itself.
    const EncodeOptions options = {/*add_special=*/!chat, /*parse_special=*/true};
    auto encoded = model_.tokenizer->Encode(*text, options);
    if (!encoded.ok()) {
      return Refuse(*exchange, ErrorOf(400, std::string(encoded.status().message()), "", chat ? "messages" : "prompt"));
    }
    generation.prompt = *std::move(encoded);
  }
  const auto prompted = static_cast<int64_t>(generation.prompt.size());
  if (prompted == 0) return Refuse(*exchange, ErrorOf(400, "the prompt is empty", "", chat ? "messages" : "prompt"));
  const int64_t left = model_.context - prompted;
  if (left < 1 || request.max_tokens.value_or(1) > left) {
    return Refuse(
        *exchange,
        ErrorOf(
            400,
            absl::StrCat("this model's context has ", model_.context, " tokens; the prompt has ", prompted,
                         request.max_tokens ? absl::StrCat(" and 'max_tokens' asks for ", *request.max_tokens) : ""),
            "context_length_exceeded", chat ? "messages" : "prompt"));
  }
  // OpenAI's default for completions is 16.
  generation.max_new_tokens = request.max_tokens.value_or(chat ? left : std::min<int64_t>(16, left));
  generation.temperature = request.temperature;
  generation.top_k = request.top_k;
  generation.top_p = request.top_p;
  generation.seed = request.seed ? *request.seed : std::random_device{}();
  generation.end_tokens = model_.end_tokens;
  Answer::About about = {absl::StrCat(chat ? "chatcmpl-" : "cmpl-", absl::Hex(Now()), "-", ++requests_), model_.name,
                         Now(), chat, static_cast<uint64_t>(prompted)};
  auto answer = std::make_shared<Answer>(exchange, *model_.tokenizer, request, std::move(about));
  generation.take = [answer](int32_t token) { return answer->Take(token); };
  generation.finish = [answer](FinishReason reason, const absl::Status& status) { answer->Finish(reason, status); };
  auto ticket = engine_->Submit(std::move(generation));
  if (absl::IsInvalidArgument(ticket.status())) {
    return Refuse(*exchange, ErrorOf(400, std::string(ticket.status().message())));
  }
  if (!ticket.ok()) {
    const bool full = absl::IsResourceExhausted(ticket.status());
    ApiError error =
        ErrorOf(full ? 429 : 503, std::string(ticket.status().message()), full ? "rate_limit_exceeded" : "");
    if (full) error.type = "rate_limit_error";
    return Refuse(*exchange, error, {{"Retry-After", "1"}});
  }
  exchange->OnDisconnect([ticket = *std::move(ticket)] { ticket->Cancel(); });
}

void Service::Tokenize(HttpExchange& exchange) const {
  const auto parsed = ParseJson(exchange.request().body, "the body");
  const bool valid =
      parsed.ok() && parsed->is_object() && parsed->contains("prompt") && (*parsed)["prompt"].is_string();
  if (!valid) return Refuse(exchange, ErrorOf(400, "the body is to be an object with the text 'prompt'", "", "prompt"));
  const auto ids = model_.tokenizer->Encode((*parsed)["prompt"].get<std::string>());
  if (!ids.ok()) return Refuse(exchange, ErrorOf(400, std::string(ids.status().message()), "", "prompt"));
  exchange.Reply(200, kJson,
                 OrderedJson{{"count", ids->size()}, {"max_model_len", model_.context}, {"tokens", *ids}}.dump());
}

std::string Service::Models() const {
  const OrderedJson model = {{"id", model_.name},
                             {"object", "model"},
                             {"created", model_.created},
                             {"owned_by", "bowline"},
                             {"max_model_len", model_.context}};
  return OrderedJson{{"object", "list"}, {"data", OrderedJson::array({model})}}.dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string Service::Metrics() const {
  const EngineCounts c = engine_->counts();
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view type, absl::string_view help, auto value) {
    absl::StrAppend(&text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name, " ", value, "\n");
  };
  add("vllm:num_requests_running", "gauge", "Requests that are computed.", c.running);
  add("vllm:num_requests_waiting", "gauge", "Requests that wait.", c.waiting);
  if (c.blocks_total > 0) {
    const double usage = static_cast<double>(c.blocks_used) / static_cast<double>(c.blocks_total);
    add("vllm:kv_cache_usage_perc", "gauge", "Part of the cache's blocks that requests use, from 0 to 1.", usage);
    add("vllm:num_preemptions_total", "counter", "Times that a request lost its blocks to another.", c.preemptions);
    add("vllm:prefix_cache_queries_total", "counter", "Tokens of prompts that the prefix cache was asked for.",
        c.prefix_queries);
    add("vllm:prefix_cache_hits_total", "counter", "Tokens of prompts that the prefix cache had.", c.prefix_hits);
  }
  add("vllm:prompt_tokens_total", "counter", "Tokens of prompts.", c.prompt_tokens);
  add("vllm:generation_tokens_total", "counter", "Tokens that were generated.", c.new_tokens);
  absl::StrAppend(&text, "# HELP vllm:request_success_total Requests by how they ended.\n",
                  "# TYPE vllm:request_success_total counter\n");
  for (const auto& [reason, count] : {std::pair<const char*, uint64_t>{"stop", c.stopped},
                                      {"length", c.length},
                                      {"abort", c.cancelled},
                                      {"error", c.failed}}) {
    absl::StrAppend(&text, "vllm:request_success_total{finished_reason=\"", reason, "\"} ", count, "\n");
  }
  return text;
}

}  // namespace bowline::serve
