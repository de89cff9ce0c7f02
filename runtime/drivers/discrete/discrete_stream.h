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

// How streams wait between commands. All the choices follow from a seed.
enum class WaitMode : uint8_t {
  // Streams wait at random. A stream is slow for a stretch of commands and then fast, so that it falls behind others
  // and overtakes them by many commands.
  kRandom,
  // Before one of eight commands, at random, a stream waits as long as anything else of the process goes on.
  kLate,
  kNone,
};

class Waits {
 public:
  // `longest` is the longest wait with kRandom; `turn` is for kLate, see DeviceActivity.
  Waits(WaitMode mode, uint64_t seed, std::chrono::microseconds longest, uint32_t turn)
      : mode_(mode), random_(seed), longest_(longest), turn_(turn) {}

  void Wait();

 private:
  void WaitAtRandom();

  const WaitMode mode_;
  std::mt19937_64 random_;
  const std::chrono::microseconds longest_;
  const uint32_t turn_;
  std::chrono::microseconds pace_{0};  // the longest wait of this stretch
  int left_ = 0;                       // commands that remain of this stretch
};

// Commands of a discrete device: translates addresses when they run.
class DiscreteRunner : public CommandRunner {
 public:
  // `memory` outlives it.
  DiscreteRunner(const DiscreteMemory* memory, Waits waits, GridWorkspace workspace)
      : memory_(memory), waits_(std::move(waits)), workspace_(std::move(workspace)) {}

  void Begin() override;
  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;

 private:
  const DiscreteMemory* memory_;
  Waits waits_;
  GridWorkspace workspace_;
  std::vector<void*> pointers_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_
