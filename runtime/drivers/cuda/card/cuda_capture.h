#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CAPTURE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CAPTURE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/recording.h"
#include "runtime/hal/stream.h"

namespace bowline {

// Implements hal::Device::Record. All streams are captured as one: the first one begins, the others fork from it and
// join it again. CUDA refuses forbidden calls of this thread only (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), so that ranks
// that are threads and share the card may allocate and load meanwhile.
absl::StatusOr<std::unique_ptr<hal::Recording>> CaptureRecording(CudaCard* card, absl::Span<hal::Stream* const> streams,
                                                                 absl::FunctionRef<absl::Status()> issue);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CAPTURE_H_
