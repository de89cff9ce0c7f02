#ifndef BOWLINE_RUNTIME_SERVE_ANSWER_H_
#define BOWLINE_RUNTIME_SERVE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/serve/api_request.h"
#include "runtime/serve/engine.h"
#include "runtime/serve/http_server.h"
#include "runtime/serve/logprobs.h"
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

// The answer to a request, as it is computed: events of a stream, or one object at the end, with as many choices as
// were asked for. Used by one thread at a time.
class Answer {
 public:
  struct About {
    std::string id, model;
    int64_t created = 0;  // seconds since 1970
    bool chat = true;
    uint64_t prompt_tokens = 0;
  };

  Answer(std::shared_ptr<HttpExchange> exchange, const Tokenizer& tokenizer, const ApiRequest& request, About about);

  // False when the choice needs no more tokens: a stop text came, or another choice failed.
  bool Take(size_t choice, const SampledToken& sampled);
  void Finish(size_t choice, FinishReason reason, const absl::Status& status);

 private:
  struct Choice {
    size_t index;
    StreamDecoder decoder;
    StopTexts stop;
    std::string text = {};                 // where there is no stream
    size_t decoded = 0, letters = 0;       // bytes and letters that the decoder gave
    size_t said = 0;                       // bytes that are certain to be before a stop text
    std::vector<ScoredToken> scored = {};  // that were not yet written
    bool began = false, stopped = false;
    std::optional<FinishReason> ended = {};
  };

  // Gives the text to the client, or keeps it for the end.
  void Say(Choice& choice, const std::string& text);
  void Fail(FinishReason reason, const absl::Status& status);
  void EndStream();
  void ReplyWhole();
  // The tokens whose text was said; `all`: those that have none, too. Null where they were not asked for, and where an
  // event has none.
  OrderedJson TakeLogprobs(Choice& choice, bool all);
  OrderedJson Piece(Choice& choice, const std::string& text, OrderedJson logprobs, OrderedJson finish) const;
  OrderedJson Object(OrderedJson choices, const char* suffix) const;
  OrderedJson Usage() const;
  void Event(OrderedJson choices, OrderedJson usage = nullptr);

  std::shared_ptr<HttpExchange> exchange_;
  const Tokenizer& tokenizer_;
  const About about_;
  const bool stream_, include_usage_, logprobs_;
  bool began_ = false, failed_ = false;
  std::vector<Choice> choices_;
  size_t ended_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_ANSWER_H_
