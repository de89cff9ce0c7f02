#ifndef BOWLINE_TARGETS_TARGET_H_
#define BOWLINE_TARGETS_TARGET_H_

// Describes a device to programs that compile for it or check its plans: passes, tools and the checker. A backend of
// the same name (compiler/Codegen/Backend.h) generates code for the device.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "targets/costs/cost_model.h"
#include "types/computed_types.h"

namespace bowline::targets {

// The levels of a target's devices, such as instruction sets or GPU architectures.
struct Levels {
  std::string_view flag;                // the flag that selects a level, without dashes: "target-cpu"
  std::string_view help;                // the help text of the flag
  std::vector<std::string_view> names;  // the levels that a plan may name
  std::string_view initial;             // the default: one of `names`, or a word for the backend: "native"
};

// The requirements of a kernel's launches.
struct KernelNeeds {
  size_t scratch_bytes = 0;
  std::vector<std::pair<int, int>> in_place = {};  // pairs (output, input) of arguments that may be the same bytes
};

// A layout into which `pack_matrix` copies the second operand of a product, so that products read it faster.
struct Packing {
  // Both times are in rows of a product: `saved` is the time that one product saves, `pack` that of `pack_matrix`.
  struct Rows {
    double saved, pack;
  };
  Rows contiguous_in_n, other;
  int64_t rows_in_place;  // products of at most so many rows do not pack an operand that is contiguous in n
  int64_t span_rows;      // with one thread and a result not stored as f32, a product packs again every so many rows
  // Returns the number of elements of a packed k x n operand; nothing if `level` cannot pack the type.
  std::optional<int64_t> (*elements)(int64_t k, int64_t n, kernels::DType dtype, std::string_view level);
};

// Enlarges dimensions of matrices so that their rows begin at addresses for wide loads.
struct ProductAlignment {
  int64_t row_bytes;  // the size of a row in bytes becomes a multiple of this
  int64_t multiple;   // an enlarged dimension becomes a multiple of this
  int64_t min_size;   // dimensions below this keep their size
};

struct Target {
  std::string_view name;  // the name of the driver in --target and in plans: "cpu"
  std::string_view arch;  // "x86_64"
  Levels levels;
  int64_t alignment = 64;          // alignment of device buffers in bytes: a power of two, at least 64
  bool has_host_threads = true;    // launches are divided among host threads, whose number the plan has
  bool reads_host_memory = false;  // kernels read host memory in place, such as mapped files

  // Returns the requirements of a kernel, which hold for devices of the level and of better ones, so that a plan runs
  // on all of them. Returns kNotFound, listing known names, for an unknown kernel, and kInvalidArgument for a signature
  // that one of these devices cannot execute.
  absl::StatusOr<KernelNeeds> (*needs)(const kernels::Signature& signature, std::string_view level);
  // Returns the alignment in bytes that an argument's address needs: a power of two, at most `alignment`, or 0 where
  // the size of an element suffices. `kernel` is a name in the registry, or empty for generated code.
  int64_t (*argument_alignment)(std::string_view kernel, kernels::Access access);

  // The types in which the device computes: a subset of types/computed_types.h.
  std::vector<ElementType> computed_types = {ElementType::kF32, ElementType::kBF16, ElementType::kF16};
  // Whether streams and events must order all communications of a rank. A device that replays recorded commands does
  // not keep the order of issue. Without this order, ranks could start operations of several communicators in different
  // orders and wait for each other forever.
  bool orders_communications = false;
  bool has_epilogues = true;  // a launch of a product may include generated code that processes its result
  // Epilogues of kernels/registry/product_epilogue.h that a library can compute in a product; `needs` says which.
  std::vector<std::string_view> library_epilogues = {};
  bool splits_f32_products = true;  // `matmul` has the mode bf16x6, which computes f32 products by bf16 instructions
  bool leaves_rows_out = true;      // kernels and code may read a count of valid rows on the device, and skip others
  std::optional<Packing> packing = {};
  std::optional<ProductAlignment> product_alignment = {};
  int64_t loss_tile_bytes = int64_t{1} << 26;  // bytes of logits that a plan holds at a time, about
  int64_t column_sum_blocks = 32;              // at most so many blocks share a sum over rows

  // Returns the costs of a device of the level. An unknown level gets those of the least level.
  Costs (*costs)(std::string_view level) = [](std::string_view) { return Costs(); };
};

// Returns all targets of this build. The first one is the default.
absl::Span<const Target* const> AllTargets();
const Target& DefaultTarget();

// Returns kNotFound, listing the names, if this build has no such target.
absl::StatusOr<const Target*> FindTarget(std::string_view name);

}  // namespace bowline::targets

#endif  // BOWLINE_TARGETS_TARGET_H_
