#ifndef BOWLINE_TEST_UNIT_CHECK_RANK_RUNS_H_
#define BOWLINE_TEST_UNIT_CHECK_RANK_RUNS_H_

// Runs plans of RankPlan on all their ranks: in a simulator that knows nothing of roles, and on threads.

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline::testing {

// The bytes of a rank before an entry: inputs are small integers that depend on rank, buffer, slot and element; all
// else is `poison`.
std::vector<uint8_t> InitialArena(const fbs::Plan& plan, uint32_t rank, uint8_t poison);

// Which commands wait for which other commands, within a rank.
enum class Issue { kAsynchronous, kInlineFirstStream, kCommunicationInOrder };

struct RankOutcome {
  bool hangs = false;
  bool mismatch = false;  // members that do not belong together met
  // By rank: the bytes of all outputs. Where some commands did not end, of those that ended.
  std::vector<std::vector<uint8_t>> outputs;
};

// Runs entry "step" of every rank, command by command, in a random order that the machine may take. Operations of a
// communicator are matched as each rank counts them, as the runtime does.
RankOutcome Simulate(const fbs::Plan& plan, Issue issue, uint8_t poison, std::mt19937& random);

// How ranks reach each other: in memory (LoopbackGroup), or by TCP over the loopback interface (GlooGroup).
enum class Transport { kMemory, kTcp };

// Runs it with Session, a thread for each rank, with random delays around communications. `driver` as in
// SessionOptions.
struct ThreadOutcome {
  absl::Status status;
  std::vector<std::vector<uint8_t>> outputs;
};
ThreadOutcome RunOnThreads(const std::vector<uint8_t>& bytes, uint8_t poison, uint32_t seed,
                           std::chrono::nanoseconds timeout, const std::string& driver = {},
                           Transport transport = Transport::kMemory);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_CHECK_RANK_RUNS_H_
