#ifndef BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
#define BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_

// The course of requests in time, for the log and for /metrics.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/serve/finish_reason.h"
#include "runtime/serve/histogram.h"

namespace bowline::serve {

using ServeClock = std::chrono::steady_clock;

// How long clients waited, and for how much. Any thread may call. vLLM calls an answer a request.
class Latencies {
 public:
  struct Values {
    Histogram first_token{kEndsOfSeconds};     // from the request to the first token of an answer
    Histogram between_tokens{kEndsOfSeconds};  // from a token of an answer to the next
    Histogram per_token{kEndsOfSeconds};       // the same, the mean of each answer
    Histogram whole{kEndsOfSeconds};           // from the request to the end of its last answer
    Histogram queue{kEndsOfSeconds};           // until an answer's first step
    Histogram prefill{kEndsOfSeconds};         // from there to its first token
    Histogram decode{kEndsOfSeconds};          // from there to its last token
    Histogram inference{kEndsOfSeconds};       // prefill and decode
    Histogram prompt_tokens{kEndsOfTokens};    // of an answer
    Histogram new_tokens{kEndsOfTokens};       // of an answer
    Histogram most_new_tokens{kEndsOfTokens};  // of a request's longest answer
  };

  void Add(Histogram Values::* histogram, double value);
  Values values() const;

 private:
  mutable std::mutex mutex_;
  Values values_;
};

// A request from its arrival until its reply is complete. Any thread may call.
class RequestRecord {
 public:
  RequestRecord(std::string method, std::string path, std::shared_ptr<Latencies> latencies);

  // The request is one that generates `answers` answers.
  void BeginGeneration(std::string id, uint64_t prompt_tokens, size_t answers);
  // The answer is computed from now on.
  void BeginAnswer(size_t answer);
  void AddToken(size_t answer);
  void EndAnswer(size_t answer, FinishReason reason);

  // An object of JSON on one line: time, method, path, status, complete (false where the client left), duration_ms; of
  // one that generates also id, prompt_tokens, completion_tokens, first_token_ms and finish_reasons. No text of a
  // prompt or an answer, and no header.
  std::string Json(int status, bool complete) const;

 private:
  struct Answer {
    std::optional<ServeClock::time_point> began = {}, first_token = {}, last_token = {};
    uint64_t tokens = 0;
    std::optional<FinishReason> ended = {};
  };

  // Counts an answer that ended.
  void CountAnswer(const Answer& answer);

  const std::string method_, path_;
  const std::shared_ptr<Latencies> latencies_;
  const ServeClock::time_point begin_;
  const std::chrono::system_clock::time_point time_;
  mutable std::mutex mutex_;  // guards the members below
  std::string id_;            // empty: nothing is generated
  ServeClock::time_point queued_;
  uint64_t prompt_tokens_ = 0, tokens_ = 0;
  std::optional<ServeClock::time_point> first_token_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
