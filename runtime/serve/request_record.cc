#include "runtime/serve/request_record.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "runtime/serve/api_request.h"

namespace bowline::serve {
namespace {

double Seconds(ServeClock::duration time) { return std::chrono::duration<double>(time).count(); }

// Thousandths of a millisecond are enough.
double Milliseconds(ServeClock::duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) / 1e3;
}

const char* EndNameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kFailed:
      return "error";
  }
  return "";
}

}  // namespace

void Latencies::Add(Histogram Values::* histogram, double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  (values_.*histogram).Add(value);
}

Latencies::Values Latencies::values() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return values_;
}

RequestRecord::RequestRecord(std::string method, std::string path, std::shared_ptr<Latencies> latencies)
    : method_(std::move(method)),
      path_(std::move(path)),
      latencies_(std::move(latencies)),
      begin_(ServeClock::now()),
      time_(std::chrono::system_clock::now()) {}

void RequestRecord::BeginGeneration(std::string id, uint64_t prompt_tokens, size_t answers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  id_ = std::move(id);
  queued_ = ServeClock::now();
  prompt_tokens_ = prompt_tokens;
  answers_.resize(answers);
}

void RequestRecord::BeginAnswer(size_t answer) {
  const ServeClock::time_point now = ServeClock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_[answer].began = now;
  latencies_->Add(&Latencies::Values::queue, Seconds(now - queued_));
}

void RequestRecord::AddToken(size_t index) {
  const ServeClock::time_point now = ServeClock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++tokens_;
  if (!first_token_.has_value()) first_token_ = now;
  Answer& answer = answers_[index];
  ++answer.tokens;
  if (answer.last_token.has_value()) {
    latencies_->Add(&Latencies::Values::between_tokens, Seconds(now - *answer.last_token));
  } else {
    answer.first_token = now;
    latencies_->Add(&Latencies::Values::first_token, Seconds(now - begin_));
  }
  answer.last_token = now;
}

void RequestRecord::CountAnswer(const Answer& answer) {
  using Values = Latencies::Values;
  latencies_->Add(&Values::prompt_tokens, static_cast<double>(prompt_tokens_));
  latencies_->Add(&Values::new_tokens, static_cast<double>(answer.tokens));
  if (!answer.began.has_value() || !answer.first_token.has_value() || !answer.last_token.has_value()) return;
  const double decode = Seconds(*answer.last_token - *answer.first_token);
  latencies_->Add(&Values::prefill, Seconds(*answer.first_token - *answer.began));
  latencies_->Add(&Values::decode, decode);
  latencies_->Add(&Values::inference, Seconds(*answer.last_token - *answer.began));
  if (answer.tokens > 1) latencies_->Add(&Values::per_token, decode / static_cast<double>(answer.tokens - 1));
}

void RequestRecord::EndAnswer(size_t answer, FinishReason reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_[answer].ended = reason;
  CountAnswer(answers_[answer]);
  if (++ended_ < answers_.size()) return;
  uint64_t most = 0;
  for (const Answer& each : answers_) most = std::max(most, each.tokens);
  latencies_->Add(&Latencies::Values::most_new_tokens, static_cast<double>(most));
  latencies_->Add(&Latencies::Values::whole, Seconds(ServeClock::now() - begin_));
}

std::string RequestRecord::Json(int status, bool complete) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  OrderedJson record = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time_), absl::UTCTimeZone())},
      {"method", method_},
      {"path", path_},
      {"status", status},
      {"complete", complete},
      {"duration_ms", Milliseconds(ServeClock::now() - begin_)}};
  if (!id_.empty()) {
    OrderedJson reasons = OrderedJson::array();
    for (const Answer& answer : answers_) {
      reasons.push_back(answer.ended.has_value() ? OrderedJson(EndNameOf(*answer.ended)) : OrderedJson(nullptr));
    }
    record["id"] = id_;
    record["prompt_tokens"] = prompt_tokens_;
    record["completion_tokens"] = tokens_;
    record["first_token_ms"] =
        first_token_.has_value() ? OrderedJson(Milliseconds(*first_token_ - begin_)) : OrderedJson(nullptr);
    record["finish_reasons"] = std::move(reasons);
  }
  return record.dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace);
}

}  // namespace bowline::serve
