#ifndef BOWLINE_TEST_UNIT_RUNTIME_NCCL_RANKS_H_
#define BOWLINE_TEST_UNIT_RUNTIME_NCCL_RANKS_H_

// Ranks of tests of the cuda driver's communicators by NCCL. Without a card they run on the stand-ins of
// test/Support/cuda_stand_in with as many cards as BOWLINE_STAND_IN_CARDS says; on a machine with cards, as many ranks
// as there are cards.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/hal/device.h"
#include "test/Support/test_seed.h"

namespace bowline {

using Settings = std::map<std::string, std::string>;

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCuda(int rank, Settings settings);

// The objects of a rank of a test.
struct Rank {
  int rank = 0;
  std::unique_ptr<RankGroup> group;
  std::unique_ptr<hal::Device> device;
  std::unique_ptr<hal::Allocation> memory;  // goes before the communicators, as nothing forbids
  std::unique_ptr<hal::Communicator> all;
  std::unique_ptr<hal::Stream> stream;

  absl::StatusOr<std::unique_ptr<hal::Communicator>> Create(const std::string& name, const std::vector<int>& members,
                                                            const LinkOptions& link = {}) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> exchange, group->CreateExchange(name, members, link));
    return device->CreateCommunicator(std::move(exchange));
  }
  hal::DeviceAddress at(size_t byte) const { return memory->address() + byte; }
  absl::Status Write(size_t at, const std::vector<uint8_t>& bytes) { return memory->Write(at, bytes); }
  std::vector<uint8_t> Read(size_t at, size_t size) {
    std::vector<uint8_t> bytes(size);
    EXPECT_TRUE(memory->Read(at, absl::MakeSpan(bytes)).ok());
    return bytes;
  }
};

constexpr size_t kMemory = size_t{4} << 20;

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override;
  // On the stand-in: checks that objects which tests made of NCCL's are freed.
  void TearDown() override;

  // Runs body(rank) on a thread for each rank, with a communicator `all` of all of them. The error of one ends the
  // others.
  std::vector<absl::Status> Run(int ranks, const std::function<absl::Status(Rank&)>& body,
                                std::chrono::nanoseconds timeout = std::chrono::minutes(2),
                                const Settings& settings = {{"communicators", "nccl"}});

  void RunOk(int ranks, const std::function<absl::Status(Rank&)>& body,
             const Settings& settings = {{"communicators", "nccl"}}) {
    for (const absl::Status& status : Run(ranks, body, std::chrono::minutes(2), settings)) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  // The same for two ranks that wait in vain, with the timeout in seconds that they had. They count in `ready` when
  // only that comes next; where one of them was too slow for it, they run again with a longer timeout.
  std::pair<std::vector<absl::Status>, double> RunInVain(
      const std::function<absl::Status(Rank&, std::atomic<int>& ready)>& body,
      const Settings& settings = {{"communicators", "nccl"}});

  // Numbers of ranks that have cards of their own.
  std::vector<int> Sizes() const {
    std::vector<int> sizes(static_cast<size_t>(cards_));
    std::iota(sizes.begin(), sizes.end(), 1);
    return sizes;
  }
  bool SkipBelow(int cards) const { return cards_ < cards; }
  static bool OnStandIn() { return std::getenv("BOWLINE_STAND_IN_CARDS") != nullptr; }

  int cards_ = 0;
  std::mt19937_64 random_{TestSeed()};
};

#define NEEDS_CARDS(count) \
  if (SkipBelow(count)) GTEST_SKIP() << "needs " << (count) << " cards"

// Values of every type that a test can add up exactly, by their number.
double NumberAt(int rank, size_t index);

// Values of elements [0, count), with something else behind.
std::vector<uint8_t> Numbers(kernels::DType type, size_t count, const std::function<double(size_t)>& value);

// Sums 1000 f32 in place; each is `value` before and must be `expected` then.
absl::Status SumOnce(Rank& rank, hal::Communicator& communicator, hal::Stream& stream, size_t at, float value,
                     float expected);

// Settings with which devices record.
const Settings& Graphs();

// Sums f32 that lie behind one another from the begin of the memory on, in place, as many as each count says.
absl::StatusOr<std::unique_ptr<hal::Recording>> RecordSums(Rank& rank, const std::vector<size_t>& counts);

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_RUNTIME_NCCL_RANKS_H_
