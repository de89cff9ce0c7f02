#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_EVENT_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_EVENT_H_

#include <memory>
#include <utility>

#include "runtime/base/progress_counter.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/event.h"

namespace bowline {

// An event of CUDA. Commands that are still to be handed to CUDA share it with the event of the HAL.
class CudaEventHandle {
 public:
  static absl::StatusOr<std::shared_ptr<CudaEventHandle>> Create(CudaCard* card, hal::EventMode mode);
  ~CudaEventHandle();
  CudaEventHandle(const CudaEventHandle&) = delete;
  CudaEventHandle& operator=(const CudaEventHandle&) = delete;

  CUevent get() const { return event_; }

 private:
  explicit CudaEventHandle(CudaCard* card) : card_(card) {}

  CudaCard* card_;
  CUevent event_ = nullptr;
};

// A point of a stream. It is CUDA's when the stream has handed over as many commands as `position` says; streams whose
// host calls wait do that later than Record returns (see cuda_stream.h).
class CudaEvent : public hal::Event {
 public:
  CudaEvent(CudaCard* card, std::shared_ptr<CudaEventHandle> handle, hal::EventMode mode)
      : card_(card), handle_(std::move(handle)), timed_(mode == hal::EventMode::kTimed) {}

  bool recorded() const override { return submitted_ != nullptr; }
  absl::Status Await() const override;
  absl::StatusOr<int64_t> Time() const override;

  void Record(std::shared_ptr<ProgressCounter> submitted, uint64_t position) {
    submitted_ = std::move(submitted);
    position_ = position;
  }
  const std::shared_ptr<CudaEventHandle>& handle() const { return handle_; }
  const std::shared_ptr<ProgressCounter>& submitted() const { return submitted_; }
  uint64_t position() const { return position_; }

 private:
  CudaCard* card_;
  std::shared_ptr<CudaEventHandle> handle_;
  bool timed_;
  std::shared_ptr<ProgressCounter> submitted_;  // counts commands of the stream; null: never recorded
  uint64_t position_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_EVENT_H_
