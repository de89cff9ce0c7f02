#include "runtime/drivers/cuda/card/cuda_recording.h"

#include <algorithm>

namespace bowline {

CudaRecording::~CudaRecording() {
  if (graph_ != nullptr && card_->MakeCurrent().ok()) card_->api().cuGraphExecDestroy(graph_);
  for (StreamOperation* const operation : operations_) operation->Forget(this);
}

void CudaRecording::Add(StreamOperation* operation) {
  if (std::find(operations_.begin(), operations_.end(), operation) == operations_.end()) {
    operations_.push_back(operation);
  }
}

}  // namespace bowline
