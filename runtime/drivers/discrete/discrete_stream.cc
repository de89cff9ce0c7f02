#include "runtime/drivers/discrete/discrete_stream.h"

#include <cstring>
#include <thread>

#include "runtime/drivers/discrete/device_activity.h"

namespace bowline {
namespace {

constexpr uint64_t kLateOneOf = 8;

}  // namespace

void Waits::Wait() {
  if (mode_ == WaitMode::kRandom) WaitAtRandom();
  if (mode_ == WaitMode::kLate && random_() % kLateOneOf == 0) DeviceActivity::AwaitQuiet(turn_);
}

void Waits::WaitAtRandom() {
  if (left_-- <= 0) {
    // A stretch has between one command and those of a whole microbatch.
    left_ = static_cast<int>(1 + random_() % 64);
    // Half of the stretches are without waits, the others of all magnitudes.
    const uint64_t choice = random_() % 8;
    pace_ = choice < 4 ? std::chrono::microseconds(0) : longest_ / (1 << 2 * (choice - 4));
  }
  if (pace_.count() == 0) return;
  const auto wait = std::chrono::microseconds(random_() % (static_cast<uint64_t>(pace_.count()) + 1));
  if (wait.count() > 0) std::this_thread::sleep_for(wait);
}

void DiscreteRunner::Begin() {
  DeviceActivity::Count();
  waits_.Wait();
}

absl::Status DiscreteRunner::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                                    absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  pointers_.clear();
  for (const hal::DeviceAddress argument : arguments) {
    // The number of bytes is 0, as only the kernel's signature knows how many it touches.
    BOWLINE_ASSIGN_OR_RETURN(void* const pointer, memory_->TranslateForKernel(argument, 0));
    pointers_.push_back(pointer);
  }
  const auto& kernel = static_cast<const DiscreteLaunchable&>(launchable);
  BOWLINE_ASSIGN_OR_RETURN(void* const workspace, memory_->TranslateForKernel(scratch, kernel.ScratchBytes()));
  kernel.Run(geometry, pointers_, workspace, workspace_);
  return absl::OkStatus();
}

absl::Status DiscreteRunner::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  BOWLINE_ASSIGN_OR_RETURN(void* const to, memory_->Translate(destination, bytes));
  BOWLINE_ASSIGN_OR_RETURN(const void* const from, memory_->Translate(source, bytes));
  if (bytes > 0) std::memmove(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace bowline
