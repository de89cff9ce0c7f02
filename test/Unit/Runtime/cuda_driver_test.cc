// Features of the cuda driver beyond the contract of devices (conformance_test.cc).

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/drivers/builtin_drivers.h"

namespace bowline {
namespace {

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCuda(hal::DeviceOptions options = {}) {
  return AllDrivers("").CreateDevice("cuda", options);
}

// The plugin loads on every machine. Without a card or its libraries, the plugin reports one message.
TEST(CudaDriver, LoadsWithoutACard) {
  const auto device = CreateCuda();
  if (device.ok()) return;
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnavailable) << device.status();
  EXPECT_TRUE(device.status().message().find("NVIDIA") != absl::string_view::npos) << device.status();
}

TEST(CudaDriver, RefusesWrongSettings) {
  for (const auto& [key, value, message] : {std::array<std::string, 3>{"devise", "0", "has no setting 'devise'"},
                                            {"device", "-1", "device=-1 is not"},
                                            {"blocking", "2", "blocking=2 is not a whole number from 0 to 1"}}) {
    const auto device = CreateCuda({.settings = {{key, value}}});
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << device.status();
    EXPECT_TRUE(device.status().message().find(message) != absl::string_view::npos) << device.status();
  }
}
// Skipped where there is no card, unless there should be one.
class CudaCard : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto probe = CreateCuda();
    if (absl::IsUnavailable(probe.status()) && std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) {
      GTEST_SKIP() << probe.status().message();
    }
    ASSERT_TRUE(probe.ok()) << probe.status();
  }
};

TEST_F(CudaCard, IsOneThatThereIs) {
  const auto device = CreateCuda({.settings = {{"device", "1000"}}});
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(device.status().message().find("device=1000, but this machine has") != absl::string_view::npos)
      << device.status();
  // Whatever rank it is, it gets one.
  EXPECT_TRUE(CreateCuda({.rank = 12345}).ok());
}

TEST_F(CudaCard, PoisonsFreshMemory) {
  const auto device = CreateCuda({.settings = {{"poison", "1"}}});
  ASSERT_TRUE(device.ok()) << device.status();
  for (const hal::MemorySpace space : {hal::MemorySpace::kDevice, hal::MemorySpace::kPinnedHost}) {
    const auto memory = (*device)->Allocate(5000, space);
    ASSERT_TRUE(memory.ok()) << memory.status();
    std::vector<uint8_t> bytes(5000);
    ASSERT_TRUE((*memory)->Read(0, absl::MakeSpan(bytes)).ok());
    EXPECT_EQ(bytes, std::vector<uint8_t>(5000, 0xff));
  }
}

TEST_F(CudaCard, RunsEachCommandByItself) {
  const auto device = CreateCuda({.settings = {{"blocking", "1"}}});
  ASSERT_TRUE(device.ok()) << device.status();
  const auto stream = (*device)->CreateStream();
  constexpr size_t kWords = 500;
  const auto memory = (*device)->Allocate(4 * kWords);
  ASSERT_TRUE(stream.ok() && memory.ok());
  std::vector<uint8_t> bytes(4 * kWords, 0);
  bytes[0] = 7;
  ASSERT_TRUE((*memory)->Write(0, bytes).ok());
  for (size_t i = 1; i < kWords; ++i) {
    ASSERT_TRUE((*stream)->Copy((*memory)->address() + 4 * i, (*memory)->address() + 4 * (i - 1), 4).ok());
  }
  // Without Synchronize.
  ASSERT_TRUE((*memory)->Read(0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes[4 * kWords - 4], 7);
}

// Of streams that ran for long: differences stay right when the clock takes a newer reference.
TEST_F(CudaCard, TimesAgreeWithTheHostsForSeconds) {
  const auto device = CreateCuda();
  ASSERT_TRUE(device.ok());
  const auto stream = (*device)->CreateStream();
  const auto event = (*device)->CreateEvent(hal::EventMode::kTimed);
  ASSERT_TRUE(stream.ok() && event.ok());
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); };
  int64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    // On a busy host long may pass between the two.
    const int64_t begin = now();
    ASSERT_TRUE((*stream)->Record(**event).ok() && (*stream)->Synchronize().ok());
    const int64_t end = now();
    const auto time = (*event)->Time();
    ASSERT_TRUE(time.ok()) << time.status();
    // A millisecond is far more than the clocks of a card and of a host drift apart in seconds.
    EXPECT_GT(*time, begin - 1'000'000) << "after " << i << " waits";
    EXPECT_LT(*time, end + 1'000'000) << "after " << i << " waits";
    EXPECT_GT(*time, last);
    last = *time;
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  }
}

kernels::Signature Fill(double value, int64_t count) {
  kernels::Signature signature;
  signature.kernel = "fill";
  signature.attributes.push_back({"value", {}, {value}, ""});
  signature.arguments.push_back({kernels::Access::kWrite, kernels::DType::kF32, {count}});
  return signature;
}

#define REQUIRE(condition)                       \
  do {                                           \
    if (!(condition)) return "not: " #condition; \
  } while (false)

// Ranks that are threads and share a card, as a run of several ranks on one card has them: each with more streams than
// hardware queues fall to it, and sums between kernels of other streams. A wait of the card for the host would be a
// hang.
TEST_F(CudaCard, RanksShareACard) {
  constexpr int kRanks = 8, kStreams = 4, kRounds = 20;
  constexpr size_t kCount = 5000;
  const auto group = LoopbackGroup::Create(kRanks);
  ASSERT_TRUE(group.ok());
  std::array<std::string, kRanks> wrong;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      wrong[static_cast<size_t>(rank)] = [&, rank]() -> std::string {
        const auto device = CreateCuda({.rank = rank, .settings = {{"device", "0"}}});
        REQUIRE(device.ok());
        const auto view = (*group)->AsRank(rank);
        std::vector<int> all(kRanks);
        std::iota(all.begin(), all.end(), 0);
        std::vector<std::unique_ptr<hal::Communicator>> communicators;
        std::vector<std::unique_ptr<hal::Stream>> streams;
        std::vector<std::unique_ptr<hal::Event>> ready, summed;
        for (int i = 0; i < kStreams; ++i) {
          auto exchange = view->CreateExchange(absl::StrCat("stream ", i), all);
          REQUIRE(exchange.ok());
          auto communicator = (*device)->CreateCommunicator(*std::move(exchange));
          auto stream = (*device)->CreateStream(hal::StreamMode::kWorker);
          auto first = (*device)->CreateEvent(), second = (*device)->CreateEvent();
          REQUIRE(communicator.ok() && stream.ok() && first.ok() && second.ok());
          communicators.push_back(*std::move(communicator));
          streams.push_back(*std::move(stream));
          ready.push_back(*std::move(first));
          summed.push_back(*std::move(second));
        }
        const auto compute = (*device)->CreateStream(hal::StreamMode::kInline);
        const auto fill = (*device)->CreateKernel(Fill(rank + 1, kCount));
        const auto allocated = (*device)->Allocate((kStreams + 1) * kCount * sizeof(float));
        REQUIRE(compute.ok() && fill.ok() && allocated.ok());
        hal::Allocation* const memory = allocated->get();
        const auto at = [&](int part) {
          return memory->address() + static_cast<size_t>(part) * kCount * sizeof(float);
        };
        const hal::Geometry geometry;
        const hal::DeviceAddress arguments[] = {at(kStreams)};
        for (int round = 0; round < kRounds; ++round) {
          // Ranks come at different times.
          if (round % kRanks == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          REQUIRE((*compute)->Launch(**fill, geometry, arguments, 0).ok());
          for (int i = 0; i < kStreams; ++i) {
            const auto s = static_cast<size_t>(i);
            REQUIRE((*compute)->Copy(at(i), at(kStreams), kCount * sizeof(float)).ok());
            REQUIRE((*compute)->Record(*ready[s]).ok() && streams[s]->Wait(*ready[s]).ok());
            REQUIRE(
                communicators[s]->Issue(*streams[s], {hal::OperationKind::kAllReduce}, {{at(i), at(i), kCount}}).ok());
            REQUIRE(streams[s]->Record(*summed[s]).ok());
          }
          for (const auto& event : summed) REQUIRE((*compute)->Wait(*event).ok());
        }
        for (const auto& stream : streams) REQUIRE(stream->Synchronize().ok());
        REQUIRE((*compute)->Synchronize().ok());
        std::vector<float> sums(kStreams * kCount);
        REQUIRE(memory->Read(0, {reinterpret_cast<uint8_t*>(sums.data()), sums.size() * sizeof(float)}).ok());
        REQUIRE(sums == std::vector<float>(sums.size(), kRanks * (kRanks + 1) / 2));
        return "";
      }();
      if (!wrong[static_cast<size_t>(rank)].empty()) (*group)->Abort(absl::InternalError("gave up"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& what : wrong) EXPECT_EQ(what, "");
}

}  // namespace
}  // namespace bowline
