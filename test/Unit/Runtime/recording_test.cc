// Recordings of devices: Device::Record and Stream::Replay, where a driver has them. The cuda driver does, as graphs;
// its tests run where there is a card, or a stand-in for one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/drivers/builtin_drivers.h"
#include "test/Support/test_seed.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCuda(std::map<std::string, std::string> settings) {
  return AllDrivers("").CreateDevice("cuda", {.settings = std::move(settings)});
}

constexpr size_t kWord = sizeof(uint32_t);

// A device with streams, and words of memory.
class Recordings : public ::testing::Test {
 protected:
  static constexpr int kStreams = 3;
  static constexpr size_t kWords = 64;

  void SetUp() override {
    auto device = CreateCuda({{"graphs", "1"}});
    if (absl::IsUnavailable(device.status()) && std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) {
      GTEST_SKIP() << device.status().message();
    }
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    ASSERT_TRUE(device_->CanRecord());
    memory_ = *device_->Allocate(kWords * kWord);
    for (int i = 0; i < kStreams; ++i) {
      streams_.push_back(*device_->CreateStream(i == 0 ? hal::StreamMode::kInline : hal::StreamMode::kWorker));
      all_.push_back(streams_.back().get());
    }
  }

  absl::Status Copy(int stream, size_t to, size_t from) {
    return all_[static_cast<size_t>(stream)]->Copy(memory_->address() + to * kWord, memory_->address() + from * kWord,
                                                   kWord);
  }
  std::unique_ptr<hal::Event> Event() { return *device_->CreateEvent(); }
  // `later` waits for the commands that `earlier` has now.
  absl::Status Order(int earlier, int later, hal::Event& event) {
    BOWLINE_RETURN_IF_ERROR(all_[static_cast<size_t>(earlier)]->Record(event));
    return all_[static_cast<size_t>(later)]->Wait(event);
  }

  void Write(const std::vector<uint32_t>& words) {
    ASSERT_TRUE(memory_->Write(0, {reinterpret_cast<const uint8_t*>(words.data()), words.size() * kWord}).ok());
  }
  std::vector<uint32_t> Read() {
    std::vector<uint32_t> words(kWords);
    EXPECT_TRUE(memory_->Read(0, {reinterpret_cast<uint8_t*>(words.data()), words.size() * kWord}).ok());
    return words;
  }
  std::vector<uint32_t> Random() {
    std::vector<uint32_t> words(kWords);
    for (uint32_t& word : words) word = static_cast<uint32_t>(random_());
    return words;
  }

  std::unique_ptr<hal::Device> device_;
  std::unique_ptr<hal::Allocation> memory_;
  std::vector<std::unique_ptr<hal::Stream>> streams_;
  std::vector<hal::Stream*> all_;
  std::mt19937 random_{TestSeed()};
};

TEST_F(Recordings, RunNothingUntilTheyAreReplayed) {
  std::vector<uint32_t> words = Random();
  Write(words);
  const auto recording = device_->Record({all_.data(), 1}, [&] { return Copy(0, 1, 0); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_TRUE(all_[0]->Synchronize().ok());
  EXPECT_EQ(Read(), words);
  // Each replay reads the data then in memory.
  for (int replay = 0; replay < 3; ++replay) {
    words = Random();
    Write(words);
    ASSERT_TRUE(all_[0]->Replay(**recording).ok());
    ASSERT_TRUE(all_[0]->Synchronize().ok());
    words[1] = words[0];
    EXPECT_EQ(Read(), words);
  }
}

// Random copies on all streams, each ordered by events with those that it conflicts with, as the commands of a plan
// are. A replay leaves the same data as the copies one after another.
TEST_F(Recordings, KeepTheOrderOfStreamsAndEvents) {
  for (int round = 0; round < 20; ++round) {
    struct Step {
      int stream;
      size_t to, from;
    };
    std::vector<Step> steps;
    for (int i = 0; i < 40; ++i) {
      const size_t to = random_() % 8, from = (to + 1 + random_() % 7) % 8;
      steps.push_back({static_cast<int>(random_() % kStreams), to, from});
    }
    std::vector<std::unique_ptr<hal::Event>> events;
    const auto recording = device_->Record(all_, [&]() -> absl::Status {
      for (size_t i = 0; i < steps.size(); ++i) {
        std::set<int> waits;
        for (size_t before = 0; before < i; ++before) {
          const Step &a = steps[before], &b = steps[i];
          if (a.stream != b.stream && (a.to == b.to || a.to == b.from || a.from == b.to)) waits.insert(a.stream);
        }
        for (const int stream : waits) {
          events.push_back(Event());
          BOWLINE_RETURN_IF_ERROR(Order(stream, steps[i].stream, *events.back()));
        }
        BOWLINE_RETURN_IF_ERROR(Copy(steps[i].stream, steps[i].to, steps[i].from));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (int replay = 0; replay < 5; ++replay) {
      std::vector<uint32_t> words = Random();
      Write(words);
      ASSERT_TRUE(all_[0]->Replay(**recording).ok());
      ASSERT_TRUE(all_[0]->Synchronize().ok());
      for (const Step& step : steps) words[step.to] = words[step.from];
      ASSERT_EQ(Read(), words) << "round " << round << ", replay " << replay;
    }
  }
}

// Two copies that nothing orders: the stand-in runs them in either order, so that a plan that lacks an event is found.
TEST_F(Recordings, OfWhatNothingOrdersGoEitherWayOnTheStandIn) {
  if (std::getenv("BOWLINE_CUDA_STAND_IN") == nullptr) GTEST_SKIP() << "a card may always run them in one order";
  const auto recording = device_->Record(all_, [&]() -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(Copy(0, 1, 0));
    return Copy(1, 2, 1);
  });
  ASSERT_TRUE(recording.ok()) << recording.status();
  std::set<bool> seen;
  for (int replay = 0; replay < 100; ++replay) {
    const std::vector<uint32_t> words = Random();
    Write(words);
    ASSERT_TRUE(all_[0]->Replay(**recording).ok());
    ASSERT_TRUE(all_[0]->Synchronize().ok());
    seen.insert(Read()[2] == words[0]);
  }
  EXPECT_EQ(seen.size(), 2u);
}

// Commands before a replay in its stream end before the replay begins, also when a call of the host is among them.
TEST_F(Recordings, AreReplayedInTheOrderOfTheirStream) {
  const auto recording = device_->Record(all_, [&]() -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(Copy(1, 2, 1));
    return Copy(2, 3, 1);
  });
  ASSERT_TRUE(recording.ok()) << recording.status();
  std::atomic<int> calls{0};
  hal::HostCall call;
  call.context = &calls;
  call.run = [](const hal::HostCall& own) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++*static_cast<std::atomic<int>*>(own.context);
    return absl::OkStatus();
  };
  std::vector<uint32_t> words = Random();
  Write(words);
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 1) ASSERT_TRUE(all_[0]->Call(call).ok());
    ASSERT_TRUE(Copy(0, 1, 0).ok());
    ASSERT_TRUE(all_[0]->Replay(**recording).ok());
    ASSERT_TRUE(Copy(0, 0, 10 + static_cast<size_t>(round)).ok());
    words[1] = words[2] = words[3] = words[0];
    words[0] = words[10 + static_cast<size_t>(round)];
  }
  ASSERT_TRUE(all_[0]->Synchronize().ok());
  EXPECT_EQ(Read(), words);
  EXPECT_EQ(calls, 10);
}

// A command that cannot be recorded returns an error, and streams and events stay as they were.
TEST_F(Recordings, EndWithTheFirstCommandThatCannotBeRecorded) {
  hal::HostCall call;
  call.run = [](const hal::HostCall&) { return absl::InternalError("nobody should call this"); };
  const auto outside = Event();
  ASSERT_TRUE(all_[1]->Record(*outside).ok());
  const std::pair<std::function<absl::Status()>, const char*> cases[] = {
      {[&] { return all_[0]->Call(call); }, "a graph cannot hold a call of the host"},
      {[&] { return all_[0]->Wait(*outside); }, "wait for an event"},
      {[&] { return all_[1]->Synchronize(); }, "cuStreamSynchronize"},
      {[&] { return device_->Allocate(16).status(); }, "cuMemAlloc"},
      {[&] { return absl::DataLossError("a reason of the caller's"); }, "a reason of the caller's"},
  };
  for (const auto& [issue, message] : cases) {
    SCOPED_TRACE(message);
    const std::vector<uint32_t> before = Random();
    Write(before);
    const auto recording = device_->Record(all_, [&]() -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(Copy(0, 1, 0));
      return issue();
    });
    ASSERT_FALSE(recording.ok());
    EXPECT_THAT(std::string(recording.status().message()), HasSubstr(message));
    for (hal::Stream* const stream : all_) ASSERT_EQ(stream->Synchronize(), absl::OkStatus());
    EXPECT_EQ(Read(), before) << "something ran";
    // The same streams record and run commands without errors.
    const auto event = Event();
    const auto fine = device_->Record(all_, [&]() -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(Copy(0, 1, 0));
      BOWLINE_RETURN_IF_ERROR(Order(0, 1, *event));
      return Copy(1, 2, 1);
    });
    ASSERT_TRUE(fine.ok()) << fine.status();
    ASSERT_TRUE(all_[0]->Replay(**fine).ok());
    ASSERT_TRUE(Order(0, 2, *event).ok());
    ASSERT_TRUE(Copy(2, 3, 2).ok());
    for (hal::Stream* const stream : all_) ASSERT_EQ(stream->Synchronize(), absl::OkStatus());
    EXPECT_EQ(Read()[3], before[0]);
  }
}

// Ranks that are threads share a card: commands of one thread do not disturb another's recording.
TEST_F(Recordings, AreNotDisturbedByOtherThreads) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const auto device = CreateCuda({{"graphs", "1"}});
    const auto stream = (*device)->CreateStream();
    while (!stop) {
      const auto memory = (*device)->Allocate(4096);
      EXPECT_TRUE(memory.ok()) << memory.status();
      EXPECT_TRUE((*stream)->Copy((*memory)->address(), (*memory)->address() + 64, 64).ok());
      EXPECT_TRUE((*stream)->Synchronize().ok());
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto recording = device_->Record(all_, [&]() -> absl::Status {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return Copy(1, 1, 0);
    });
    EXPECT_TRUE(recording.ok()) << recording.status();
  }
  stop = true;
  other.join();
}

TEST_F(Recordings, AreLeftOutWhereCommandsEndOneByOne) {
  for (const auto& [settings, records] :
       {std::pair(std::map<std::string, std::string>{}, true),
        std::pair(std::map<std::string, std::string>{{"graphs", "0"}}, false),
        std::pair(std::map<std::string, std::string>{{"graphs", "1"}}, true),
        std::pair(std::map<std::string, std::string>{{"blocking", "1"}}, false),
        std::pair(std::map<std::string, std::string>{{"graphs", "1"}, {"blocking", "1"}}, false)}) {
    const auto device = CreateCuda(settings);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->CanRecord(), records);
  }
  EXPECT_THAT(std::string(CreateCuda({{"graphs", "2"}}).status().message()), HasSubstr("graphs=2 is not a whole"));
}

TEST(RecordingsOfOthers, ThereAreNone) {
  for (const char* driver : {"cpu", "null"}) {
    const auto device = AllDrivers("").CreateDevice(driver, {});
    ASSERT_TRUE(device.ok());
    const auto stream = (*device)->CreateStream();
    hal::Stream* const only = stream->get();
    EXPECT_FALSE((*device)->CanRecord());
    EXPECT_EQ((*device)->Record({&only, 1}, [] { return absl::OkStatus(); }).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace bowline
