#ifndef BOWLINE_RUNTIME_SERVE_SERVICE_H_
#define BOWLINE_RUNTIME_SERVE_SERVICE_H_

// The paths of the server: OpenAI's API over an engine, and the paths for its operator.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/serve/api_request.h"
#include "runtime/serve/chat_renderer.h"
#include "runtime/serve/engine.h"
#include "runtime/serve/http_server.h"
#include "runtime/serve/model_files.h"
#include "runtime/serve/request_record.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

struct ServedModel {
  std::string name;
  const Tokenizer* tokenizer = nullptr;
  // Null if the model has no chat template, or one that is not understood.
  ChatRenderer render;
  std::vector<int32_t> end_tokens;
  GenerationDefaults defaults;
  int64_t context = 0;  // tokens of a prompt and its continuation
  int64_t created = 0;  // seconds since 1970
};

struct ServiceOptions {
  // If not empty, requests below /v1 and to /tokenize must have one of these keys.
  std::vector<std::string> api_keys;
  // Origins of web pages whose scripts may use the API, besides the server's own page; "*" allows all.
  std::vector<std::string> cors_origins;
  // Called with a line (RequestRecord::Json) for each complete request; null: no log.
  std::function<void(const std::string& line)> log = nullptr;
};

class Service {
 public:
  // Model and engine outlive the service.
  Service(const ServedModel& model, Engine* engine, ServiceOptions options);
  // Drops requests that are not yet read. Destroy the service before the server, while no request can come.
  ~Service();

  // The handler of an HttpServer. The service reads requests with a text on its own thread: a long one takes seconds,
  // in which the server writes answers to other requests.
  void Handle(const std::shared_ptr<HttpExchange>& exchange);

  // From now on /ready replies 503, so that a load balancer sends no more requests.
  void SetDraining() { draining_ = true; }

 private:
  // Calls `read` on the service's thread, unless the client has left by then. Short requests go first, others in the
  // order of the calls.
  void Later(const std::shared_ptr<HttpExchange>& exchange, std::function<void()> read);
  void Work();
  bool MayUse(const HttpRequest& request) const;
  // Lets scripts of allowed origins read the reply. Returns true for a CORS preflight; this function then answered it.
  bool AllowOrigin(HttpExchange& exchange) const;
  void Complete(const std::shared_ptr<HttpExchange>& exchange, const std::shared_ptr<RequestRecord>& record, bool chat);
  // The tokens of the request's prompt.
  std::variant<std::vector<int32_t>, ApiError> Encode(const ApiRequest& request, bool chat) const;
  // Turns the request into a task of the engine, with the model's defaults. The task lacks begin, take and finish.
  std::variant<Generation, ApiError> Plan(const ApiRequest& request, bool chat) const;
  void Tokenize(HttpExchange& exchange) const;
  OrderedJson Model() const;
  std::string Models() const;
  void DescribeModel(HttpExchange& exchange, const std::string& name) const;
  // The error about a prompt that does not fit; `prompted` is its number of tokens, or "more".
  ApiError TooLong(const ApiRequest& request, bool chat, const std::string& prompted) const;
  ApiError NoModel(const std::string& name) const;

  const ServedModel& model_;
  Engine* const engine_;
  const ServiceOptions options_;
  std::atomic<bool> draining_ = false;
  std::atomic<uint64_t> requests_ = 0;
  const std::shared_ptr<Latencies> latencies_ = std::make_shared<Latencies>();
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> short_, long_;  // requests to be read
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_SERVICE_H_
