#include "runtime/drivers/discrete/discrete_launchable.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cpu/cpu_executable.h"
#include "runtime/drivers/cpu/cpu_launchable.h"

namespace bowline {
namespace {

constexpr uint8_t kPoison = 0xff;
constexpr uint32_t kMaxBlocks = 1 << 24;

class GeneratedKernelByGrid : public DiscreteLaunchable {
 public:
  GeneratedKernelByGrid(std::unique_ptr<hal::Launchable> of_cpu, GeneratedKernel function)
      : by_extent_(std::move(of_cpu)), function_(function) {}

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    const auto* grid = std::get_if<hal::Grid>(&geometry);
    if (grid == nullptr) return by_extent_.CheckGeometry(geometry);
    constexpr std::array<uint32_t, 3> kOne = {1, 1, 1};
    const bool fits = grid->threads == kOne && grid->blocks[1] == 1 && grid->blocks[2] == 1 && grid->blocks[0] >= 1 &&
                      grid->blocks[0] <= kMaxBlocks && grid->shared_bytes == 0 && grid->constants.size() == 1 &&
                      grid->constants[0] >= 1 && grid->constants[0] <= static_cast<uint64_t>(INT64_MAX);
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("generated code takes a grid of 1 to ", kMaxBlocks,
                     " blocks in one dimension, of one thread each and without shared memory, and one constant, which "
                     "is the extent from 1 on"));
  }

  void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void* scratch,
           GridWorkspace& workspace) const override {
    const auto* grid = std::get_if<hal::Grid>(&geometry);
    if (grid == nullptr) return by_extent_.Run(geometry, arguments, scratch, workspace);
    const auto extent = static_cast<__int128>(grid->constants[0]);
    const uint32_t blocks = grid->blocks[0];
    for (const uint32_t block : workspace.BlockOrder(blocks)) {
      const auto begin = static_cast<int64_t>(extent * block / blocks);
      const auto end = static_cast<int64_t>(extent * (block + 1) / blocks);
      if (begin < end) function_(arguments.data(), begin, end);
    }
  }

 private:
  HostKernel by_extent_;
  GeneratedKernel function_;
};

}  // namespace

absl::Span<const uint32_t> GridWorkspace::BlockOrder(uint32_t count) {
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0u);
  std::shuffle(order_.begin(), order_.end(), random_);
  return order_;
}

uint8_t* GridWorkspace::SharedMemory(uint32_t bytes) {
  shared_.assign(bytes, kPoison);
  return shared_.data();
}

void HostKernel::Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void* scratch,
                     GridWorkspace&) const {
  if (scratch_bytes_ > 0) std::memset(scratch, kPoison, scratch_bytes_);
  static_cast<const CpuLaunchable&>(*of_cpu_).Run(geometry, arguments, scratch);
  if (scratch_bytes_ > 0) std::memset(scratch, kPoison, scratch_bytes_);
}

absl::StatusOr<std::unique_ptr<hal::Launchable>> DiscreteExecutable::Resolve(const std::string& symbol,
                                                                             hal::Work work) const {
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Launchable> of_cpu, of_cpu_->Resolve(symbol, work));
  BOWLINE_ASSIGN_OR_RETURN(const void* function, of_cpu_->ResolveFunction(symbol));
  return std::make_unique<GeneratedKernelByGrid>(std::move(of_cpu),
                                                 reinterpret_cast<GeneratedKernel>(const_cast<void*>(function)));
}

}  // namespace bowline
