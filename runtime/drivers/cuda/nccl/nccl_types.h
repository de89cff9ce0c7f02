#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_TYPES_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_TYPES_H_

#include <nccl.h>

#include <optional>

#include "kernels/registry/registry.h"

namespace bowline {

// Data that is moved and not reduced is sent as bytes, whatever its type.
inline constexpr ncclDataType_t kNcclByte = ncclUint8;

// NCCL's name of a type that is reduced; nothing where NCCL has none.
constexpr std::optional<ncclDataType_t> NcclReduced(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kF32:
      return ncclFloat32;
    case kernels::DType::kF64:
      return ncclFloat64;
    case kernels::DType::kBF16:
      return ncclBfloat16;
    case kernels::DType::kF16:
      return ncclFloat16;
    case kernels::DType::kI64:
      return ncclInt64;
    case kernels::DType::kI32:
      return ncclInt32;
    default:
      return std::nullopt;
  }
}

namespace internal {
constexpr bool NcclReducesWhatCanBe() {
  for (const ElementTypeInfo& info : kElementTypes) {
    if (CanReduce(info.type) && !NcclReduced(info.type).has_value()) return false;
  }
  return true;
}
}  // namespace internal
static_assert(internal::NcclReducesWhatCanBe(), "a type that collectives reduce has no name in NCCL");

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_TYPES_H_
