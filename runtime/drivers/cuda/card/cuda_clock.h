#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CLOCK_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CLOCK_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/drivers/cuda/card/cuda_api.h"

namespace bowline {

// Gives the times at which events of a card happened, in nanoseconds of the host's steady clock. CUDA tells the time
// between two events as an f32 in milliseconds, which is exact to a microsecond for a few seconds only. So there is a
// reference event whose time on the host is known, and a newer one when that is old. Thread-safe.
class CudaClock {
 public:
  // The card's context must be current, here and in all calls.
  static absl::StatusOr<std::unique_ptr<CudaClock>> Create(const CudaApi& api);

  // The time of an event. Returns kFailedPrecondition if the event was not reached.
  absl::StatusOr<int64_t> TimeOf(CUevent event);

 private:
  explicit CudaClock(const CudaApi& api) : api_(api) {}

  // Sets the time of `reference_` by the host's clock.
  absl::Status Calibrate();
  // Makes an event of now the reference.
  absl::Status Renew();

  const CudaApi& api_;
  std::mutex mutex_;
  CUstream stream_ = nullptr;
  CUevent reference_ = nullptr, spare_ = nullptr;
  int64_t reference_time_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CLOCK_H_
