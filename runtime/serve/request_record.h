#ifndef BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
#define BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_

// Records the times of requests, for the log and for /metrics.

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

// Histograms of waiting times and of token counts. Any thread may call. vLLM's word for an answer is request.
class Latencies {
 public:
  struct Values {
    Histogram first_token{kEndsOfSeconds};     // from the request to the first token of an answer
    Histogram between_tokens{kEndsOfSeconds};  // from a token of an answer to the next
    Histogram per_token{kEndsOfSeconds};       // the mean of these times in each answer
    Histogram whole{kEndsOfSeconds};           // from the request to the end of its last answer
    Histogram queue{kEndsOfSeconds};           // from BeginGeneration to an answer's first step
    Histogram prefill{kEndsOfSeconds};         // from an answer's first step to its first token
    Histogram decode{kEndsOfSeconds};          // from an answer's first token to its last one
    Histogram inference{kEndsOfSeconds};       // prefill and decode
    Histogram prompt_tokens{kEndsOfTokens};    // tokens of each answer's prompt
    Histogram new_tokens{kEndsOfTokens};       // generated tokens of each answer
    Histogram most_new_tokens{kEndsOfTokens};  // generated tokens of a request's longest answer
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

  // The request generates `answers` answers, and has this id in the log. Call this before the next three functions.
  void BeginGeneration(std::string id, uint64_t prompt_tokens, size_t answers);
  // The first step of an answer begins now.
  void BeginAnswer(size_t answer);
  void AddToken(size_t answer);
  void EndAnswer(size_t answer, FinishReason reason);

  // The log line, a JSON object: time, method, path, status, complete (false if the client left), duration_ms. For a
  // request that generates answers also id, prompt_tokens, completion_tokens, first_token_ms and finish_reasons. It
  // contains no text of a prompt or answer, and no header.
  std::string Json(int status, bool complete) const;

 private:
  struct Answer {
    std::optional<ServeClock::time_point> began = {}, first_token = {}, last_token = {};
    uint64_t tokens = 0;
    std::optional<FinishReason> ended = {};
  };

  // Adds an answer that has ended to the histograms.
  void CountAnswer(const Answer& answer);

  const std::string method_, path_;
  const std::shared_ptr<Latencies> latencies_;
  const ServeClock::time_point begin_;
  const std::chrono::system_clock::time_point time_;
  mutable std::mutex mutex_;  // guards the members below
  std::string id_;            // empty: the request generates nothing
  ServeClock::time_point queued_;
  uint64_t prompt_tokens_ = 0, tokens_ = 0;
  std::optional<ServeClock::time_point> first_token_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
