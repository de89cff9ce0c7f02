#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_PLAN_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_PLAN_H_

#include <cstddef>

#include "runtime/drivers/cuda/cudnn/cudnn_graph.h"

namespace bowline {

// The executable form into which cuDNN compiles a graph.
class CudnnPlan {
 public:
  // Makes the first of the library's choices for a device with these properties that works and whose workspace has at
  // most `limit` bytes. Returns kUnimplemented with the library's message if it has none for the graph, and
  // kResourceExhausted, naming the least workspace, if none fits.
  static absl::StatusOr<CudnnPlan> Create(const CudnnApi& api, const CudnnDescriptor& properties,
                                          const CudnnDescriptor& graph, size_t limit);

  const CudnnDescriptor& descriptor() const { return plan_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  CudnnPlan(CudnnDescriptor plan, size_t bytes) : plan_(std::move(plan)), workspace_bytes_(bytes) {}

  CudnnDescriptor plan_;
  size_t workspace_bytes_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_PLAN_H_
