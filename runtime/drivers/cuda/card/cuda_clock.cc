#include "runtime/drivers/cuda/card/cuda_clock.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace bowline {
namespace {

// An f32 of this many milliseconds is exact to 61 ns.
constexpr float kOld = 1000;
// Beyond this, a time by the host's clock, wrong by a few microseconds, is better than the difference.
constexpr float kTooOld = 16000;

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

int64_t Nanoseconds(float milliseconds) { return std::llround(static_cast<double>(milliseconds) * 1e6); }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaClock>> CudaClock::Create(const CudaApi& api) {
  std::unique_ptr<CudaClock> clock(new CudaClock(api));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuStreamCreateWithPriority, &clock->stream_, CU_STREAM_NON_BLOCKING, 0));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventCreate, &clock->reference_, CU_EVENT_DEFAULT));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventCreate, &clock->spare_, CU_EVENT_DEFAULT));
  BOWLINE_RETURN_IF_ERROR(clock->Calibrate());
  return clock;
}

absl::Status CudaClock::Calibrate() {
  int64_t narrowest = INT64_MAX;
  // The first one also wakes the card.
  for (int i = 0; i < 30; ++i) {
    const int64_t before = Now();
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuEventRecord, spare_, stream_));
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuStreamSynchronize, stream_));
    const int64_t after = Now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    reference_time_ = before + narrowest / 2;
    std::swap(reference_, spare_);
  }
  return absl::OkStatus();
}

absl::Status CudaClock::Renew() {
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuEventRecord, spare_, stream_));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuStreamSynchronize, stream_));
  float milliseconds = 0;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuEventElapsedTime, &milliseconds, reference_, spare_));
  if (milliseconds > kTooOld) return Calibrate();
  reference_time_ += Nanoseconds(milliseconds);
  std::swap(reference_, spare_);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CudaClock::TimeOf(CUevent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int round = 0;; ++round) {
    float milliseconds = 0;
    const CUresult result = api_.cuEventElapsedTime(&milliseconds, reference_, event);
    if (result == CUDA_ERROR_NOT_READY) {
      return absl::FailedPreconditionError("the stream has not come to an event whose time is asked for");
    }
    BOWLINE_RETURN_IF_ERROR(CudaStatus(api_, result, "cuEventElapsedTime"));
    if (milliseconds < kOld || round > 0) return reference_time_ + Nanoseconds(milliseconds);
    BOWLINE_RETURN_IF_ERROR(Renew());
  }
}

}  // namespace bowline
