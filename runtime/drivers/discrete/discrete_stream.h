#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "runtime/drivers/discrete/discrete_launchable.h"
#include "runtime/drivers/discrete/discrete_memory.h"
#include "runtime/drivers/host/worker_stream.h"

namespace bowline {

// Waits of a stream at random: for a stretch of commands it is slow, then it is fast, so that it falls behind others
// and overtakes them by many commands, too.
class RandomWaits {
 public:
  RandomWaits(uint64_t seed, std::chrono::microseconds longest) : random_(seed), longest_(longest) {}

  void Wait();

 private:
  std::mt19937_64 random_;
  std::chrono::microseconds longest_;
  std::chrono::microseconds pace_{0};  // the longest wait of this stretch
  int left_ = 0;                       // commands of it
};

// Commands of a discrete device: translates addresses when they run.
class DiscreteRunner : public CommandRunner {
 public:
  // `memory` outlives it. `waits` may be null.
  DiscreteRunner(const DiscreteMemory* memory, std::unique_ptr<RandomWaits> waits, GridWorkspace workspace)
      : memory_(memory), waits_(std::move(waits)), workspace_(std::move(workspace)) {}

  void Begin() override;
  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;

 private:
  const DiscreteMemory* memory_;
  std::unique_ptr<RandomWaits> waits_;
  GridWorkspace workspace_;
  std::vector<void*> pointers_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_
