#ifndef BOWLINE_RUNTIME_SERVE_SERVICE_H_
#define BOWLINE_RUNTIME_SERVE_SERVICE_H_

// The paths of the server: OpenAI's API over an engine, and what whoever runs it asks.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/serve/api_request.h"
#include "runtime/serve/chat_renderer.h"
#include "runtime/serve/engine.h"
#include "runtime/serve/http_server.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

struct ServedModel {
  std::string name;
  const Tokenizer* tokenizer = nullptr;
  // Null where the model has no template that is understood.
  ChatRenderer render;
  std::vector<int32_t> end_tokens;
  int64_t context = 0;  // tokens of a prompt and its continuation
  int64_t created = 0;  // seconds since 1970
};

class Service {
 public:
  // All outlive the service. With keys, requests below /v1 and of /tokenize need one of them.
  Service(const ServedModel& model, Engine* engine, std::vector<std::string> api_keys);

  // Of HttpServer.
  void Handle(const std::shared_ptr<HttpExchange>& exchange);

  // From now on /ready says no: a balancer sends nothing more.
  void SetDraining() { draining_ = true; }

 private:
  bool MayUse(const HttpRequest& request) const;
  void Complete(const std::shared_ptr<HttpExchange>& exchange, bool chat);
  void Tokenize(HttpExchange& exchange) const;
  std::string Models() const;
  std::string Metrics() const;

  const ServedModel& model_;
  Engine* const engine_;
  const std::vector<std::string> api_keys_;
  std::atomic<bool> draining_ = false;
  std::atomic<uint64_t> requests_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_SERVICE_H_
