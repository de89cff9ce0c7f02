#include "runtime/drivers/discrete/discrete_kernels.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/discrete/discrete_launchable.h"

namespace bowline {
namespace {

constexpr uint32_t kMaxThreads = 1024, kMaxBlocks = 1 << 24;

// `grid` where it is one that any kernel could take.
absl::StatusOr<const hal::Grid*> GridOf(absl::string_view kernel, const hal::Geometry& geometry) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("kernel '", kernel, "' ", why));
  };
  const auto* grid = std::get_if<hal::Grid>(&geometry);
  if (grid == nullptr) return refuse("is launched by a grid");
  uint64_t blocks = 1, threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid->blocks[axis] < 1 || grid->threads[axis] < 1) return refuse("takes at least one block of one thread");
    blocks *= grid->blocks[axis];
    threads *= grid->threads[axis];
    if (blocks > kMaxBlocks || threads > kMaxThreads) {
      return refuse(absl::StrCat("takes at most ", kMaxBlocks, " blocks of at most ", kMaxThreads, " threads"));
    }
  }
  return grid;
}

bool Is(const kernels::TensorSpec& spec, kernels::Access access) {
  return spec.access == access && spec.dtype == kernels::DType::kF32;
}

class Fill : public DiscreteLaunchable {
 public:
  explicit Fill(int64_t elements) : elements_(elements) {}

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    BOWLINE_ASSIGN_OR_RETURN(const hal::Grid* const grid, GridOf("discrete_fill", geometry));
    const bool one_dimension =
        grid->blocks[1] == 1 && grid->blocks[2] == 1 && grid->threads[1] == 1 && grid->threads[2] == 1;
    if (one_dimension && grid->constants.size() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError("kernel 'discrete_fill' takes a grid of one dimension and one constant");
  }

  void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void*,
           GridWorkspace& workspace) const override {
    const auto& grid = std::get<hal::Grid>(geometry);
    const auto bits = static_cast<uint32_t>(grid.constants[0]);
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    auto* out = static_cast<float*>(arguments[0]);
    const int64_t step = int64_t{grid.blocks[0]} * grid.threads[0];
    for (const uint32_t block : workspace.BlockOrder(grid.blocks[0])) {
      for (uint32_t thread = 0; thread < grid.threads[0]; ++thread) {
        for (int64_t i = int64_t{block} * grid.threads[0] + thread; i < elements_; i += step) out[i] = value;
      }
    }
  }

 private:
  int64_t elements_;
};

class Transpose : public DiscreteLaunchable {
 public:
  Transpose(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    BOWLINE_ASSIGN_OR_RETURN(const hal::Grid* const grid, GridOf("discrete_transpose", geometry));
    const int64_t tile_columns = grid->threads[0], tile_rows = grid->threads[1];
    const bool fits = grid->threads[2] == 1 && grid->blocks[2] == 1 && grid->constants.empty() &&
                      grid->shared_bytes == tile_columns * tile_rows * sizeof(float) &&
                      grid->blocks[0] * tile_columns >= columns_ && grid->blocks[1] * tile_rows >= rows_;
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel 'discrete_transpose' takes blocks of x columns and y rows that cover ", columns_, " columns and ",
        rows_, " rows, x * y threads, 4 bytes of shared memory for each, and no constant"));
  }

  void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void*,
           GridWorkspace& workspace) const override {
    const auto& grid = std::get<hal::Grid>(geometry);
    const auto* in = static_cast<const float*>(arguments[0]);
    auto* out = static_cast<float*>(arguments[1]);
    const int64_t tile_columns = grid.threads[0], tile_rows = grid.threads[1];
    for (const uint32_t block : workspace.BlockOrder(grid.blocks[0] * grid.blocks[1])) {
      const int64_t column = block % grid.blocks[0] * tile_columns, row = block / grid.blocks[0] * tile_rows;
      auto* tile = reinterpret_cast<float*>(workspace.SharedMemory(grid.shared_bytes));
      // All threads of the block do this; then, when all are through, that.
      for (int64_t y = 0; y < tile_rows && row + y < rows_; ++y) {
        for (int64_t x = 0; x < tile_columns && column + x < columns_; ++x) {
          tile[y * tile_columns + x] = in[(row + y) * columns_ + column + x];
        }
      }
      for (int64_t x = 0; x < tile_columns && column + x < columns_; ++x) {
        for (int64_t y = 0; y < tile_rows && row + y < rows_; ++y) {
          out[(column + x) * rows_ + row + y] = tile[y * tile_columns + x];
        }
      }
    }
  }

 private:
  int64_t rows_, columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateDiscreteKernel(const kernels::Signature& signature) {
  const std::vector<kernels::TensorSpec>& arguments = signature.arguments;
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("kernel '", signature.kernel, "' takes ", what));
  };
  if (signature.kernel == "discrete_fill") {
    if (arguments.size() != 1 || !Is(arguments[0], kernels::Access::kWrite)) return refuse("one f32 tensor to write");
    return std::make_unique<Fill>(arguments[0].ElementCount());
  }
  if (signature.kernel == "discrete_transpose") {
    if (arguments.size() != 2 || !Is(arguments[0], kernels::Access::kRead) ||
        !Is(arguments[1], kernels::Access::kWrite) || arguments[0].shape.size() != 2 ||
        arguments[1].shape.size() != 2 || arguments[0].shape[0] != arguments[1].shape[1] ||
        arguments[0].shape[1] != arguments[1].shape[0]) {
      return refuse("f32[rows, columns] to read and f32[columns, rows] to write");
    }
    return std::make_unique<Transpose>(arguments[0].shape[0], arguments[0].shape[1]);
  }
  return absl::NotFoundError(absl::StrCat("a discrete device has no kernel '", signature.kernel, "' of its own"));
}

}  // namespace bowline
