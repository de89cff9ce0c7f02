#ifndef BOWLINE_KERNELS_CUDA_KERNEL_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_KERNEL_PROGRAM_H_

// How a CUDA device computes a kernel of the registry: the launches of device functions that it takes, in order. Pure
// host code that needs no CUDA: the compiler asks it for scratch on machines without a toolkit, the driver executes it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/registry/product_epilogue.h"
#include "kernels/registry/registry.h"
#include "kernels/signatures/attention_shape.h"

namespace bowline::kernels::cuda {

// A parameter of a device function.
struct Parameter {
  enum class Kind : uint8_t {
    kArgument,  // the address of Signature::arguments[index], plus `value` bytes
    kScratch,   // the address of the workspace, plus `value` bytes
    kConstant,  // the low `bytes` bytes of `value`
  };
  Kind kind = Kind::kConstant;
  uint32_t index = 0;  // the argument of a kArgument
  uint32_t bytes = 8;  // 4 or 8; addresses have 8
  uint64_t value = 0;

  static Parameter Argument(uint32_t index, uint64_t offset = 0) { return {Kind::kArgument, index, 8, offset}; }
  static Parameter Scratch(uint64_t offset = 0) { return {Kind::kScratch, 0, 8, offset}; }
  static Parameter I32(int32_t value) { return {Kind::kConstant, 0, 4, static_cast<uint32_t>(value)}; }
  static Parameter I64(int64_t value) { return {Kind::kConstant, 0, 8, static_cast<uint64_t>(value)}; }
  static Parameter F32(float value);
  static Parameter F64(double value);
};

// One launch of a function of the device's image (kernels/cuda/*.cu), which is extern "C" and named `function`.
struct DeviceLaunch {
  std::string function;
  std::array<uint32_t, 3> blocks = {1, 1, 1};   // at most 2^31 - 1, 65535, 65535
  std::array<uint32_t, 3> threads = {1, 1, 1};  // at most 1024 together
  uint32_t shared_bytes = 0;                    // dynamic shared memory; more than 48 KiB is asked for by the driver
  std::vector<Parameter> parameters = {};
};

// A matrix product, which a library computes: as `matmul` of the registry defines it, with strides in elements.
struct LibraryProduct {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::array<int64_t, 3> a = {}, b = {}, c = {};  // strides of [batch, m, k], [batch, k, n], [batch, m, n]
  bool accumulate = false;
  DType operands = DType::kF32, result = DType::kF32;
  // The epilogue that the library computes with the product. The next three fields number arguments of the kernel.
  const ProductEpilogue* epilogue = nullptr;
  int result_argument = 2;
  int vector_argument = -1;  // the bias, or sums
  int matrix_argument = -1;  // the input of the gradient of GELU, or that of GELU, which is kept; rows of n elements
};

// Attention, which a library may compute in place of the launches, with the same arguments and within the workspace.
struct LibraryAttention {
  AttentionShape shape;
  bool backward = false;
};

struct KernelProgram {
  size_t scratch_bytes = 0;  // a multiple of 256; the workspace begins at a multiple of 64
  std::vector<DeviceLaunch> launches = {};
  std::vector<LibraryProduct> products = {};  // `matmul` has one, and no launches
  std::optional<LibraryAttention> attention = std::nullopt;
  bool is_attention = false;  // also where no library computes this attention
};

// Returns kNotFound if a CUDA device has no such kernel, and kInvalidArgument for a signature that it could not execute
// safely: a signature that a CPU refuses, or one that the file of the kernel excludes.
absl::StatusOr<KernelProgram> ProgramOf(const Signature& signature);

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_KERNEL_PROGRAM_H_
