#include "runtime/serve/service.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "openssl/crypto.h"
#include "runtime/serve/answer.h"
#include "runtime/serve/metrics.h"
#include "runtime/serve/request_fields.h"
#include "runtime/serve/web_pages.h"

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

constexpr absl::string_view kModels = "/v1/models/", kOneModel = "/v1/models/{model}";

// The paths that there are, with their methods.
struct Path {
  absl::string_view method, path;
};
constexpr Path kPaths[] = {{"GET", "/v1/models"},       {"GET", kOneModel},    {"POST", "/v1/chat/completions"},
                           {"POST", "/v1/completions"}, {"POST", "/tokenize"}, {"GET", "/"},
                           {"GET", "/openapi.json"},    {"GET", "/health"},    {"GET", "/ready"},
                           {"GET", "/metrics"}};

// The text that a part of a path stands for; text that is no code of a byte stays.
std::string Unescaped(absl::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '%' && i + 2 < part.size() && absl::ascii_isxdigit(part[i + 1]) &&
        absl::ascii_isxdigit(part[i + 2])) {
      text += absl::HexStringToBytes(part.substr(i + 1, 2));
      i += 2;
    } else {
      text += part[i];
    }
  }
  return text;
}

// The page uses nothing but itself and this server.
const HttpHeaders& PageHeaders() {
  static const auto* const headers = new HttpHeaders{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Content-Type-Options", "nosniff"},
      {"Cache-Control", "no-cache"}};
  return *headers;
}

}  // namespace

Service::Service(const ServedModel& model, Engine* engine, ServiceOptions options)
    : model_(model), engine_(engine), options_(std::move(options)), thread_([this] { Work(); }) {}

Service::~Service() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Service::Later(const std::shared_ptr<HttpExchange>& exchange, std::function<void()> read) {
  // A body of this size is read within some milliseconds.
  constexpr size_t kShort = size_t{16} << 10;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  exchange->OnDisconnect([gone] { *gone = true; });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    (exchange->request().body.size() <= kShort ? short_ : long_).push_back([gone, read = std::move(read)] {
      if (!*gone) read();
    });
  }
  changed_.notify_all();
}

void Service::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !short_.empty() || !long_.empty(); });
    if (ends_) return;
    {
      std::deque<std::function<void()>>& waiting = short_.empty() ? long_ : short_;
      const std::function<void()> work = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      work();
    }
    lock.lock();
  }
}

bool Service::AllowOrigin(HttpExchange& exchange) const {
  if (options_.cors_origins.empty()) return false;
  const HttpRequest& request = exchange.request();
  const absl::string_view origin = request.header("origin");
  const auto allows = [&](absl::string_view allowed) {
    return std::find(options_.cors_origins.begin(), options_.cors_origins.end(), allowed) !=
           options_.cors_origins.end();
  };
  const bool all = allows("*");
  exchange.AddHeaders({{"Vary", "Origin"}});
  if (origin.empty() || (!all && !allows(origin))) return false;
  exchange.AddHeaders({{"Access-Control-Allow-Origin", all ? "*" : std::string(origin)},
                       {"Access-Control-Expose-Headers", "Retry-After"}});
  if (request.method != "OPTIONS" || request.header("access-control-request-method").empty()) return false;
  exchange.AddHeaders({{"Access-Control-Allow-Methods", "GET, POST"}, {"Access-Control-Max-Age", "600"}});
  const absl::string_view headers = request.header("access-control-request-headers");
  if (!headers.empty()) exchange.AddHeaders({{"Access-Control-Allow-Headers", std::string(headers)}});
  return true;
}

bool Service::MayUse(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  absl::string_view given = request.header("authorization");
  if (!absl::ConsumePrefix(&given, "Bearer ")) return false;
  // The time that the comparison takes says nothing about a key.
  bool same = false;
  for (const std::string& key : options_.api_keys) {
    same |= key.size() == given.size() && CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0;
  }
  return same;
}

void Service::Handle(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const auto record = std::make_shared<RequestRecord>(request.method, request.path, latencies_);
  if (options_.log) {
    exchange->OnComplete(
        [record, log = options_.log](int status, bool complete) { log(record->Json(status, complete)); });
  }
  if (AllowOrigin(*exchange)) return exchange->Reply(204, "text/plain", "");
  const absl::string_view path = request.path;
  absl::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  const bool one_model = absl::StartsWith(path, kModels) && path.size() > kModels.size();
  const auto* known = std::find_if(std::begin(kPaths), std::end(kPaths),
                                   [&](const Path& p) { return p.path == (one_model ? kOneModel : path); });
  if (known == std::end(kPaths)) {
    return Refuse(*exchange, ErrorOf(404,
                                     absl::StrCat("there is no '", path, "'; there are ",
                                                  absl::StrJoin(kPaths, ", ",
                                                                [](std::string* out, const Path& p) {
                                                                  absl::StrAppend(out, p.method, " ", p.path);
                                                                })),
                                     "unknown_url"));
  }
  if (known->method != method) {
    return Refuse(*exchange,
                  ErrorOf(405, absl::StrCat("'", path, "' takes ", known->method, " alone"), "method_not_supported"),
                  {{"Allow", std::string(known->method)}});
  }
  if ((absl::StartsWith(path, "/v1/") || path == "/tokenize") && !MayUse(request)) {
    return Refuse(*exchange, ErrorOf(401, "the request has no valid key; send the header 'Authorization: Bearer KEY'",
                                     "invalid_api_key"));
  }
  if (path == "/") return exchange->Reply(200, "text/html; charset=utf-8", std::string(ChatPage()), PageHeaders());
  if (path == "/openapi.json") return exchange->Reply(200, kJson, std::string(OpenApiText()));
  if (path == "/health") return exchange->Reply(200, "text/plain", "ok\n");
  if (path == "/ready") {
    return exchange->Reply(draining_ ? 503 : 200, "text/plain", draining_ ? "shutting down\n" : "ready\n");
  }
  if (path == "/metrics")
    return exchange->Reply(200, "text/plain; version=0.0.4",
                           WriteMetrics(model_.name, engine_->counts(), latencies_->values()));
  if (path == "/v1/models") return exchange->Reply(200, kJson, Models());
  if (one_model) return DescribeModel(*exchange, Unescaped(path.substr(kModels.size())));
  if (path == "/tokenize") return Later(exchange, [this, exchange] { Tokenize(*exchange); });
  Later(exchange,
        [this, exchange, record, chat = path == "/v1/chat/completions"] { Complete(exchange, record, chat); });
}

std::variant<std::vector<int32_t>, ApiError> Service::Encode(const ApiRequest& request, bool chat) const {
  const char* const param = chat ? "messages" : "prompt";
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&request.prompt); !chat && ids != nullptr) {
    for (const int32_t id : *ids) {
      if (id >= model_.tokenizer->vocabulary_size()) {
        return ErrorOf(400, absl::StrCat("the vocabulary has no token ", id), "invalid_value", param);
      }
    }
    return *ids;
  }
  if (chat && model_.render == nullptr) {
    return ErrorOf(400, "the model has no chat template that is understood; use /v1/completions");
  }
  const absl::StatusOr<std::string> text =
      chat ? model_.render(request.messages) : std::get<std::string>(request.prompt);
  if (!text.ok()) return ErrorOf(400, std::string(text.status().message()), "invalid_value", param);
  EncodeOptions options = PromptOptions(*model_.tokenizer, chat);
  options.most = static_cast<size_t>(model_.context);
  auto encoded = model_.tokenizer->Encode(*text, options);
  if (absl::IsOutOfRange(encoded.status())) return TooLong(request, chat, "more");
  if (!encoded.ok()) return ErrorOf(400, std::string(encoded.status().message()), "invalid_value", param);
  if (encoded->empty()) return ErrorOf(400, "the prompt is empty", "invalid_value", param);
  return *std::move(encoded);
}

ApiError Service::TooLong(const ApiRequest& request, bool chat, const std::string& prompted) const {
  return ErrorOf(
      400,
      absl::StrCat("this model's context has ", model_.context, " tokens; the prompt has ", prompted,
                   request.max_tokens ? absl::StrCat(" and 'max_tokens' asks for ", *request.max_tokens) : ""),
      "context_length_exceeded", chat ? "messages" : "prompt");
}

std::variant<Generation, ApiError> Service::Plan(const ApiRequest& request, bool chat) const {
  if (!request.model.empty() && request.model != model_.name) {
    return NoModel(request.model);
  }
  auto encoded = Encode(request, chat);
  if (auto* error = std::get_if<ApiError>(&encoded)) return *error;
  Generation generation;
  generation.prompt = std::get<std::vector<int32_t>>(std::move(encoded));
  const auto prompted = static_cast<int64_t>(generation.prompt.size());
  const int64_t left = model_.context - prompted;
  if (left < 1 || request.max_tokens.value_or(1) > left) return TooLong(request, chat, absl::StrCat(prompted));
  const GenerationDefaults& defaults = model_.defaults;
  // OpenAI's default for completions is 16.
  const int64_t most = chat ? defaults.max_new_tokens.value_or(left) : 16;
  generation.max_new_tokens = request.max_tokens.value_or(std::min(most, left));
  const bool greedy = !defaults.do_sample.value_or(true);
  generation.temperature = request.temperature.value_or(greedy ? 0 : defaults.temperature.value_or(1));
  if (engine_->has_logprobs()) {
    generation.top_k = request.top_k.value_or(static_cast<int32_t>(defaults.top_k.value_or(0)));
    generation.top_p = request.top_p.value_or(defaults.top_p.value_or(1));
    generation.top_logprobs = request.logprobs.value_or(0);
  } else {
    const char* const param = request.top_k.value_or(0) != 0   ? "top_k"
                              : request.top_p.value_or(1) != 1 ? "top_p"
                              : request.logprobs.has_value()   ? "logprobs"
                                                               : nullptr;
    if (param != nullptr) {
      return ErrorOf(400, absl::StrCat("this server's plan does not support this value of '", param, "'; leave it out"),
                     "unsupported_value", param);
    }
  }
  generation.seed = request.seed ? *request.seed : std::random_device{}();
  generation.end_tokens = model_.end_tokens;
  return generation;
}

void Service::Complete(const std::shared_ptr<HttpExchange>& exchange, const std::shared_ptr<RequestRecord>& record,
                       bool chat) {
  const std::string& body = exchange->request().body;
  const auto parsed = chat ? ParseChatRequest(body) : ParseCompletionRequest(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return Refuse(*exchange, *error);
  const auto& request = std::get<ApiRequest>(parsed);
  const auto planned = Plan(request, chat);
  if (const auto* error = std::get_if<ApiError>(&planned)) return Refuse(*exchange, *error);
  const auto& generation = std::get<Generation>(planned);
  Answer::About about = {absl::StrCat(chat ? "chatcmpl-" : "cmpl-", absl::Hex(Now()), "-", ++requests_), model_.name,
                         Now(), chat, static_cast<uint64_t>(generation.prompt.size())};
  record->BeginGeneration(about.id, about.prompt_tokens, static_cast<size_t>(request.n));
  auto answer = std::make_shared<Answer>(exchange, *model_.tokenizer, request, std::move(about));
  std::vector<Generation> generations(static_cast<size_t>(request.n), generation);
  for (size_t i = 0; i < generations.size(); ++i) {
    generations[i].seed += i;
    generations[i].begin = [record, i] { record->BeginAnswer(i); };
    generations[i].take = [answer, record, i](const SampledToken& sampled) {
      record->AddToken(i);
      return answer->Take(i, sampled);
    };
    generations[i].finish = [answer, record, i](FinishReason reason, const absl::Status& status) {
      record->EndAnswer(i, reason);
      answer->Finish(i, reason, status);
    };
  }
  auto tickets = engine_->Submit(std::move(generations));
  if (absl::IsOutOfRange(tickets.status())) {
    return Refuse(*exchange, WrongField("n", std::string(tickets.status().message()), "invalid_value"));
  }
  if (absl::IsInvalidArgument(tickets.status())) {
    return Refuse(*exchange, ErrorOf(400, std::string(tickets.status().message()), "invalid_value"));
  }
  if (!tickets.ok()) {
    const bool full = absl::IsResourceExhausted(tickets.status());
    ApiError error =
        ErrorOf(full ? 429 : 503, std::string(tickets.status().message()), full ? "rate_limit_exceeded" : "");
    if (full) error.type = "rate_limit_error";
    return Refuse(*exchange, error, {{"Retry-After", "1"}});
  }
  exchange->OnDisconnect([tickets = *std::move(tickets)] {
    for (const auto& ticket : tickets) ticket->Cancel();
  });
}

void Service::Tokenize(HttpExchange& exchange) const {
  const auto parsed = ParseTokenizeRequest(exchange.request().body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return Refuse(exchange, *error);
  const auto& request = std::get<TokenizeRequest>(parsed);
  if (!request.model.empty() && request.model != model_.name) return Refuse(exchange, NoModel(request.model));
  const Tokenizer& tokenizer = *model_.tokenizer;
  const auto ids = tokenizer.Encode(request.prompt, request.add_special ? PromptOptions(tokenizer, /*rendered=*/false)
                                                                        : EncodeOptions{.add_special = false});
  if (!ids.ok()) return Refuse(exchange, ErrorOf(400, std::string(ids.status().message()), "invalid_value", "prompt"));
  exchange.Reply(200, kJson,
                 OrderedJson{{"count", ids->size()}, {"max_model_len", model_.context}, {"tokens", *ids}}.dump());
}

OrderedJson Service::Model() const {
  return {{"id", model_.name},
          {"object", "model"},
          {"created", model_.created},
          {"owned_by", "bowline"},
          {"max_model_len", model_.context}};
}

std::string Service::Models() const {
  return OrderedJson{{"object", "list"}, {"data", OrderedJson::array({Model()})}}.dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
}

void Service::DescribeModel(HttpExchange& exchange, const std::string& name) const {
  if (name != model_.name) return Refuse(exchange, NoModel(name));
  exchange.Reply(200, kJson, Model().dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

ApiError Service::NoModel(const std::string& name) const {
  return ErrorOf(404, absl::StrCat("there is no model '", name, "'; there is '", model_.name, "'"), "model_not_found",
                 "model");
}

}  // namespace bowline::serve
