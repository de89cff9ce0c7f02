#include "runtime/drivers/cuda/card/cuda_capture.h"

#include <utility>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_event.h"
#include "runtime/drivers/cuda/card/cuda_recording.h"
#include "runtime/drivers/cuda/card/cuda_stream.h"

namespace bowline {
namespace {

CudaStream& Of(hal::Stream* stream) { return *static_cast<CudaStream*>(stream); }

// One capture of several streams, from its begin to its end.
class Capture {
 public:
  Capture(const CudaApi& api, absl::Span<hal::Stream* const> streams, CudaRecording* recording)
      : api_(api), streams_(streams), recording_(recording) {}
  // Ends a capture that was begun, also after an error.
  ~Capture() {
    if (!begun_) return;
    CUgraph graph = nullptr;
    api_.cuStreamEndCapture(origin(), &graph);
    Release(graph);
  }

  absl::Status Begin(const std::vector<std::shared_ptr<CudaEventHandle>>& events) {
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuStreamBeginCapture, origin(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    begun_ = true;
    for (hal::Stream* const stream : streams_) Of(stream).SetRecording(recording_);
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuEventRecord, events[0]->get(), origin()));
    for (size_t i = 1; i < streams_.size(); ++i) {
      BOWLINE_RETURN_IF_ERROR(
          BOWLINE_CUDA(api_, cuStreamWaitEvent, Of(streams_[i]).handle(), events[0]->get(), CU_EVENT_WAIT_DEFAULT));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CUgraphExec> End(const std::vector<std::shared_ptr<CudaEventHandle>>& events) {
    for (size_t i = 1; i < streams_.size(); ++i) {
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuEventRecord, events[i]->get(), Of(streams_[i]).handle()));
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api_, cuStreamWaitEvent, origin(), events[i]->get(), CU_EVENT_WAIT_DEFAULT));
    }
    begun_ = false;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    absl::Status status = BOWLINE_CUDA(api_, cuStreamEndCapture, origin(), &graph);
    if (status.ok()) status = BOWLINE_CUDA(api_, cuGraphInstantiate, &executable, graph, 0);
    Release(graph);
    BOWLINE_RETURN_IF_ERROR(status);
    return executable;
  }

 private:
  CUstream origin() const { return Of(streams_[0]).handle(); }

  void Release(CUgraph graph) {
    for (hal::Stream* const stream : streams_) Of(stream).SetRecording(nullptr);
    if (graph != nullptr) api_.cuGraphDestroy(graph);
  }

  const CudaApi& api_;
  absl::Span<hal::Stream* const> streams_;
  CudaRecording* recording_;
  bool begun_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Recording>> CaptureRecording(CudaCard* card, absl::Span<hal::Stream* const> streams,
                                                                 absl::FunctionRef<absl::Status()> issue) {
  if (streams.empty()) return absl::InvalidArgumentError("a recording has at least one stream");
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  // The first is where the streams fork, the others are their ends.
  std::vector<std::shared_ptr<CudaEventHandle>> events;
  for (hal::Stream* const stream : streams) {
    BOWLINE_RETURN_IF_ERROR(stream->Synchronize());
    BOWLINE_ASSIGN_OR_RETURN(std::shared_ptr<CudaEventHandle> event,
                             CudaEventHandle::Create(card, hal::EventMode::kOrder));
    events.push_back(std::move(event));
  }
  auto recording = std::make_unique<CudaRecording>(card);
  Capture capture(card->api(), streams, recording.get());
  BOWLINE_RETURN_IF_ERROR(capture.Begin(events));
  BOWLINE_RETURN_IF_ERROR(issue());
  BOWLINE_ASSIGN_OR_RETURN(const CUgraphExec graph, capture.End(events));
  recording->SetGraph(graph);
  return std::unique_ptr<hal::Recording>(std::move(recording));
}

}  // namespace bowline
