#ifndef BOWLINE_TEST_UNIT_RUNTIME_LOOPBACK_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_LOOPBACK_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/drivers/cpu/cpu_device.h"

namespace bowline::testing {

// N ranks, each with a device, a stream and a communicator of all.
class World {
 public:
  explicit World(int ranks, const LoopbackOptions& options = {}, const LinkOptions& link = {},
                 hal::StreamMode mode = hal::StreamMode::kInline)
      : group_(*LoopbackGroup::Create(ranks, options)) {
    std::vector<int> members(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      devices_.push_back(*CreateCpuDevice({.threads = 1}));
      streams_.push_back(*devices_.back()->CreateStream(mode));
      views_.push_back(group_->AsRank(rank));
      all_.push_back(*views_.back()->CreateCommunicator("all", members, link));
    }
  }

  LoopbackGroup& group() { return *group_; }
  CommunicatorGroup& view(int rank) { return *views_[static_cast<size_t>(rank)]; }
  int size() const { return group_->ranks(); }
  hal::Device& device(int rank) { return *devices_[static_cast<size_t>(rank)]; }
  hal::Stream& stream(int rank) { return *streams_[static_cast<size_t>(rank)]; }
  hal::Communicator& all(int rank) { return *all_[static_cast<size_t>(rank)]; }

  // Calls body(rank) on a thread for each rank and returns what it returned, or what the stream did after it.
  std::vector<absl::Status> Run(const std::function<absl::Status(int)>& body) {
    std::vector<absl::Status> results(streams_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        const absl::Status called = body(rank), synchronized = stream(rank).Synchronize();
        results[static_cast<size_t>(rank)] = called.ok() ? synchronized : called;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  void RunOk(const std::function<absl::Status(int)>& body) {
    for (const absl::Status& status : Run(body)) ASSERT_TRUE(status.ok()) << status;
  }

 private:
  std::unique_ptr<LoopbackGroup> group_;
  std::vector<std::unique_ptr<CommunicatorGroup>> views_;
  std::vector<std::unique_ptr<hal::Device>> devices_;
  std::vector<std::unique_ptr<hal::Communicator>> all_;  // after the group, before the streams that use them
  std::vector<std::unique_ptr<hal::Stream>> streams_;
};

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_LOOPBACK_FIXTURE_H_
