#include "runtime/drivers/cuda/cudnn/cudnn_graph.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr int64_t kByteAlignment = 16;  // of every tensor; arguments of plans have at least 64

}  // namespace

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::Create(const CudnnApi& api, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDNN(api, cudnnBackendCreateDescriptor, type, &made));
  return CudnnDescriptor(api, made);
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) api_->cudnnBackendDestroyDescriptor(descriptor_);
}

absl::Status CudnnDescriptor::SetBytes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t count, const void* values) const {
  const cudnnStatus_t result = api_->cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  if (result == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return CudnnStatus(*api_, result, absl::StrCat("cudnnBackendSetAttribute of ", static_cast<int>(name)));
}

absl::Status CudnnDescriptor::Finalize() const { return BOWLINE_CUDNN(*api_, cudnnBackendFinalize, descriptor_); }

absl::StatusOr<int64_t> CudnnDescriptor::Int64(cudnnBackendAttributeName_t name) const {
  int64_t value = 0, count = 0;
  BOWLINE_RETURN_IF_ERROR(
      BOWLINE_CUDNN(*api_, cudnnBackendGetAttribute, descriptor_, name, CUDNN_TYPE_INT64, 1, &count, &value));
  return value;
}

template <typename Describe>
CudnnDescriptor CudnnGraph::Make(cudnnBackendDescriptorType_t type, Describe describe) {
  CudnnDescriptor made;
  if (status_.ok()) {
    status_ = [&]() -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(made, CudnnDescriptor::Create(api_, type));
      BOWLINE_RETURN_IF_ERROR(describe(made));
      return made.Finalize();
    }();
  }
  return made;
}

CudnnGraph::Tensor CudnnGraph::Add(cudnnDataType_t type, const Extents& extents, const Extents& strides,
                                   bool is_virtual, std::unique_ptr<uint32_t> value) {
  Extents all = strides;
  if (all.empty()) {
    all.resize(extents.size());
    int64_t stride = 1;
    for (size_t i = extents.size(); i-- > 0;) {
      all[i] = stride;
      stride *= extents[i];
    }
  }
  CudnnDescriptor made = Make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, [&](const CudnnDescriptor& tensor) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type));
    BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, absl::MakeConstSpan(extents)));
    BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, absl::MakeConstSpan(all)));
    BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, NumberOf(tensors_.size())));
    BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kByteAlignment));
    if (is_virtual) BOWLINE_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true));
    if (value == nullptr) return absl::OkStatus();
    return tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  });
  tensors_.push_back({std::move(made), extents, std::move(value)});
  return tensors_.size() - 1;
}

CudnnGraph::Tensor CudnnGraph::InMemory(cudnnDataType_t type, const Extents& extents, const Extents& strides) {
  return Add(type, extents, strides, false, nullptr);
}

CudnnGraph::Tensor CudnnGraph::Virtual(cudnnDataType_t type, const Extents& extents, const Extents& strides) {
  return Add(type, extents, strides, true, nullptr);
}

CudnnGraph::Tensor CudnnGraph::Number(float value) {
  return Add(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {}, false, std::make_unique<uint32_t>(std::bit_cast<uint32_t>(value)));
}

CudnnGraph::Tensor CudnnGraph::Number(int32_t value) {
  return Add(CUDNN_DATA_INT32, {1, 1, 1, 1}, {}, false, std::make_unique<uint32_t>(static_cast<uint32_t>(value)));
}

void CudnnGraph::AddOperation(CudnnDescriptor operation, CudnnDescriptor how) {
  operations_.push_back(std::move(operation));
  hows_.push_back(std::move(how));
}

void CudnnGraph::Matmul(Tensor a, Tensor b, Tensor out) {
  CudnnDescriptor how = Make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, [&](const CudnnDescriptor& made) {
    return made.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  });
  CudnnDescriptor operation =
      Make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, At(a)));
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, At(b)));
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, At(out)));
        return made.Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
      });
  AddOperation(std::move(operation), std::move(how));
}

void CudnnGraph::Reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor out) {
  CudnnDescriptor how = Make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    return made.Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operation);
  });
  CudnnDescriptor reduction =
      Make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, At(x)));
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, At(out)));
        return made.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
      });
  AddOperation(std::move(reduction), std::move(how));
}

void CudnnGraph::Reshape(Tensor x, Tensor out) {
  AddOperation(Make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, At(x)));
    return made.Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, At(out));
  }));
}

CudnnDescriptor CudnnGraph::PointwiseHow(cudnnPointwiseMode_t mode, cudnnDataType_t precision, int64_t axis) {
  return Make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
    BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision));
    if (mode != CUDNN_POINTWISE_GEN_INDEX) return absl::OkStatus();
    return made.Set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  });
}

void CudnnGraph::Pointwise(cudnnPointwiseMode_t mode, absl::Span<const Tensor> inputs, Tensor out,
                           cudnnDataType_t precision) {
  constexpr cudnnBackendAttributeName_t kInputs[] = {
      CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  CudnnDescriptor how = PointwiseHow(mode, precision, 0);
  CudnnDescriptor operation =
      Make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
        for (size_t i = 0; i < inputs.size(); ++i) BOWLINE_RETURN_IF_ERROR(made.Set(kInputs[i], At(inputs[i])));
        return made.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, At(out));
      });
  AddOperation(std::move(operation), std::move(how));
}

void CudnnGraph::Index(int64_t axis, Tensor like, Tensor out) {
  CudnnDescriptor how = PointwiseHow(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis);
  CudnnDescriptor operation =
      Make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, [&](const CudnnDescriptor& made) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
        BOWLINE_RETURN_IF_ERROR(made.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, At(like)));
        return made.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, At(out));
      });
  AddOperation(std::move(operation), std::move(how));
}

absl::StatusOr<const CudnnDescriptor*> CudnnGraph::Finalize() {
  graph_ = Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, [&](const CudnnDescriptor& made) {
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.get());
    return made.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, absl::MakeConstSpan(operations));
  });
  BOWLINE_RETURN_IF_ERROR(status_);
  return &graph_;
}

std::vector<std::pair<int64_t, const void*>> CudnnGraph::Values() const {
  std::vector<std::pair<int64_t, const void*>> values;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].value != nullptr) values.emplace_back(NumberOf(i), tensors_[i].value.get());
  }
  return values;
}

}  // namespace bowline
