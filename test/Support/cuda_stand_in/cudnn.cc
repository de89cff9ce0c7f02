// A stand-in for cuDNN's graph API (libcudnn.so.9), for tests of the cuda driver on machines without a card: the
// functions that it calls, on the stand-in for the driver. It keeps described graphs, refuses the same as the library
// refuses (attributes that are missing or of another type, descriptors that are not final, shapes that do not fit,
// numbers of tensors that nobody knows, memory that is missing or not aligned), and computes the graph that was
// described, operation by operation (cudnn_values.h). It sees attention in no graph: that the library does is tested
// with the library alone (test/Unit/Runtime/cudnn_graphs_test.cc).
//
// BOWLINE_STAND_IN_CUDNN_WORKSPACE is the workspace of its first kernel for a graph, in bytes; the second asks for 128
// less. BOWLINE_STAND_IN_CUDNN_REFUSES=1: it has no kernel for any graph.

#include <cuda.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "test/Support/cuda_stand_in/cudnn_values.h"
#include "test/Support/cuda_stand_in/stand_in.h"

namespace {

using namespace bowline::stand_in;

struct Descriptor;
using Kept = std::shared_ptr<Descriptor>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  std::vector<uint8_t> bytes;
  std::vector<Kept> descriptors;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  std::vector<GraphOperation> operations;  // one of an operation, those of a graph in order
  int64_t workspace = 0;                   // of a choice, or a plan
};

struct Handle {
  CUstream stream = nullptr;
  CUcontext context = nullptr;
};

thread_local std::string last_error;

cudnnStatus_t Refuse(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  return status;
}

const Kept& Of(cudnnBackendDescriptor_t descriptor) { return *reinterpret_cast<Kept*>(descriptor); }

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

// The types of the attributes that are known, by descriptor.
struct Rule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  bool needed = true;
};
const std::vector<Rule>* RulesOf(cudnnBackendDescriptorType_t type) {
  static const auto* const rules = new std::map<cudnnBackendDescriptorType_t, std::vector<Rule>>{
      {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, {{CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE}}},
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false}}},
      {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE}}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, {{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}}},
  };
  const auto found = rules->find(type);
  return found == rules->end() ? nullptr : &found->second;
}

template <typename T>
std::vector<T> Values(const Descriptor& from, cudnnBackendAttributeName_t name) {
  const auto found = from.attributes.find(name);
  if (found == from.attributes.end()) return {};
  std::vector<T> values(found->second.bytes.size() / sizeof(T));
  std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
  return values;
}
template <typename T>
T Value(const Descriptor& from, cudnnBackendAttributeName_t name, T otherwise = {}) {
  const std::vector<T> values = Values<T>(from, name);
  return values.empty() ? otherwise : values[0];
}
Kept Child(const Descriptor& from, cudnnBackendAttributeName_t name) {
  const auto found = from.attributes.find(name);
  return found == from.attributes.end() ? nullptr : found->second.descriptors[0];
}

// The tensor that a descriptor describes, or nothing if it is no tensor of four dimensions.
std::optional<GraphTensor> TensorOf(const Descriptor& from) {
  const std::vector<int64_t> extents = Values<int64_t>(from, CUDNN_ATTR_TENSOR_DIMENSIONS);
  const std::vector<int64_t> strides = Values<int64_t>(from, CUDNN_ATTR_TENSOR_STRIDES);
  if (from.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || extents.size() != 4 || strides.size() != 4) return std::nullopt;
  GraphTensor tensor;
  std::copy(extents.begin(), extents.end(), tensor.extents.begin());
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.number = Value<int64_t>(from, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = Value<cudnnDataType_t>(from, CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.is_virtual = Value<uint8_t>(from, CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  tensor.by_value = Value<uint8_t>(from, CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  if (*std::min_element(extents.begin(), extents.end()) < 1 || *std::min_element(strides.begin(), strides.end()) < 1 ||
      (tensor.is_virtual && tensor.by_value)) {
    return std::nullopt;
  }
  return tensor;
}

cudnnStatus_t MakeOperation(Descriptor& from, GraphOperation::Kind kind,
                            std::initializer_list<cudnnBackendAttributeName_t> inputs,
                            cudnnBackendAttributeName_t out) {
  GraphOperation operation;
  operation.kind = kind;
  for (const cudnnBackendAttributeName_t input : inputs) {
    if (const Kept tensor = Child(from, input); tensor != nullptr) operation.inputs.push_back(*TensorOf(*tensor));
  }
  operation.out = *TensorOf(*Child(from, out));
  if (kind == GraphOperation::Kind::kPointwise) {
    const Kept how = Child(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    operation.mode = Value<cudnnPointwiseMode_t>(*how, CUDNN_ATTR_POINTWISE_MODE);
    operation.axis = Value<int64_t>(*how, CUDNN_ATTR_POINTWISE_AXIS, -1);
    if (operation.inputs.size() == 2 && Child(from, CUDNN_ATTR_OPERATION_POINTWISE_TDESC) != nullptr) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "t without b");
    }
  } else if (kind == GraphOperation::Kind::kReduce) {
    operation.reduction =
        Value<cudnnReduceTensorOp_t>(*Child(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC), CUDNN_ATTR_REDUCTION_OPERATOR);
    if (operation.reduction != CUDNN_REDUCE_TENSOR_ADD && operation.reduction != CUDNN_REDUCE_TENSOR_MAX) {
      return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "the operator of a reduction");
    }
  }
  if (const std::string wrong = WhyNoOperation(operation); !wrong.empty()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, wrong);
  }
  from.operations = {operation};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t MakeGraph(Descriptor& graph) {
  std::map<int64_t, const Descriptor*> tensors;
  for (const Kept& operation : graph.attributes[CUDNN_ATTR_OPERATIONGRAPH_OPS].descriptors) {
    if (operation->operations.size() != 1) return Refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "no operation");
    graph.operations.push_back(operation->operations[0]);
    for (const auto& [name, attribute] : operation->attributes) {
      for (const Kept& tensor : attribute.descriptors) {
        if (tensor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
        const int64_t number = Value<int64_t>(*tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
        if (tensors.emplace(number, tensor.get()).first->second == tensor.get()) continue;
        return Refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "two tensors of one number");
      }
    }
  }
  const std::string wrong = Sort(graph.operations);
  return wrong.empty() ? CUDNN_STATUS_SUCCESS : Refuse(CUDNN_STATUS_BAD_PARAM, wrong);
}

int64_t FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::atoll(value);
}

cudnnStatus_t Finish(Descriptor& made) {
  using Kind = GraphOperation::Kind;
  switch (made.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return TensorOf(made).has_value() ? CUDNN_STATUS_SUCCESS : Refuse(CUDNN_STATUS_BAD_PARAM, "no tensor");
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return MakeOperation(made, Kind::kMatmul, {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                           CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return MakeOperation(made, Kind::kReduce, {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
                           CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return MakeOperation(made, Kind::kReshape, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
                           CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return MakeOperation(made, Kind::kPointwise,
                           {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                            CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                           CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return MakeGraph(made);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Kept choice = Child(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (choice->operations.empty()) return Refuse(CUDNN_STATUS_BAD_PARAM, "a choice that the library did not make");
      made.operations = choice->operations;
      made.workspace = choice->workspace;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return made.attributes[CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS].bytes.size() ==
                     made.attributes[CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS].bytes.size()
                 ? CUDNN_STATUS_SUCCESS
                 : Refuse(CUDNN_STATUS_BAD_PARAM, "as many numbers as addresses");
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace

STAND_IN size_t cudnnGetVersion() {
  const int64_t asked = FromEnvironment("BOWLINE_STAND_IN_CUDNN_VERSION");
  return asked == 0 ? CUDNN_VERSION : static_cast<size_t>(asked);
}
STAND_IN const char* cudnnGetErrorString(cudnnStatus_t) { return "a status of the stand-in"; }
STAND_IN void cudnnGetLastErrorString(char* message, size_t size) {
  std::strncpy(message, last_error.c_str(), size);
  last_error.clear();
}

STAND_IN cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (current == nullptr) return Refuse(CUDNN_STATUS_NOT_INITIALIZED, "no context is current");
  auto* const made = new Handle();
  made->context = current;
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = reinterpret_cast<CUstream>(stream);
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                    cudnnBackendDescriptor_t* descriptor) {
  if (RulesOf(type) == nullptr) return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "a type of descriptors");
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  *descriptor = reinterpret_cast<cudnnBackendDescriptor_t>(new Kept(std::move(made)));
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete reinterpret_cast<Kept*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (descriptor == nullptr || (values == nullptr && count > 0)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null pointer");
  }
  Descriptor& set = *Of(descriptor);
  if (set.is_final) return Refuse(CUDNN_STATUS_BAD_PARAM, "an attribute of a final descriptor");
  const std::vector<Rule>& rules = *RulesOf(set.type);
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& each) { return each.name == name; });
  if (rule == rules.end()) return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "no attribute of it");
  if (rule->type != type) return Refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the type of an attribute");
  if (count < 1) return Refuse(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "an attribute without a value");
  Attribute attribute = {type, std::vector<uint8_t>(BytesOf(type) * static_cast<size_t>(count)), {}};
  std::memcpy(attribute.bytes.data(), values, attribute.bytes.size());
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const cudnnBackendDescriptor_t child = static_cast<const cudnnBackendDescriptor_t*>(values)[i];
      if (child == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null descriptor");
      if (!Of(child)->is_final) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor that is not final");
      attribute.descriptors.push_back(Of(child));
    }
  }
  set.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor& made = *Of(descriptor);
  for (const Rule& rule : *RulesOf(made.type)) {
    if (rule.needed && !made.attributes.contains(rule.name)) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(rule.name) + " is missing");
    }
  }
  const cudnnStatus_t status = Finish(made);
  made.is_final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

STAND_IN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t asked, int64_t* count,
                                                void* values) {
  const Descriptor& from = *Of(descriptor);
  if (!from.is_final) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor that is not final");
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && asked == 1) {
    *static_cast<int64_t*>(values) = from.workspace;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS || type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute that nobody reads");
  }
  // It says that there are more than it then finds that it can make, as the library does.
  const bool mode_a = Value<cudnnBackendHeurMode_t>(from, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
  const int64_t made = mode_a && FromEnvironment("BOWLINE_STAND_IN_CUDNN_REFUSES") == 0 ? 2 : 0;
  *count = asked == 0 ? made + 1 : std::min(asked, made);
  for (int64_t i = 0; asked > 0 && i < *count; ++i) {
    Descriptor& choice = *Of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    choice.operations = Child(from, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->operations;
    const int64_t workspace = FromEnvironment("BOWLINE_STAND_IN_CUDNN_WORKSPACE");
    choice.workspace = std::max<int64_t>(0, workspace - 128 * i);
    choice.is_final = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                           cudnnBackendDescriptor_t pack) {
  const Handle& own = *reinterpret_cast<Handle*>(handle);
  if (current != own.context) return Refuse(CUDNN_STATUS_BAD_PARAM, "the context of another card");
  if (!Of(plan)->is_final || !Of(pack)->is_final) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor that is not final");
  }
  if (CheckStream(own.stream) != CUDA_SUCCESS) return Refuse(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "the stream");
  const std::vector<int64_t> numbers = Values<int64_t>(*Of(pack), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const std::vector<void*> addresses = Values<void*>(*Of(pack), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* const workspace = Value<void*>(*Of(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const int64_t workspace_bytes = Of(plan)->workspace;
  if (workspace_bytes > 0 && workspace == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
  std::map<int64_t, void*> given, memory;
  for (size_t i = 0; i < numbers.size(); ++i) given[numbers[i]] = addresses[i];
  std::vector<CUdeviceptr> used = {reinterpret_cast<CUdeviceptr>(workspace)};
  // Numbers are read now, as the library does, and kept for a graph's replays.
  std::vector<std::shared_ptr<uint32_t>> values;
  const auto take = [&](const GraphTensor& tensor) {
    if (tensor.is_virtual) return CUDNN_STATUS_SUCCESS;
    const auto found = given.find(tensor.number);
    if (found == given.end() || found->second == nullptr) {
      return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no address for tensor " + std::to_string(tensor.number));
    }
    if (tensor.by_value) {
      values.push_back(std::make_shared<uint32_t>(*static_cast<const uint32_t*>(found->second)));
      memory[tensor.number] = values.back().get();
      return CUDNN_STATUS_SUCCESS;
    }
    const auto address = reinterpret_cast<CUdeviceptr>(found->second);
    if (address % 16 != 0) return Refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "an address");
    size_t end = 1;
    for (size_t d = 0; d < 4; ++d) end += static_cast<size_t>((tensor.extents[d] - 1) * tensor.strides[d]);
    if (!IsInside(address, end * (tensor.type == CUDNN_DATA_BFLOAT16 ? 2 : 4), Card())) {
      return Refuse(CUDNN_STATUS_EXECUTION_FAILED, "memory that is not the card's");
    }
    memory[tensor.number] = found->second;
    used.push_back(address);
    return CUDNN_STATUS_SUCCESS;
  };
  for (const GraphOperation& operation : Of(plan)->operations) {
    for (const GraphTensor& input : operation.inputs) {
      if (const cudnnStatus_t status = take(input); status != CUDNN_STATUS_SUCCESS) return status;
    }
    if (const cudnnStatus_t status = take(operation.out); status != CUDNN_STATUS_SUCCESS) return status;
  }
  if (given.size() != numbers.size() || given.size() != memory.size()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "numbers that are no tensor's");
  }
  const Held held(used);
  const CUresult issued =
      Issue(own.stream, [operations = Of(plan)->operations, memory, values, held, workspace, workspace_bytes] {
        if (!held.IsAlive()) return CUDA_ERROR_ILLEGAL_ADDRESS;
        std::memset(workspace, 0x77, static_cast<size_t>(workspace_bytes));
        Evaluate(operations, memory);
        return CUDA_SUCCESS;
      });
  return issued == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : Refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream");
}
