#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_STREAM_OPERATION_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_STREAM_OPERATION_H_

#include <array>
#include <cstdint>
#include <optional>

#include "runtime/drivers/cuda/card/cuda_card.h"

namespace bowline {

class CudaRecording;

// An operation of a library in a stream, other than a launch or a copy.
class StreamOperation {
 public:
  virtual ~StreamOperation() = default;
  // Hands an operation to CUDA, which runs it, or keeps it in `recording` if that is not null. `label` is that of the
  // command. The card's context is current.
  virtual absl::Status Submit(CUstream stream, uint64_t label, const CudaRecording* recording,
                              const std::array<uint64_t, 6>& parameters) = 0;
  // Comes in a stream before each replay of a recording that has operations of this.
  virtual absl::Status BeginReplay(CUstream stream, const CudaRecording* recording) = 0;
  // The recording is gone.
  virtual void Forget(const CudaRecording* recording) = 0;
  // Returns whether operations ended with an error; it may be known before the stream has come to its end.
  virtual bool HasFailed() = 0;
  // That error, and the label of the operation at fault if it is known. OK if there is none.
  virtual absl::Status Failure(std::optional<uint64_t>* label) = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_STREAM_OPERATION_H_
