#ifndef BOWLINE_TARGETS_TARGET_H_
#define BOWLINE_TARGETS_TARGET_H_

// The description of a device for the programs that compile for it or check its plans: passes, tools, the checker. A
// backend of the same name (compiler/Codegen/Backend.h) generates the device's code.

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

// The levels at which devices of a target differ: instruction sets, or architectures.
struct Levels {
  std::string_view flag;                // the flag that chooses a level, without dashes: "target-cpu"
  std::string_view help;                // the help text of the flag
  std::vector<std::string_view> names;  // the names that a plan may use
  std::string_view initial;             // if nobody chooses: one of them, or a word that the backend resolves
};

// The needs of a launch of a kernel.
struct KernelNeeds {
  size_t scratch_bytes = 0;
  std::vector<std::pair<int, int>> in_place = {};  // (output, input) arguments that may be the same bytes
};

// Says how products read a second operand that pack_matrix copied before, into the order in which they want it.
struct Packing {
  // The time that a call saves, and the time that pack_matrix takes, both as a number of rows of a product.
  struct Rows {
    double saved, pack;
  };
  Rows contiguous_in_n, other;
  int64_t rows_in_place;  // a product of no more rows reads the operand where it lies, if it is contiguous in n
  int64_t span_rows;      // after which a single thread packs again for results that are not stored as f32
  // The number of elements that k x n elements become; nothing where `level` has no such form for the type.
  std::optional<int64_t> (*elements)(int64_t k, int64_t n, kernels::DType dtype, std::string_view level);
};

// Rows of matrices begin where wide loads do.
struct ProductAlignment {
  int64_t row_bytes;  // the bytes of a row become a multiple of this
  int64_t multiple;   // a dimension that grows becomes a multiple of this
  int64_t min_size;   // smaller dimensions stay as they are
};

struct Target {
  std::string_view name;  // name of the driver, in --target and in plans: "cpu"
  std::string_view arch;  // "x86_64"
  Levels levels;
  int64_t alignment = 64;          // alignment of device buffers in bytes: a power of two from 64 on
  bool has_host_threads = true;    // a launch is divided among threads of the host, of which a plan says how many
  bool reads_host_memory = false;  // kernels read memory of the host where it lies, such as mapped files

  // Returns the needs of a kernel; kNotFound, listing the known names, where there is no such kernel; kInvalidArgument
  // for a signature that a device of the level, or of a better one, could not execute. A plan with such needs runs on
  // all of these devices.
  absl::StatusOr<KernelNeeds> (*needs)(const kernels::Signature& signature, std::string_view level);
  // The alignment of an argument's address in bytes: a power of two, at most `alignment`, or 0 where the size of an
  // element is enough. `kernel` is a name in the registry, empty for generated code.
  int64_t (*argument_alignment)(std::string_view kernel, kernels::Access access);

  // The types in which it computes: some of types/computed_types.h.
  std::vector<ElementType> computed_types = {ElementType::kF32, ElementType::kBF16, ElementType::kF16};
  // Communications of a rank follow one another by streams and events: a device that replays recorded commands forgets
  // the order in which they were issued, and ranks that start operations of several communicators in different orders
  // wait for each other for ever.
  bool orders_communications = false;
  bool has_epilogues = true;  // generated code that works on the result of a product may be part of its launch
  // Epilogues of kernels/registry/product_epilogue.h that a library computes with some products: `needs` says which.
  std::vector<std::string_view> library_epilogues = {};
  bool splits_f32_products = true;  // `matmul` knows bf16x6, with which devices of some levels multiply f32 by bf16
  bool leaves_rows_out = true;      // code and kernels may take a count of rows that they read on the device
  std::optional<Packing> packing = {};
  std::optional<ProductAlignment> product_alignment = {};
  int64_t loss_tile_bytes = int64_t{1} << 26;  // bytes of logits that exist at one time
  int64_t column_sum_blocks = 32;              // blocks into which a sum over rows is divided at most

  // Of a device of the level; of the least one where the level is none of these.
  Costs (*costs)(std::string_view level) = [](std::string_view) { return Costs(); };
};

// All targets of this build; the first is meant where a program names none.
absl::Span<const Target* const> AllTargets();
const Target& DefaultTarget();

// Returns kNotFound, listing the names, if there is none.
absl::StatusOr<const Target*> FindTarget(std::string_view name);

}  // namespace bowline::targets

#endif  // BOWLINE_TARGETS_TARGET_H_
