#ifndef BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
#define BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_

// The course of requests in time, for the log and for /metrics.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/serve/finish_reason.h"

namespace bowline::serve {

using ServeClock = std::chrono::steady_clock;

// Counts durations by size.
struct LatencyHistogram {
  // The upper ends of all buckets but the last, in seconds.
  static constexpr std::array<double, 16> kEnds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                   0.5,   1,     2,     5,    10,   20,   60,  300};
  std::array<uint64_t, kEnds.size() + 1> counts = {};
  double sum = 0;  // seconds

  void Add(ServeClock::duration time);
};

// How long clients waited. Any thread may call.
class Latencies {
 public:
  struct Values {
    LatencyHistogram first_token;     // from the request to the first token of an answer
    LatencyHistogram between_tokens;  // from a token of an answer to the next
    LatencyHistogram whole;           // from the request to the end of its last answer
  };

  void AddFirstToken(ServeClock::duration time) { Add(&Values::first_token, time); }
  void AddBetweenTokens(ServeClock::duration time) { Add(&Values::between_tokens, time); }
  void AddWhole(ServeClock::duration time) { Add(&Values::whole, time); }
  Values values() const;

 private:
  void Add(LatencyHistogram Values::* histogram, ServeClock::duration time);

  mutable std::mutex mutex_;
  Values values_;
};

// A request from its arrival until its reply is complete. Any thread may call.
class RequestRecord {
 public:
  RequestRecord(std::string method, std::string path, std::shared_ptr<Latencies> latencies);

  // The request is one that generates `answers` answers.
  void BeginGeneration(std::string id, uint64_t prompt_tokens, size_t answers);
  void AddToken(size_t answer);
  void EndAnswer(size_t answer, FinishReason reason);

  // An object of JSON on one line: time, method, path, status, complete (false where the client left), duration_ms; of
  // one that generates also id, prompt_tokens, completion_tokens, first_token_ms and finish_reasons. No text of a
  // prompt or an answer, and no header.
  std::string Json(int status, bool complete) const;

 private:
  struct Answer {
    std::optional<ServeClock::time_point> last_token = {};
    std::optional<FinishReason> ended = {};
  };

  const std::string method_, path_;
  const std::shared_ptr<Latencies> latencies_;
  const ServeClock::time_point begin_;
  const std::chrono::system_clock::time_point time_;
  mutable std::mutex mutex_;  // guards the members below
  std::string id_;            // empty: nothing is generated
  uint64_t prompt_tokens_ = 0, tokens_ = 0;
  std::optional<ServeClock::time_point> first_token_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_REQUEST_RECORD_H_
