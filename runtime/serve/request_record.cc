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

void LatencyHistogram::Add(ServeClock::duration time) {
  const double seconds = Seconds(time);
  ++counts[static_cast<size_t>(std::lower_bound(kEnds.begin(), kEnds.end(), seconds) - kEnds.begin())];
  sum += seconds;
}

void Latencies::Add(LatencyHistogram Values::* histogram, ServeClock::duration time) {
  const std::lock_guard<std::mutex> lock(mutex_);
  (values_.*histogram).Add(time);
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
  prompt_tokens_ = prompt_tokens;
  answers_.resize(answers);
}

void RequestRecord::AddToken(size_t answer) {
  const ServeClock::time_point now = ServeClock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++tokens_;
  if (!first_token_.has_value()) first_token_ = now;
  std::optional<ServeClock::time_point>& last = answers_[answer].last_token;
  if (last.has_value()) {
    latencies_->AddBetweenTokens(now - *last);
  } else {
    latencies_->AddFirstToken(now - begin_);
  }
  last = now;
}

void RequestRecord::EndAnswer(size_t answer, FinishReason reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_[answer].ended = reason;
  if (++ended_ == answers_.size()) latencies_->AddWhole(ServeClock::now() - begin_);
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
