#ifndef BOWLINE_KERNELS_REGISTRY_REGISTRY_H_
#define BOWLINE_KERNELS_REGISTRY_REGISTRY_H_

// Hand-written kernels by name, each with a typed signature. The compiler asks the registry whether a
// kernel accepts a signature and how much scratch it needs; the runtime asks it for a bound instance. Neither knows
// anything else about a kernel.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "types/element_type.h"

namespace bowline::kernels {

using DType = ElementType;
using bowline::NameOf;
using bowline::SizeOf;

// Same values as bowline.fbs.Access.
enum class Access : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

struct TensorSpec {
  Access access = Access::kRead;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // row-major and dense; empty for a scalar

  int64_t ElementCount() const;
  size_t ByteCount() const;
};

// A named value on which a kernel is specialised. Exactly one of the three values is meaningful for a given name.
struct Attribute {
  std::string name;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
};

// Generated code that computes a kernel's outputs from one finished tile of its result: `tile[(m - m0) * stride + n -
// n0]` is element (m, n) in f32. `arguments` are the kernel's arguments after its own operands, as whole tensors. The
// code reads and writes only elements with m0 <= m < m1 and n0 <= n < n1. Any thread may call it.
using TileEpilogue = void (*)(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1,
                              int64_t n0, int64_t n1);

struct Signature {
  std::string kernel;  // registry name: "matmul"
  std::vector<Attribute> attributes;
  std::vector<TensorSpec> arguments;  // inputs, then outputs; no scratch
  int threads = 1;                    // how many threads a launch may use
  // The kernel passes its result to an epilogue instead of an argument. The compiler sets no epilogue and never calls
  // Run.
  bool has_epilogue = false;
  TileEpilogue epilogue = nullptr;
  // The available bytes of workspace. A kernel must also run with less workspace where it can, so that a plan compiled
  // for a slower method still runs.
  size_t scratch_limit = std::numeric_limits<size_t>::max();

  const Attribute* Find(std::string_view name) const;
  // Returns kInvalidArgument naming kernel and attribute if it is missing or of another kind.
  absl::StatusOr<int64_t> Int(std::string_view name) const;
  absl::StatusOr<double> Float(std::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(std::string_view name) const;
};

// A kernel specialised on one signature. Run is reentrant only if no two calls share `scratch`.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Bytes of workspace that every Run needs; a function of the signature and the CPU only. The workspace begins at a
  // multiple of the device's alignment of buffers (targets::Target::alignment: 64 bytes on CPUs).
  virtual size_t ScratchBytes() const { return 0; }

  // `arguments` are base addresses in the order of Signature::arguments. No allocation, no lock, no error:
  // everything that can be wrong was refused by Create. Values of index operands were checked by the caller.
  virtual void Run(absl::Span<void* const> arguments, void* scratch) const = 0;
};

struct KernelDefinition {
  std::string_view name;
  std::string_view summary;  // one line: the results, shapes, attributes
  // Refuses (kInvalidArgument) any signature that Run could not execute safely.
  absl::StatusOr<std::unique_ptr<Kernel>> (*create)(const Signature& signature);
  // Pairs (output, input) of argument indices that may be the same bytes.
  std::vector<std::pair<int, int>> in_place = {};
  // The number of arguments that are the kernel's own operands if it has an epilogue; 0 if it takes no epilogue.
  int epilogue_operands = 0;
};

// All kernels of this build, ordered by name.
absl::Span<const KernelDefinition> AllKernels();

// Both return kNotFound, listing the known names, if there is no such kernel.
absl::StatusOr<const KernelDefinition*> FindKernel(std::string_view name);
absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_REGISTRY_H_
