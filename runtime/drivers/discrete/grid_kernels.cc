#include "runtime/drivers/discrete/grid_kernels.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/half.h"
#include "kernels/discrete/kernel_needs.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/simple_signatures.h"
#include "runtime/drivers/discrete/discrete_launchable.h"

namespace bowline {
namespace {

using kernels::Bf16;
using kernels::DType;

constexpr int64_t kThreads = 32;

// A kernel that chooses its grid: blocks of kThreads threads, one for each of `items`.
class GridKernel : public DiscreteLaunchable {
 public:
  GridKernel(int64_t items, size_t scratch_bytes)
      : items_(items), blocks_(static_cast<uint32_t>((items + kThreads - 1) / kThreads)), scratch_(scratch_bytes) {}

  size_t ScratchBytes() const override { return scratch_; }

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    if (std::holds_alternative<std::monostate>(geometry)) return absl::OkStatus();
    return absl::InvalidArgumentError("a kernel of the registry chooses its grid itself and takes no geometry");
  }

  void Run(const hal::Geometry&, absl::Span<void* const> arguments, void* scratch,
           GridWorkspace& workspace) const override {
    for (const uint32_t block : workspace.BlockOrder(blocks_)) {
      const int64_t first = block * kThreads;
      for (int64_t item = first; item < first + kThreads && item < items_; ++item) RunThread(item, arguments, scratch);
    }
  }

 protected:
  virtual void RunThread(int64_t item, absl::Span<void* const> arguments, void* scratch) const = 0;

 private:
  int64_t items_;
  uint32_t blocks_;
  size_t scratch_;
};

// A thread writes kPerThread elements.
template <typename T>
class Fill : public GridKernel {
 public:
  Fill(T value, int64_t count) : GridKernel((count + kPerThread - 1) / kPerThread, 0), value_(value), count_(count) {}

 protected:
  void RunThread(int64_t item, absl::Span<void* const> arguments, void*) const override {
    const int64_t begin = item * kPerThread, end = std::min(begin + kPerThread, count_);
    std::fill(static_cast<T*>(arguments[0]) + begin, static_cast<T*>(arguments[0]) + end, value_);
  }

 private:
  static constexpr int64_t kPerThread = 64;
  T value_;
  int64_t count_;
};

// A thread sums up a column of the table, in the order of tokens.
template <typename Update, typename Result>
class ScatterAddRows : public GridKernel {
 public:
  ScatterAddRows(const kernels::EmbeddingShape& shape, size_t scratch_bytes)
      : GridKernel(shape.columns, scratch_bytes), shape_(shape) {}

 protected:
  void RunThread(int64_t column, absl::Span<void* const> arguments, void* scratch) const override {
    const auto* updates = static_cast<const Update*>(arguments[0]);
    const auto* ids = static_cast<const int32_t*>(arguments[1]);
    auto* out = static_cast<Result*>(arguments[OutOf(shape_)]);
    auto* sums = static_cast<float*>(sizeof(Result) == sizeof(float) ? arguments[OutOf(shape_)] : scratch);
    const int64_t tokens = kernels::ValidTokens(shape_, static_cast<const int32_t*>(arguments[2]));
    for (int64_t row = 0; row < shape_.rows; ++row) sums[row * shape_.columns + column] = 0;
    for (int64_t token = 0; token < tokens; ++token) {
      sums[kernels::RowOf(shape_, ids[token]) * shape_.columns + column] +=
          kernels::Widen(updates[token * shape_.columns + column]);
    }
    if constexpr (sizeof(Result) != sizeof(float)) {
      for (int64_t row = 0; row < shape_.rows; ++row) {
        const int64_t at = row * shape_.columns + column;
        out[at] = kernels::Narrow<Result>(sums[at]);
      }
    }
  }

 private:
  kernels::EmbeddingShape shape_;
};

std::unique_ptr<hal::Launchable> CreateFill(const kernels::FillShape& shape) {
  if (shape.element == DType::kI32) {
    return std::make_unique<Fill<int32_t>>(static_cast<int32_t>(shape.value), shape.count);
  }
  const auto value = static_cast<float>(shape.value);
  if (shape.element == DType::kF32) return std::make_unique<Fill<float>>(value, shape.count);
  return std::make_unique<Fill<Bf16>>(kernels::Narrow<Bf16>(value), shape.count);
}

std::unique_ptr<hal::Launchable> CreateScatter(const kernels::EmbeddingShape& shape, size_t scratch) {
  if (shape.values == DType::kF32) return std::make_unique<ScatterAddRows<float, float>>(shape, scratch);
  if (shape.table == DType::kF32) return std::make_unique<ScatterAddRows<Bf16, float>>(shape, scratch);
  return std::make_unique<ScatterAddRows<Bf16, Bf16>>(shape, scratch);
}

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateGridKernel(const kernels::Signature& signature) {
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<size_t> scratch, kernels::discrete::OwnScratch(signature));
  if (!scratch.has_value() || *scratch > signature.scratch_limit) {
    return absl::NotFoundError(absl::StrCat("no kernel '", signature.kernel, "' by grid for this signature"));
  }
  if (signature.kernel == "fill") {
    BOWLINE_ASSIGN_OR_RETURN(const kernels::FillShape shape, kernels::ParseFill(signature));
    return CreateFill(shape);
  }
  BOWLINE_ASSIGN_OR_RETURN(const kernels::EmbeddingShape shape, kernels::ParseScatterAddRows(signature));
  return CreateScatter(shape, *scratch);
}

}  // namespace bowline
