#ifndef BOWLINE_RUNTIME_SERVE_ANSWER_H_
#define BOWLINE_RUNTIME_SERVE_ANSWER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/serve/api_request.h"
#include "runtime/serve/engine.h"
#include "runtime/serve/http_server.h"
#include "runtime/text/tokenizer.h"

namespace bowline::serve {

// Finds texts at which an answer ends, in pieces as they come.
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  // The part of the answer with `piece` that is certain to be before a stop text. True in `*found` once there was one.
  std::string Add(const std::string& piece, bool* found);
  // The rest, where none came.
  std::string Finish();

 private:
  std::vector<std::string> texts_;
  std::string held_;  // might be the begin of one
};

// The answer to a request, as it is computed: events of a stream, or one object at the end. Used by one thread at a
// time.
class Answer {
 public:
  struct About {
    std::string id, model;
    int64_t created = 0;  // seconds since 1970
    bool chat = true;
    uint64_t prompt_tokens = 0;
  };

  Answer(std::shared_ptr<HttpExchange> exchange, const Tokenizer& tokenizer, const ApiRequest& request, About about);

  // False when a stop text came.
  bool Take(int32_t token);
  void Finish(FinishReason reason, const absl::Status& status);

 private:
  void Say(const std::string& text);
  nlohmann::ordered_json Object(nlohmann::ordered_json choice, const char* suffix) const;
  nlohmann::ordered_json Usage() const;
  void Event(const nlohmann::ordered_json& event);

  std::shared_ptr<HttpExchange> exchange_;
  StreamDecoder decoder_;
  StopTexts stop_;
  const About about_;
  const bool stream_, include_usage_;
  bool began_ = false;
  std::string text_;
  uint64_t tokens_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_ANSWER_H_
