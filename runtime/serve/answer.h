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

// Finds the first stop text in an answer that comes in pieces.
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  // Adds a piece of the answer. Returns the text that is now certain to precede any stop text; sets *found if one came.
  std::string Add(const std::string& piece, bool* found);
  // Returns the text that is still held back, if no stop text came.
  std::string Finish();

 private:
  std::vector<std::string> texts_;
  std::string held_;  // text held back, which may begin a stop text
};

// Writes the answer to a request while it is computed: events of a stream, or one object at the end. The answer has as
// many choices as the request asks for. One thread at a time uses it.
class Answer {
 public:
  struct About {
    std::string id, model;
    int64_t created = 0;  // seconds since 1970
    bool chat = true;
    uint64_t prompt_tokens = 0;
  };

  Answer(std::shared_ptr<HttpExchange> exchange, const Tokenizer& tokenizer, const ApiRequest& request, About about);

  // Takes the next token of a choice. False if the choice needs no more: a stop text came, or another choice failed.
  bool Take(size_t choice, const SampledToken& sampled);
  void Finish(size_t choice, FinishReason reason, const absl::Status& status);

 private:
  struct Choice {
    size_t index;
    StreamDecoder decoder;
    StopTexts stop;
    std::string text = {};                 // the whole text, unless the answer is a stream
    size_t decoded = 0, letters = 0;       // bytes and code points that the decoder gave
    size_t said = 0;                       // bytes passed to Say
    std::vector<ScoredToken> scored = {};  // tokens whose logprobs are not yet written
    bool began = false, stopped = false;
    std::optional<FinishReason> ended = {};
  };

  // Sends the text to the client if the answer is a stream; otherwise keeps it for the end.
  void Say(Choice& choice, const std::string& text);
  void Fail(FinishReason reason, const absl::Status& status);
  void EndStream();
  void ReplyWhole();
  // Takes the logprobs of the tokens whose text was passed to Say; with `all`, of all tokens. Null if the request did
  // not ask for logprobs, or if the stream has none to send now.
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
