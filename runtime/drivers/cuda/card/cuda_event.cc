#include "runtime/drivers/cuda/card/cuda_event.h"

namespace bowline {

absl::StatusOr<std::shared_ptr<CudaEventHandle>> CudaEventHandle::Create(CudaCard* card, hal::EventMode mode) {
  std::shared_ptr<CudaEventHandle> handle(new CudaEventHandle(card));
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  const unsigned flags = mode == hal::EventMode::kTimed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(card->api(), cuEventCreate, &handle->event_, flags));
  return handle;
}

CudaEventHandle::~CudaEventHandle() {
  if (event_ != nullptr && card_->MakeCurrent().ok()) card_->api().cuEventDestroy(event_);
}

absl::Status CudaEvent::Await() const {
  if (!recorded()) return absl::OkStatus();
  submitted_->WaitFor(position_);
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  return BOWLINE_CUDA(card_->api(), cuEventSynchronize, handle_->get());
}

absl::StatusOr<int64_t> CudaEvent::Time() const {
  if (!timed_) return absl::FailedPreconditionError("an event that was not made for its time has none");
  if (!recorded()) return absl::FailedPreconditionError("an event that no stream recorded has no time");
  if (submitted_->value() < position_) {
    return absl::FailedPreconditionError("the stream has not come to an event whose time is asked for");
  }
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  return card_->clock().TimeOf(handle_->get());
}

}  // namespace bowline
