#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_LAUNCHABLE_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_LAUNCHABLE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/hal/executable.h"

namespace bowline {

// The workspace that a stream gives the blocks of its launches, one launch after the other.
class GridWorkspace {
 public:
  explicit GridWorkspace(uint64_t seed) : random_(seed) {}

  // The numbers of `count` blocks in the order in which they run, which is random.
  absl::Span<const uint32_t> BlockOrder(uint32_t count);
  // Memory of a block, poisoned.
  uint8_t* SharedMemory(uint32_t bytes);

 private:
  std::mt19937_64 random_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> shared_;
};

// A kernel that the streams of a discrete device can run.
class DiscreteLaunchable : public hal::Launchable {
 public:
  virtual void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void* scratch,
                   GridWorkspace& workspace) const = 0;
};

// A kernel of the cpu driver, launched as that launches it. All the workspace that it is given, of which it may need a
// part, is poisoned before and after.
class HostKernel : public DiscreteLaunchable {
 public:
  // `given` bytes of workspace; without `given`, as many as it needs.
  explicit HostKernel(std::unique_ptr<hal::Launchable> of_cpu, std::optional<size_t> given = std::nullopt)
      : of_cpu_(std::move(of_cpu)), scratch_bytes_(std::max(of_cpu_->ScratchBytes(), given.value_or(0))) {}

  size_t ScratchBytes() const override { return scratch_bytes_; }
  absl::Status CheckGeometry(const hal::Geometry& geometry) const override { return of_cpu_->CheckGeometry(geometry); }
  void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void* scratch,
           GridWorkspace& workspace) const override;

 private:
  std::unique_ptr<hal::Launchable> of_cpu_;
  size_t scratch_bytes_;
};

// An image of code that was generated for CPUs, launched by extent or by grid (see README.md).
class DiscreteExecutable : public hal::Executable {
 public:
  explicit DiscreteExecutable(std::unique_ptr<hal::Executable> of_cpu) : of_cpu_(std::move(of_cpu)) {}

  absl::StatusOr<std::unique_ptr<hal::Launchable>> Resolve(const std::string& symbol, hal::Work work) const override;
  absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const override {
    return of_cpu_->ResolveFunction(symbol);
  }

 private:
  std::unique_ptr<hal::Executable> of_cpu_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_LAUNCHABLE_H_
