// Features of the driver `discrete` beyond the contract of all drivers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/drivers/builtin_drivers.h"
#include "test/Unit/Plan/fixture_image.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

std::unique_ptr<hal::Device> MakeDevice(std::map<std::string, std::string> settings = {}) {
  auto device = AllDrivers("").CreateDevice("discrete", {.settings = std::move(settings)});
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? *std::move(device) : nullptr;
}

class Discrete : public ::testing::Test {
 protected:
  std::unique_ptr<hal::Allocation> Allocate(size_t bytes) { return *device_->Allocate(bytes); }

  static std::vector<float> Floats(const hal::Allocation& memory, size_t count) {
    std::vector<float> values(count);
    const absl::Status read = memory.Read(0, {reinterpret_cast<uint8_t*>(values.data()), count * sizeof(float)});
    EXPECT_TRUE(read.ok()) << read;
    return values;
  }
  static void Write(hal::Allocation& memory, const std::vector<float>& values) {
    const absl::Status written =
        memory.Write(0, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)});
    EXPECT_TRUE(written.ok()) << written;
  }

  static kernels::Signature SignatureOf(const std::string& kernel, std::vector<kernels::TensorSpec> arguments) {
    kernels::Signature signature;
    signature.kernel = kernel;
    signature.arguments = std::move(arguments);
    return signature;
  }
  static kernels::TensorSpec F32(kernels::Access access, std::vector<int64_t> shape) {
    return {access, kernels::DType::kF32, std::move(shape)};
  }

  void Run(const hal::Launchable& kernel, const hal::Geometry& geometry,
           const std::vector<hal::DeviceAddress>& arguments) {
    ASSERT_EQ(kernel.CheckGeometry(geometry), absl::OkStatus());
    ASSERT_TRUE(stream_->Launch(kernel, geometry, arguments, 0).ok());
    const absl::Status synchronized = stream_->Synchronize();
    ASSERT_TRUE(synchronized.ok()) << synchronized;
  }

  std::unique_ptr<hal::Device> device_ = MakeDevice({{"seed", "6"}});
  std::unique_ptr<hal::Stream> stream_ = *device_->CreateStream();
};

TEST_F(Discrete, FreshMemoryIsPoisoned) {
  for (size_t bytes : {1, 5000, 1 << 20}) {
    const auto memory = Allocate(bytes);
    std::vector<uint8_t> read(bytes);
    ASSERT_TRUE(memory->Read(0, absl::MakeSpan(read)).ok());
    EXPECT_THAT(read, Each(0xff));
  }
}

TEST_F(Discrete, AddressesAreNoPointersAndNeverUsedAgain) {
  hal::DeviceAddress before = 0;
  for (int i = 0; i < 10; ++i) {
    const hal::DeviceAddress address = Allocate(100)->address();
    EXPECT_NE(address >> 63, 0u);
    EXPECT_GT(address, before);
    before = address;
  }
}

TEST_F(Discrete, CommandsOutsideOfTheirMemoryAreErrors) {
  const auto memory = Allocate(100), other = Allocate(100);
  const hal::DeviceAddress gone = Allocate(100)->address();
  const float host[4] = {};
  const struct {
    hal::DeviceAddress to, from;
    size_t bytes;
    const char* why;
  } cases[] = {
      {memory->address(), other->address() + 90, 11,
       "leave allocation 1 of this device, which has 100 bytes, at byte 90"},
      {memory->address() + 101, other->address(), 0, "leave allocation 0"},
      {gone, other->address(), 4, "is no address of this device's memory"},
      {memory->address(), reinterpret_cast<uintptr_t>(host), 4, "is no address of this device's memory"},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(stream_->Copy(c.to, c.from, c.bytes).ok());
    const absl::Status status = stream_->Synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

TEST_F(Discrete, FillsByGrid) {
  constexpr int64_t kCount = 1009;
  const auto kernel = device_->CreateKernel(SignatureOf("discrete_fill", {F32(kernels::Access::kWrite, {kCount})}));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const float value = 2.5f;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  for (const auto& [blocks, threads] : {std::pair{1u, 1u}, {7u, 32u}, {64u, 1024u}}) {
    const auto memory = Allocate((kCount + 1) * sizeof(float));
    Write(*memory, std::vector<float>(kCount + 1, -1));
    Run(**kernel, hal::Grid{{blocks, 1, 1}, {threads, 1, 1}, 0, {bits}}, {memory->address()});
    std::vector<float> expected(kCount + 1, value);
    expected.back() = -1;
    EXPECT_EQ(Floats(*memory, kCount + 1), expected);
  }
}

TEST_F(Discrete, TransposesThroughSharedMemory) {
  constexpr int64_t kRows = 37, kColumns = 53;
  const auto kernel =
      device_->CreateKernel(SignatureOf("discrete_transpose", {F32(kernels::Access::kRead, {kRows, kColumns}),
                                                               F32(kernels::Access::kWrite, {kColumns, kRows})}));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> values(kRows * kColumns), expected(values.size());
  std::iota(values.begin(), values.end(), 0.0f);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) expected[c * kRows + r] = values[r * kColumns + c];
  }
  const auto in = Allocate(values.size() * sizeof(float)), out = Allocate(values.size() * sizeof(float));
  Write(*in, values);
  Run(**kernel, hal::Grid{{7, 10, 1}, {8, 4, 1}, 128, {}}, {in->address(), out->address()});
  EXPECT_EQ(Floats(*out, values.size()), expected);
}

TEST_F(Discrete, GeneratedCodeRunsByGridToo) {
  constexpr size_t kCount = 1009;
  const auto executable = device_->LoadExecutable("elf", testing::FixtureImage());
  ASSERT_TRUE(executable.ok());
  const auto kernel = (*executable)->Resolve("fixture_increment");
  ASSERT_TRUE(kernel.ok());
  for (uint32_t blocks : {1u, 2u, 13u, 2000u}) {
    const auto memory = Allocate(kCount * sizeof(float));
    Write(*memory, std::vector<float>(kCount, 0));
    Run(**kernel, hal::Grid{{blocks, 1, 1}, {1, 1, 1}, 0, {kCount}}, {memory->address()});
    EXPECT_THAT(Floats(*memory, kCount), Each(1.0f)) << blocks;
  }
}

TEST_F(Discrete, RefusesOtherSignaturesAndGeometries) {
  using kernels::Access;
  for (const kernels::Signature& signature :
       {SignatureOf("discrete_fill", {}), SignatureOf("discrete_fill", {F32(Access::kRead, {3})}),
        SignatureOf("discrete_transpose", {F32(Access::kRead, {2, 3}), F32(Access::kWrite, {2, 3})}),
        SignatureOf("discrete_transpose", {F32(Access::kRead, {2}), F32(Access::kWrite, {2})})}) {
    EXPECT_EQ(device_->CreateKernel(signature).status().code(), absl::StatusCode::kInvalidArgument);
  }
  const auto fill = *device_->CreateKernel(SignatureOf("discrete_fill", {F32(Access::kWrite, {3})}));
  const auto transpose = *device_->CreateKernel(
      SignatureOf("discrete_transpose", {F32(Access::kRead, {2, 3}), F32(Access::kWrite, {3, 2})}));
  const auto executable = *device_->LoadExecutable("elf", testing::FixtureImage());
  const auto generated = *executable->Resolve("fixture_increment");
  const struct {
    const hal::Launchable& kernel;
    hal::Geometry geometry;
    const char* why;
  } cases[] = {
      {*fill, {}, "is launched by a grid"},
      {*fill, hal::Extent{3}, "is launched by a grid"},
      {*fill, hal::Grid{{1, 1, 1}, {1, 1, 1}, 0, {}}, "one constant"},
      {*fill, hal::Grid{{1, 2, 1}, {1, 1, 1}, 0, {0}}, "one dimension"},
      {*fill, hal::Grid{{0, 1, 1}, {1, 1, 1}, 0, {0}}, "at least one block"},
      {*fill, hal::Grid{{1, 1, 1}, {2048, 1, 1}, 0, {0}}, "at most 16777216 blocks of at most 1024 threads"},
      {*transpose, hal::Grid{{1, 1, 1}, {2, 2, 1}, 16, {}}, "cover 3 columns and 2 rows"},
      {*transpose, hal::Grid{{2, 1, 1}, {2, 2, 1}, 8, {}}, "4 bytes of shared memory"},
      {*generated, hal::Grid{{2, 1, 1}, {1, 1, 1}, 0, {}}, "one constant, which is the extent"},
      {*generated, hal::Grid{{2, 1, 1}, {4, 1, 1}, 0, {3}}, "one thread each"},
  };
  for (const auto& c : cases) {
    const absl::Status status = c.kernel.CheckGeometry(c.geometry);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

// The seeds are the same in every run, and each finds the same: one in which nothing is late, one in
// which the first stream is, one in which the others are, and so on.
constexpr int kFewSeeds = 6;

// One stream writes, another copies the written value. With the event the value is always there; without it some seeds
// copy before the write and some after, the same ones in every run.
TEST(DiscreteOrder, TellsWhereAnEventIsMissing) {
  const auto run = [](int seed, bool waits) {
    const auto device = MakeDevice({{"seed", std::to_string(seed)}});
    const auto first = *device->CreateStream(), second = *device->CreateStream();
    const auto event = *device->CreateEvent();
    const auto memory = *device->Allocate(1024), fresh = *device->Allocate(1024), copied = *device->Allocate(1024);
    EXPECT_TRUE(memory->Write(0, std::vector<uint8_t>(1024, 0)).ok());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(first->Copy(memory->address(), memory->address() + 512, 64).ok());
    EXPECT_TRUE(first->Copy(memory->address(), fresh->address(), 64).ok());
    EXPECT_TRUE(first->Record(*event).ok());
    if (waits) EXPECT_TRUE(second->Wait(*event).ok());
    EXPECT_TRUE(second->Copy(copied->address(), memory->address(), 64).ok());
    EXPECT_TRUE(second->Synchronize().ok() && first->Synchronize().ok());
    uint8_t byte = 0;
    EXPECT_TRUE(copied->Read(0, absl::MakeSpan(&byte, 1)).ok());
    return byte;
  };
  std::vector<uint8_t> seen;
  for (int seed = 0; seed < kFewSeeds; ++seed) {
    EXPECT_EQ(run(seed, /*waits=*/true), 0xff) << seed;
    seen.push_back(run(seed, /*waits=*/false));
    for (int again = 0; again < 5; ++again) EXPECT_EQ(run(seed, /*waits=*/false), seen.back()) << seed;
  }
  EXPECT_THAT(seen, AllOf(Contains(0), Contains(0xff)));
}

// Each of four streams counts up a shared number, many times, and notes after each time its own count. Every 16th time
// it waits for another stream.
std::vector<float> OrderOfCommands(int seed) {
  constexpr size_t kStreams = 4, kTimes = 100;
  const auto device = MakeDevice({{"seed", std::to_string(seed)}});
  const auto executable = *device->LoadExecutable("elf", testing::FixtureImage());
  const auto increment = *executable->Resolve("fixture_increment");
  const auto count = *device->Allocate(sizeof(float)), notes = *device->Allocate(kStreams * kTimes * sizeof(float));
  const std::vector<uint8_t> zeros(sizeof(float), 0);
  EXPECT_TRUE(count->Write(0, zeros).ok());
  const std::vector<hal::DeviceAddress> arguments = {count->address()};
  const hal::Geometry geometry = hal::Extent{1};
  std::vector<std::unique_ptr<hal::Stream>> streams;
  std::vector<std::unique_ptr<hal::Event>> events;
  for (size_t i = 0; i < kStreams; ++i) {
    streams.push_back(*device->CreateStream());
    events.push_back(*device->CreateEvent());
    EXPECT_TRUE(streams[i]->Record(*events[i]).ok());
  }
  for (size_t time = 0; time < kTimes; ++time) {
    for (size_t i = 0; i < kStreams; ++i) {
      if (time % 16 == 15) EXPECT_TRUE(streams[i]->Wait(*events[(i + 1) % kStreams]).ok());
      EXPECT_TRUE(streams[i]->Launch(*increment, geometry, arguments, 0).ok());
      EXPECT_TRUE(streams[i]->Copy(notes->address() + (time * kStreams + i) * sizeof(float), count->address(), 4).ok());
      EXPECT_TRUE(streams[i]->Record(*events[i]).ok());
    }
  }
  for (const auto& stream : streams) EXPECT_TRUE(stream->Synchronize().ok());
  std::vector<float> order(kStreams * kTimes);
  EXPECT_TRUE(notes->Read(0, {reinterpret_cast<uint8_t*>(order.data()), order.size() * sizeof(float)}).ok());
  return order;
}

TEST(DiscreteOrder, FollowsFromTheSeed) {
  std::set<std::vector<float>> orders;
  for (int seed = 0; seed < kFewSeeds; ++seed) {
    const std::vector<float> order = OrderOfCommands(seed);
    EXPECT_EQ(*std::max_element(order.begin(), order.end()), static_cast<float>(order.size()));
    for (int again = 0; again < 5; ++again) EXPECT_EQ(OrderOfCommands(seed), order) << seed;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), static_cast<size_t>(kFewSeeds));
}

// More commands than a stream holds: their issuer runs some, as the number of commands says.
TEST(DiscreteOrder, FollowsFromTheSeedWhereStreamsAreFull) {
  const auto run = [](int seed) {
    constexpr size_t kCommands = 10000;
    const auto device = MakeDevice({{"seed", std::to_string(seed)}});
    const auto executable = *device->LoadExecutable("elf", testing::FixtureImage());
    const auto increment = *executable->Resolve("fixture_increment");
    const auto first = *device->CreateStream(), second = *device->CreateStream();
    const auto count = *device->Allocate(sizeof(float)), notes = *device->Allocate(kCommands * sizeof(float));
    EXPECT_TRUE(count->Write(0, std::vector<uint8_t>(sizeof(float), 0)).ok());
    const std::vector<hal::DeviceAddress> arguments = {count->address()};
    const hal::Geometry geometry = hal::Extent{1};
    for (size_t i = 0; i < kCommands; ++i) {
      EXPECT_TRUE(first->Launch(*increment, geometry, arguments, 0).ok());
      EXPECT_TRUE(second->Copy(notes->address() + i * sizeof(float), count->address(), sizeof(float)).ok());
    }
    EXPECT_TRUE(first->Synchronize().ok() && second->Synchronize().ok());
    std::vector<float> order(kCommands);
    EXPECT_TRUE(notes->Read(0, {reinterpret_cast<uint8_t*>(order.data()), order.size() * sizeof(float)}).ok());
    return order;
  };
  for (int seed = 0; seed < 3; ++seed) {
    const std::vector<float> order = run(seed);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(run(seed), order) << seed;
  }
}

// A call that waits for a later command of another stream, as communications wait for other ranks.
TEST(DiscreteOrder, CallsStopNoOtherStream) {
  for (int seed = 0; seed < kFewSeeds; ++seed) {
    const auto device = MakeDevice({{"seed", std::to_string(seed)}});
    const auto first = *device->CreateStream(), second = *device->CreateStream();
    std::promise<void> told;
    hal::HostCall waits, tells;
    waits.context = tells.context = &told;
    waits.run = [](const hal::HostCall& call) {
      static_cast<std::promise<void>*>(call.context)->get_future().wait();
      return absl::OkStatus();
    };
    tells.run = [](const hal::HostCall& call) {
      static_cast<std::promise<void>*>(call.context)->set_value();
      return absl::OkStatus();
    };
    EXPECT_TRUE(first->Call(waits).ok() && second->Call(tells).ok());
    EXPECT_EQ(first->Synchronize(), absl::OkStatus());
    EXPECT_EQ(second->Synchronize(), absl::OkStatus());
  }
}

// One member, which does something else while others have already received its data.
class LateExchange : public hal::Exchange {
 public:
  explicit LateExchange(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}

  const std::string& name() const override { return name_; }
  const std::vector<int>& ranks() const override { return ranks_; }
  int self() const override { return 0; }
  absl::Status Run(hal::Operation, absl::Span<const hal::HostPiece> pieces) override {
    for (const hal::HostPiece& piece : pieces) std::memcpy(piece.receive, piece.send, piece.count * sizeof(float));
    meanwhile_();
    return absl::OkStatus();
  }
  absl::Status Break(absl::Status why) override { return why; }
  absl::Status status() const override { return absl::OkStatus(); }
  absl::Status Report(const hal::Operation&, uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status Complain(const std::string& failure) override { return absl::UnavailableError(failure); }
  bool emulates_link() const override { return false; }

 private:
  const std::string name_ = "dp@3";
  const std::vector<int> ranks_ = {3};
  std::function<void()> meanwhile_;
};

TEST_F(Discrete, WhatIsSentIsNotWrittenBeforeTheOperationEnded) {
  const auto other = *device_->CreateStream();
  const auto sent = Allocate(256), received = Allocate(256), zeros = Allocate(256);
  Write(*zeros, std::vector<float>(64, 0));
  for (const uint64_t changed : {0, 8, 256}) {
    Write(*sent, std::vector<float>(64, 1));
    const auto communicator = *device_->CreateCommunicator(std::make_unique<LateExchange>([&] {
      EXPECT_TRUE(other->Copy(sent->address() + 256 - changed, zeros->address(), changed).ok());
      EXPECT_TRUE(other->Synchronize().ok());
    }));
    const hal::Piece piece = {sent->address(), received->address(), 64};
    ASSERT_TRUE(communicator->Issue(*stream_, {hal::OperationKind::kAllReduce}, {&piece, 1}).ok());
    const absl::Status status = stream_->Synchronize();
    if (changed == 0) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_THAT(Floats(*received, 64), Each(1.0f));
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    // The two upper bytes of the first 1.0f that changed are not zero.
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("communicator 'dp@3', rank 3: byte " + std::to_string(258 - changed) +
                          " of 256 changed while it was sent"));
  }
}

TEST(DiscreteSettings, AreNumbersOfItsOwn) {
  const auto error = [](std::map<std::string, std::string> settings) {
    const auto device = AllDrivers("").CreateDevice("discrete", {.settings = std::move(settings)});
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(device.status().message());
  };
  EXPECT_THAT(error({{"sead", "1"}}), HasSubstr("the driver 'discrete' has no setting 'sead'; it has seed"));
  EXPECT_THAT(error({{"seed", "-1"}}), HasSubstr("seed=-1 is not a whole number from 0 to"));
}

}  // namespace
}  // namespace bowline
