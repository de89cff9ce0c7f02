#ifndef BOWLINE_TEST_UNIT_RUNTIME_COMM_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_COMM_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/group.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "test/Unit/Runtime/pointer_communicator.h"

namespace bowline::testing {

// Longer than a test takes.
constexpr std::chrono::nanoseconds kLong = std::chrono::minutes(5);

// All ranks of a run in this process. The linked CreateRanks decides which groups a binary tests: loopback_ranks.cc and
// gloo_ranks.cc define one each.
struct Ranks {
  std::shared_ptr<void> owner;  // outlives the groups
  std::vector<std::unique_ptr<RankGroup>> groups;
};
Ranks CreateRanks(int ranks, std::chrono::nanoseconds timeout);
// Numbers of ranks for a test of everything.
std::vector<int> SizesToTest();

// Calls body(rank) on a thread for each rank.
inline void OnEachRank(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

// N ranks, each with a device, a stream and a communicator of all.
class World {
 public:
  explicit World(int ranks, std::chrono::nanoseconds timeout = kLong, const LinkOptions& link = {},
                 hal::StreamMode mode = hal::StreamMode::kInline)
      : ranks_(CreateRanks(ranks, timeout)), all_(static_cast<size_t>(ranks)) {
    std::vector<int> members(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      devices_.push_back(*CreateCpuDevice({.threads = 1}));
      streams_.push_back(*devices_.back()->CreateStream(mode));
    }
    OnEachRank(ranks, [&](int rank) { all_[static_cast<size_t>(rank)] = *Create(rank, "all", members, link); });
  }

  ~World() {
    streams_.clear();
    all_.clear();
    // Processes leave together.
    OnEachRank(size(), [&](int rank) { ranks_.groups[static_cast<size_t>(rank)].reset(); });
  }

  RankGroup& group(int rank) { return *ranks_.groups[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(devices_.size()); }
  hal::Device& device(int rank) { return *devices_[static_cast<size_t>(rank)]; }
  hal::Stream& stream(int rank) { return *streams_[static_cast<size_t>(rank)]; }
  PointerCommunicator& all(int rank) { return *all_[static_cast<size_t>(rank)]; }

  absl::StatusOr<std::unique_ptr<PointerCommunicator>> Create(int rank, absl::string_view name,
                                                              absl::Span<const int> members,
                                                              const LinkOptions& link = {}) {
    return PointerCommunicator::Create(group(rank), device(rank), name, members, link);
  }

  // Calls body(rank) on a thread for each rank and returns its status, or the stream's status after it.
  std::vector<absl::Status> Run(const std::function<absl::Status(int)>& body) {
    std::vector<absl::Status> results(streams_.size());
    OnEachRank(size(), [&](int rank) {
      const absl::Status called = body(rank), synchronized = stream(rank).Synchronize();
      results[static_cast<size_t>(rank)] = called.ok() ? synchronized : called;
    });
    return results;
  }

  void RunOk(const std::function<absl::Status(int)>& body) {
    for (const absl::Status& status : Run(body)) ASSERT_TRUE(status.ok()) << status;
  }

 private:
  Ranks ranks_;
  std::vector<std::unique_ptr<hal::Device>> devices_;
  std::vector<std::unique_ptr<PointerCommunicator>> all_;
  std::vector<std::unique_ptr<hal::Stream>> streams_;  // end before the communicators that they use
};

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_COMM_FIXTURE_H_
