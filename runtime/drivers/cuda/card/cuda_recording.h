#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/recording.h"
#include "runtime/hal/stream.h"

namespace bowline {

class StreamOperation;

// A graph of CUDA, captured from streams.
class CudaRecording : public hal::Recording {
 public:
  // As hal::Device::Record. All streams are captured as one: the first one begins, the others fork from it and join it
  // again. Only this thread's calls are held against the capture (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL): ranks that are
  // threads and share the card may allocate and load meanwhile, and what this thread must not do is an error.
  static absl::StatusOr<std::unique_ptr<hal::Recording>> Create(CudaCard* card, absl::Span<hal::Stream* const> streams,
                                                                absl::FunctionRef<absl::Status()> issue);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  CUgraphExec graph() const { return graph_; }

  // Libraries whose operations the graph has.
  const std::vector<StreamOperation*>& operations() const { return operations_; }
  void Add(StreamOperation* operation);

 private:
  explicit CudaRecording(CudaCard* card) : card_(card) {}

  CudaCard* card_;
  CUgraphExec graph_ = nullptr;
  std::vector<StreamOperation*> operations_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_
