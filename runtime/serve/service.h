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
  // Null where the model has no template that is understood.
  ChatRenderer render;
  std::vector<int32_t> end_tokens;
  GenerationDefaults defaults;
  int64_t context = 0;  // tokens of a prompt and its continuation
  int64_t created = 0;  // seconds since 1970
};

struct ServiceOptions {
  // Where there are some, requests below /v1 and of /tokenize need one of them.
  std::vector<std::string> api_keys;
  // The origins of pages whose scripts may use the API beside the server's own page; "*": all.
  std::vector<std::string> cors_origins;
  // Gets a line (RequestRecord::Json) of each request that is complete; null: no log.
  std::function<void(const std::string& line)> log = nullptr;
};

class Service {
 public:
  // Model and engine outlive the service.
  Service(const ServedModel& model, Engine* engine, ServiceOptions options);
  // Drops requests that are not yet read. Before the server is destroyed, and no request comes meanwhile.
  ~Service();

  // Of HttpServer. Requests with a text are read on a thread of the service's own: a long one takes seconds, in which
  // the answers of others are written.
  void Handle(const std::shared_ptr<HttpExchange>& exchange);

  // From now on /ready says no: a balancer sends nothing more.
  void SetDraining() { draining_ = true; }

 private:
  // Reads a request on the service's thread, where its client is there until then: short ones first, others in the
  // order of the calls.
  void Later(const std::shared_ptr<HttpExchange>& exchange, std::function<void()> read);
  void Work();
  bool MayUse(const HttpRequest& request) const;
  // Lets scripts of allowed origins read the reply. True where the request only asks whether they may.
  bool AllowOrigin(HttpExchange& exchange) const;
  void Complete(const std::shared_ptr<HttpExchange>& exchange, const std::shared_ptr<RequestRecord>& record, bool chat);
  // The tokens of the request's prompt.
  std::variant<std::vector<int32_t>, ApiError> Encode(const ApiRequest& request, bool chat) const;
  // Turns the request into a task of an engine, with defaults of the model; the task lacks the receiver of the tokens.
  std::variant<Generation, ApiError> Plan(const ApiRequest& request, bool chat) const;
  void Tokenize(HttpExchange& exchange) const;
  OrderedJson Model() const;
  std::string Models() const;
  void DescribeModel(HttpExchange& exchange, const std::string& name) const;
  // The prompt has so many tokens.
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
  std::deque<std::function<void()>> short_, long_;  // requests that wait to be read
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_SERVICE_H_
