#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_GRAPH_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_GRAPH_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/drivers/cuda/cudnn/cudnn_api.h"

namespace bowline {

// A descriptor of cuDNN's backend, destroyed with its owner.
class CudnnDescriptor {
 public:
  static absl::StatusOr<CudnnDescriptor> Create(const CudnnApi& api, cudnnBackendDescriptorType_t type);

  CudnnDescriptor() = default;
  CudnnDescriptor(CudnnDescriptor&& other) noexcept { *this = std::move(other); }
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   absl::Span<const T> values) const {
    return SetBytes(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) const {
    return SetBytes(name, type, 1, &value);
  }
  absl::Status Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) const {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.descriptor_);
  }
  absl::Status Finalize() const;
  // The one value of an attribute.
  absl::StatusOr<int64_t> Int64(cudnnBackendAttributeName_t name) const;

 private:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptor_t descriptor) : api_(&api), descriptor_(descriptor) {}
  absl::Status SetBytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        const void* values) const;

  const CudnnApi* api_ = nullptr;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// Describes operations on tensors of four dimensions to cuDNN. After the first error the functions describe nothing
// more, and Finalize returns that error.
class CudnnGraph {
 public:
  using Tensor = size_t;
  using Extents = std::vector<int64_t>;

  explicit CudnnGraph(const CudnnApi& api) : api_(api) {}

  // A tensor in memory, whose address comes at each run with its number. Strides are in elements.
  Tensor InMemory(cudnnDataType_t type, const Extents& extents, const Extents& strides);
  // One that no memory has to hold. Row-major, unless strides are given.
  Tensor Virtual(cudnnDataType_t type, const Extents& extents, const Extents& strides = {});
  // A number that the graph's runs are given by its value.
  Tensor Number(float value);
  Tensor Number(int32_t value);

  // out = a x b, over the two last dimensions, in f32; heads of b are shared by as many of a as are there for each.
  void Matmul(Tensor a, Tensor b, Tensor out);
  // out[i] = the sum or the maximum of those x[j] that are at i where out has the extent 1, or fewer heads; in f32.
  void Reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor out);
  // Another view of the same elements.
  void Reshape(Tensor x, Tensor out);
  // out = mode(x[, b[, t]]), in the given precision, with x, b and t as CUDNN_ATTR_OPERATION_POINTWISE has them.
  void Pointwise(cudnnPointwiseMode_t mode, absl::Span<const Tensor> inputs, Tensor out,
                 cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  // out[i] = the index of i along the axis.
  void Index(int64_t axis, Tensor like, Tensor out);

  // The graph, which keeps its descriptors.
  absl::StatusOr<const CudnnDescriptor*> Finalize();

  // The number of a tensor, in a variant pack.
  static int64_t NumberOf(Tensor tensor) { return static_cast<int64_t>(tensor) + 1; }
  const Extents& extents(Tensor tensor) const { return tensors_[tensor].extents; }
  // The numbers of the graph's values, and where the values are while the graph lives.
  std::vector<std::pair<int64_t, const void*>> Values() const;

 private:
  struct Node {
    CudnnDescriptor descriptor;
    Extents extents;
    std::unique_ptr<uint32_t> value;  // of a number: its bits
  };

  Tensor Add(cudnnDataType_t type, const Extents& extents, const Extents& strides, bool is_virtual,
             std::unique_ptr<uint32_t> value);
  // Calls `describe`, unless something failed, with a new descriptor of the type, which becomes final.
  template <typename Describe>
  CudnnDescriptor Make(cudnnBackendDescriptorType_t type, Describe describe);
  const CudnnDescriptor& At(Tensor tensor) const { return tensors_[tensor].descriptor; }
  void AddOperation(CudnnDescriptor operation, CudnnDescriptor how = {});
  CudnnDescriptor PointwiseHow(cudnnPointwiseMode_t mode, cudnnDataType_t precision, int64_t axis);

  const CudnnApi& api_;
  absl::Status status_;
  std::vector<Node> tensors_;
  std::vector<CudnnDescriptor> hows_, operations_;
  CudnnDescriptor graph_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_GRAPH_H_
