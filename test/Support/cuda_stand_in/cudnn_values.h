#ifndef BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_CUDNN_VALUES_H_
#define BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_CUDNN_VALUES_H_

// A graph of operations on tensors of four dimensions, as cuDNN is told it, and its values: operation by operation, in
// f64, rounded to the type of each tensor. Nothing here depends on the purpose of the graph.

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bowline::stand_in {

using Extents4 = std::array<int64_t, 4>;

struct GraphTensor {
  int64_t number = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Extents4 extents = {}, strides = {};  // in elements
  bool is_virtual = false, by_value = false;
};

struct GraphOperation {
  enum class Kind { kMatmul, kReduce, kReshape, kPointwise };
  Kind kind = Kind::kMatmul;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  int64_t axis = 0;
  std::vector<GraphTensor> inputs;
  GraphTensor out;
};

// Why the operation is none, or empty.
std::string WhyNoOperation(const GraphOperation& operation);

// Sorts operations so that each comes behind its inputs. Returns why that is impossible, or nothing.
std::string Sort(std::vector<GraphOperation>& operations);

// Runs sorted operations. `memory` are the addresses of tensors that are not virtual.
void Evaluate(const std::vector<GraphOperation>& operations, const std::map<int64_t, void*>& memory);

}  // namespace bowline::stand_in

#endif  // BOWLINE_TEST_SUPPORT_CUDA_STAND_IN_CUDNN_VALUES_H_
