#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_GRAPH_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_GRAPH_H_

// `attention_forward` and `attention_backward` of the registry as graphs of cuDNN. The library matches its fused
// kernels only against one form of graph: products, then the scale, the mask and the softmax, operation by operation,
// with the dimension of heads before that of rows.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/signatures/attention_shape.h"
#include "runtime/drivers/cuda/cudnn/cudnn_graph.h"

namespace bowline {

struct AttentionGraph {
  explicit AttentionGraph(const CudnnApi& api) : graph(api) {}

  CudnnGraph graph;
  std::vector<int64_t> arguments;  // the numbers of the signature's arguments, in order
  // Numbers and bytes of tensors between parts of the graph, which lie in the workspace beside the library's own.
  std::vector<std::pair<int64_t, size_t>> between;
};

// The batches and heads of an attention that one graph computes. Arguments have the strides of the whole attention.
struct AttentionPart {
  int64_t batches, kv_heads;
};

// Returns the reason not to use cuDNN for an attention of MayBeByLibrary on cards of that compute capability, or "".
std::string WhyNotByCudnn(const kernels::AttentionShape& shape, bool backward, int major);

// The graph is not final. lse is f32 [batch, heads, queries, 1], natural logarithms, for both.
std::unique_ptr<AttentionGraph> DescribeAttentionForward(const CudnnApi& api, const kernels::AttentionShape& shape,
                                                         AttentionPart part);
// With `in_order`, gradients of queries are summed up in a fixed order, and the bits are the same in each run.
std::unique_ptr<AttentionGraph> DescribeAttentionBackward(const CudnnApi& api, const kernels::AttentionShape& shape,
                                                          AttentionPart part, bool in_order);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_GRAPH_H_
