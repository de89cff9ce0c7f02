#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_

#include <vector>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/card/stream_operation.h"
#include "runtime/hal/recording.h"

namespace bowline {

// A graph of CUDA, captured from streams.
class CudaRecording : public hal::Recording {
 public:
  // An empty recording, for CaptureRecording (cuda_capture.h).
  explicit CudaRecording(CudaCard* card) : card_(card) {}
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  CUgraphExec graph() const { return graph_; }
  // Sets the graph, which this object then owns.
  void SetGraph(CUgraphExec graph) { graph_ = graph; }

  // Libraries whose operations the graph has.
  const std::vector<StreamOperation*>& operations() const { return operations_; }
  void Add(StreamOperation* operation);

 private:
  CudaCard* card_;
  CUgraphExec graph_ = nullptr;
  std::vector<StreamOperation*> operations_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_RECORDING_H_
