// The contract of runtime/hal, for every driver. Features that a driver lacks are declared below with the reason.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/drivers/builtin_drivers.h"
#include "test/Unit/Runtime/device_fixture.h"

namespace bowline {
namespace {

using namespace testing;  // bowline::testing

enum class Expectation {
  kUnsupported,  // the driver does not offer it: the test is skipped
  kFails,        // the driver offers it wrongly: the test must fail
};
struct Declaration {
  Expectation expectation;
  const char* reason;
};

const std::map<std::pair<std::string, std::string>, Declaration>& Declarations() {
  static const std::map<std::pair<std::string, std::string>, Declaration> declarations = {
      {{"null", "CopyMovesBytes"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "CallsRunInOrder"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "WaitsSeeWhatWasRecorded"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "ErrorsArriveOnceAndStopTheStream"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "NamesTheCommandThatFailed"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "CommandsRunInOrder"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "OnlyPinnedMemoryIsTheHosts"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "TimesOfEventsAreThoseOfTheirPoints"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "AwaitedPointsAreReachedAndNoMore"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "CommunicatorsMoveTheDevicesMemory"}, {Expectation::kUnsupported, "the other rank would wait"}},
      {{"null", "RefusesGeometriesThatAreNone"}, {Expectation::kUnsupported, "accepts every geometry"}},
      {{"null", "LaunchesRegisteredKernels"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "LaunchesGeneratedKernelsOverTheirWholeExtent"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "RefusesAnUnknownKernel"}, {Expectation::kUnsupported, "accepts every kernel"}},
      {{"null", "RefusesAnUnknownSymbol"}, {Expectation::kUnsupported, "accepts every symbol"}},
      {{"null", "RefusesImagesThatDoNotLoad"}, {Expectation::kUnsupported, "accepts every image"}},
      {{"null", "RefusesOtherTargets"}, {Expectation::kUnsupported, "accepts every target"}},
  };
  return declarations;
}

// A test body returns an empty string, or the error: gtest cannot turn a failed EXPECT into a success.
#define REQUIRE(condition)                       \
  do {                                           \
    if (!(condition)) return "not: " #condition; \
  } while (false)

using Body = std::string (*)(hal::Device&, hal::StreamMode);

std::string AllocationsAreAlignedAndApart(hal::Device& device, hal::StreamMode) {
  for (const hal::MemorySpace space : kSpaces) {
    std::vector<std::unique_ptr<hal::Allocation>> all;
    for (size_t bytes : {size_t{1}, size_t{4096}, size_t{5000}, size_t{3} << 20}) {
      auto memory = device.Allocate(bytes, space);
      REQUIRE(memory.ok());
      REQUIRE((*memory)->bytes() == bytes);
      REQUIRE((*memory)->address() % 4096 == 0);
      for (const auto& other : all) {
        REQUIRE((*memory)->address() >= other->address() + other->bytes() ||
                other->address() >= (*memory)->address() + bytes);
      }
      all.push_back(*std::move(memory));
      const std::vector<uint8_t> written(bytes, static_cast<uint8_t>(all.size()));
      REQUIRE(all.back()->Write(0, written).ok());
    }
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<uint8_t> read(all[i]->bytes());
      REQUIRE(all[i]->Read(0, absl::MakeSpan(read)).ok());
      REQUIRE(read == std::vector<uint8_t>(read.size(), static_cast<uint8_t>(i + 1)));
    }
  }
  return "";
}

std::string OnlyPinnedMemoryIsTheHosts(hal::Device& device, hal::StreamMode mode) {
  const auto memory = AllocateZeros(device, 256), pinned = AllocateZeros(device, 256, hal::MemorySpace::kPinnedHost);
  const auto stream = device.CreateStream(mode);
  REQUIRE(memory != nullptr && pinned != nullptr && stream.ok());
  REQUIRE(memory->host() == nullptr);
  REQUIRE(pinned->host() != nullptr);
  for (uint8_t i = 0; i < 100; ++i) pinned->host()[i] = i;
  REQUIRE((*stream)->Copy(memory->address() + 8, pinned->address() + 2, 64).ok());
  REQUIRE((*stream)->Copy(pinned->address() + 128, memory->address() + 8, 64).ok());
  REQUIRE((*stream)->Synchronize().ok());
  for (uint8_t i = 0; i < 64; ++i) REQUIRE(pinned->host()[128 + i] == i + 2);
  std::array<uint8_t, 2> read;
  REQUIRE(memory->Read(70, absl::MakeSpan(read)).ok());
  REQUIRE((read == std::array<uint8_t, 2>{64, 65}));
  return "";
}

std::string EmptyAllocation(hal::Device& device, hal::StreamMode) {
  const auto memory = device.Allocate(0);
  REQUIRE(memory.ok());
  REQUIRE((*memory)->bytes() == 0);
  REQUIRE((*memory)->Write(0, {}).ok());
  return "";
}

std::string ImpossibleAllocationIsAnError(hal::Device& device, hal::StreamMode) {
  for (size_t bytes : {size_t{1} << 62, ~size_t{0} - 4096}) {
    REQUIRE(device.Allocate(bytes).status().code() == absl::StatusCode::kResourceExhausted);
  }
  return "";
}

std::string TransfersStayInside(hal::Device& device, hal::StreamMode) {
  const auto memory = device.Allocate(100);
  REQUIRE(memory.ok());
  std::vector<uint8_t> bytes(101, 7);
  REQUIRE((*memory)->Write(0, bytes).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*memory)->Write(~size_t{0}, {bytes.data(), 2}).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*memory)->Read(1, {bytes.data(), 100}).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*memory)->Write(97, {bytes.data(), 1}).ok());
  bytes.assign(101, 8);
  REQUIRE((*memory)->Write(98, {bytes.data(), 2}).ok());
  std::array<uint8_t, 3> tail;
  REQUIRE((*memory)->Read(97, absl::MakeSpan(tail)).ok());
  REQUIRE((tail == std::array<uint8_t, 3>{7, 8, 8}));
  return "";
}

std::string CopyMovesBytes(hal::Device& device, hal::StreamMode mode) {
  const auto memory = AllocateZeros(device, 4096);
  const auto stream = device.CreateStream(mode);
  REQUIRE(memory != nullptr && stream.ok());
  WriteFloats(*memory, 0, {1, 2, 3});
  REQUIRE((*stream)->Copy(memory->address() + 64, memory->address(), 12).ok());
  REQUIRE((*stream)->Copy(memory->address() + 128, memory->address(), 0).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(*memory, 64, 4) == std::vector<float>{1, 2, 3, 0}));
  return "";
}

std::string LaunchesRegisteredKernels(hal::Device& device, hal::StreamMode mode) {
  const auto memory = AllocateZeros(device, 4096);
  const auto stream = device.CreateStream(mode);
  const auto kernel = device.CreateKernel(Fill(2.5, 7));
  REQUIRE(memory != nullptr && stream.ok() && kernel.ok());
  const hal::Geometry geometry;
  const hal::DeviceAddress arguments[] = {memory->address()};
  REQUIRE((*stream)->Launch(**kernel, geometry, arguments, 0).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(*memory, 0, 8) == std::vector<float>{2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 0}));
  return "";
}

std::string LaunchesGeneratedKernelsOverTheirWholeExtent(hal::Device& device, hal::StreamMode mode) {
  constexpr size_t kCount = 1009;
  const auto memory = AllocateZeros(device, 3 * 4096);
  const auto stream = device.CreateStream(mode);
  const Fixture fixture = FixtureOf(device, kCount);
  const auto executable = device.LoadExecutable(fixture.format, fixture.image);
  REQUIRE(memory != nullptr && stream.ok() && executable.ok());
  const auto kernel = (*executable)->Resolve("fixture_increment");
  REQUIRE(kernel.ok());
  REQUIRE((*kernel)->ScratchBytes() == 0);
  std::vector<float> values(kCount + 1);
  std::iota(values.begin(), values.end(), 0.0f);
  WriteFloats(*memory, 0, values);
  const hal::Geometry& geometry = fixture.over_extent;
  REQUIRE((*kernel)->CheckGeometry(geometry).ok());
  const hal::DeviceAddress arguments[] = {memory->address()};
  REQUIRE((*stream)->Launch(**kernel, geometry, arguments, 0).ok());
  REQUIRE((*stream)->Synchronize().ok());
  // Each index once: twice would add two, never would add none. Elements beyond kCount stay as they are.
  for (size_t i = 0; i < kCount; ++i) values[i] += 1;
  REQUIRE(Floats(*memory, 0, kCount + 1) == values);
  return "";
}

std::string CommandsRunInOrder(hal::Device& device, hal::StreamMode mode) {
  const auto memory = AllocateZeros(device, 4096);
  const auto stream = device.CreateStream(mode);
  const auto one = device.CreateKernel(Fill(1, 4)), two = device.CreateKernel(Fill(2, 4));
  REQUIRE(memory != nullptr && stream.ok() && one.ok() && two.ok());
  const hal::DeviceAddress base = memory->address();
  const hal::Geometry geometry;
  const hal::DeviceAddress arguments[] = {base};
  REQUIRE((*stream)->Launch(**one, geometry, arguments, 0).ok());
  REQUIRE((*stream)->Copy(base + 64, base, 16).ok());
  REQUIRE((*stream)->Launch(**two, geometry, arguments, 0).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(*memory, 0, 4) == std::vector<float>{2, 2, 2, 2}));
  REQUIRE((Floats(*memory, 64, 4) == std::vector<float>{1, 1, 1, 1}));
  return "";
}

// Appends its second parameter to the vector behind its context, after a while that its first says in milliseconds.
absl::Status Append(const hal::HostCall& call) {
  std::this_thread::sleep_for(std::chrono::milliseconds(call.parameters[0]));
  static_cast<std::vector<uint64_t>*>(call.context)->push_back(call.parameters[1]);
  return absl::OkStatus();
}

hal::HostCall Appends(std::vector<uint64_t>& to, uint64_t value, uint64_t milliseconds = 0) {
  return {&Append, &to, {milliseconds, value}};
}

std::string RefusesGeometriesThatAreNone(hal::Device& device, hal::StreamMode) {
  const Fixture fixture = FixtureOf(device, 4);
  const auto executable = device.LoadExecutable(fixture.format, fixture.image);
  REQUIRE(executable.ok());
  const auto generated = (*executable)->Resolve("fixture_increment");
  const auto registered = device.CreateKernel(Fill(1, 4));
  REQUIRE(generated.ok() && registered.ok());
  for (const hal::Geometry& geometry : fixture.refused) {
    REQUIRE((*generated)->CheckGeometry(geometry).code() == absl::StatusCode::kInvalidArgument);
  }
  REQUIRE((*registered)->CheckGeometry(hal::Extent{4}).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*registered)->CheckGeometry({}).ok());
  return "";
}

std::string TimesOfEventsAreThoseOfTheirPoints(hal::Device& device, hal::StreamMode mode) {
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); };
  const auto stream = device.CreateStream(mode);
  const auto before = device.CreateEvent(hal::EventMode::kTimed), after = device.CreateEvent(hal::EventMode::kTimed);
  const auto untimed = device.CreateEvent();
  REQUIRE(stream.ok() && before.ok() && after.ok() && untimed.ok());
  REQUIRE((*before)->Time().status().code() == absl::StatusCode::kFailedPrecondition);
  for (int round = 0; round < 3; ++round) {
    const int64_t begin = now();
    std::vector<uint64_t> values;
    REQUIRE((*stream)->Record(**before).ok() && (*stream)->Record(**untimed).ok());
    REQUIRE((*stream)->Call(Appends(values, 1, 10)).ok());
    REQUIRE((*stream)->Record(**after).ok());
    REQUIRE((*stream)->Synchronize().ok());
    REQUIRE((*untimed)->Time().status().code() == absl::StatusCode::kFailedPrecondition);
    const auto first = (*before)->Time(), second = (*after)->Time();
    REQUIRE(first.ok() && second.ok());
    // A card's clock is set by the host's, up to the time of asking the card: microseconds on an idle host.
    constexpr int64_t kClockNanoseconds = 1'000'000;
    REQUIRE(begin - kClockNanoseconds <= *first && *second <= now() + kClockNanoseconds);
    REQUIRE(*second - *first >= 10'000'000);
  }
  return "";
}

// Fails, after the flag behind its context was set, if it has one.
absl::Status FailWhenSet(const hal::HostCall& call) {
  while (call.context != nullptr && !static_cast<std::atomic<bool>*>(call.context)->load()) std::this_thread::yield();
  return absl::DataLossError("as was asked for");
}

std::string AwaitedPointsAreReachedAndNoMore(hal::Device& device, hal::StreamMode mode) {
  const auto stream = device.CreateStream(mode);
  const auto event = device.CreateEvent();
  REQUIRE(stream.ok() && event.ok());
  REQUIRE((*event)->Await().ok());
  std::vector<uint64_t> values;
  REQUIRE((*stream)->Call(Appends(values, 1, 10)).ok());
  REQUIRE((*stream)->Record(**event).ok());
  std::atomic<bool> awaited{false};
  const bool beside = mode == hal::StreamMode::kWorker;
  // The call behind the event waits for `awaited`. Inline, this thread would wait for that call forever.
  if (beside) REQUIRE((*stream)->Call({&FailWhenSet, &awaited, {}}).ok());
  REQUIRE((*event)->Await().ok());
  REQUIRE(values == std::vector<uint64_t>{1});
  REQUIRE(!(*stream)->HasFailed());
  awaited = true;
  if (!beside) return "";
  REQUIRE((*stream)->Record(**event).ok() && (*event)->Await().ok());
  REQUIRE((*stream)->HasFailed());
  REQUIRE((*stream)->Synchronize().code() == absl::StatusCode::kDataLoss);
  REQUIRE(!(*stream)->HasFailed());
  return "";
}

std::string EventsOrderStreams(hal::Device& device, hal::StreamMode mode) {
  const auto first = device.CreateStream(mode), second = device.CreateStream(mode);
  const auto event = device.CreateEvent();
  REQUIRE(first.ok() && second.ok() && event.ok());
  REQUIRE(!(*event)->recorded());
  REQUIRE((*second)->Wait(**event).code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE((*first)->Record(**event).ok());
  REQUIRE((*event)->recorded());
  REQUIRE((*second)->Wait(**event).ok());
  REQUIRE((*first)->Record(**event).ok());
  REQUIRE((*first)->Synchronize().ok() && (*second)->Synchronize().ok());
  return "";
}

std::string CallsRunInOrder(hal::Device& device, hal::StreamMode mode) {
  const auto stream = device.CreateStream(mode);
  REQUIRE(stream.ok());
  // More than any stream holds at once.
  constexpr uint64_t kCount = 5000;
  std::vector<uint64_t> values;
  values.reserve(kCount);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE((*stream)->Call(Appends(values, i, i == 0 ? 5 : 0)).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE(values.size() == kCount);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE(values[i] == i);
  return "";
}

std::string WaitsSeeWhatWasRecorded(hal::Device& device, hal::StreamMode mode) {
  const auto first = device.CreateStream(mode), second = device.CreateStream(mode);
  const auto event = device.CreateEvent();
  REQUIRE(first.ok() && second.ok() && event.ok());
  std::vector<uint64_t> values;
  REQUIRE((*first)->Call(Appends(values, 1, 20)).ok());
  REQUIRE((*first)->Record(**event).ok());
  REQUIRE((*second)->Wait(**event).ok());
  REQUIRE((*second)->Call(Appends(values, 2, 20)).ok());
  REQUIRE((*second)->Record(**event).ok());
  REQUIRE((*first)->Wait(**event).ok());
  REQUIRE((*first)->Call(Appends(values, 3)).ok());
  REQUIRE((*second)->Synchronize().ok() && (*first)->Synchronize().ok());
  REQUIRE((values == std::vector<uint64_t>{1, 2, 3}));
  return "";
}

std::string ErrorsArriveOnceAndStopTheStream(hal::Device& device, hal::StreamMode mode) {
  const auto stream = device.CreateStream(mode);
  const auto event = device.CreateEvent();
  REQUIRE(stream.ok() && event.ok());
  const hal::HostCall fails = {[](const hal::HostCall&) { return absl::DataLossError("the first"); }, nullptr, {}};
  std::vector<uint64_t> values;
  absl::Status status = (*stream)->Call(fails);
  if (status.ok()) {
    REQUIRE((*stream)->Call(Appends(values, 1)).ok());
    REQUIRE((*stream)->Record(**event).ok());
    status = (*stream)->Synchronize();
  }
  REQUIRE(status == absl::DataLossError("the first"));
  REQUIRE(values.empty());
  REQUIRE((*stream)->Call(Appends(values, 2)).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((values == std::vector<uint64_t>{2}));
  return "";
}

std::string NamesTheCommandThatFailed(hal::Device& device, hal::StreamMode mode) {
  const auto stream = device.CreateStream(mode), other = device.CreateStream(mode);
  const auto event = device.CreateEvent();
  const auto memory = device.Allocate(128);
  REQUIRE(stream.ok() && other.ok() && event.ok() && memory.ok());
  const hal::HostCall fails = {[](const hal::HostCall&) { return absl::DataLossError("the first"); }, nullptr, {}};
  std::vector<uint64_t> values;
  for (const uint64_t before : {0, 3, 2000}) {
    for (uint64_t i = 0; i < before; ++i) {
      (*stream)->SetLabel(i);
      REQUIRE((*other)->Record(**event).ok() && (*stream)->Wait(**event).ok());
      REQUIRE((*stream)->Copy((*memory)->address(), (*memory)->address() + 64, 64).ok());
      REQUIRE((*stream)->Record(**event).ok());
    }
    (*stream)->SetLabel(77 + before);
    const absl::Status called = (*stream)->Call(fails);
    (*stream)->SetLabel(5);
    if (called.ok()) REQUIRE((*stream)->Call(fails).ok());
    const absl::Status synchronized = (*stream)->Synchronize();
    REQUIRE(called.ok() != synchronized.ok());
    if (!synchronized.ok()) REQUIRE((*stream)->FailedLabel() == 77 + before);
    REQUIRE((*stream)->Synchronize().ok());
    REQUIRE(!(*stream)->FailedLabel().has_value());
  }
  return "";
}

// Sums over two ranks, each with a device of its own, of which one is `device` and the other one of the same driver.
std::string CommunicatorsMoveTheDevicesMemory(hal::Device& device, hal::StreamMode mode) {
  constexpr size_t kCount = 1000;
  const auto group = LoopbackGroup::Create(2);
  const auto other = AllDrivers("").CreateDevice(std::string(device.name()), {.threads = 1, .rank = 1});
  REQUIRE(group.ok() && other.ok());
  std::array<std::string, 2> wrong;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      wrong[static_cast<size_t>(rank)] = [&, rank]() -> std::string {
        hal::Device& own = rank == 0 ? device : **other;
        const auto view = (*group)->AsRank(rank);
        auto exchange = view->CreateExchange("both", {0, 1});
        REQUIRE(exchange.ok());
        const auto communicator = own.CreateCommunicator(*std::move(exchange));
        const auto stream = own.CreateStream(mode);
        const auto memory = AllocateZeros(own, 8 * kCount * sizeof(float));
        REQUIRE(communicator.ok() && stream.ok() && memory != nullptr);
        REQUIRE((*communicator)->rank() == rank && (*communicator)->size() == 2);
        std::vector<float> values(kCount);
        std::iota(values.begin(), values.end(), rank == 0 ? 0.0f : 5.0f);
        WriteFloats(*memory, 0, values);
        const auto at = [&](size_t element) { return memory->address() + element * sizeof(float); };
        const auto issue = [&](hal::Operation operation, absl::Span<const hal::Piece> pieces) {
          return (*communicator)->Issue(**stream, operation, pieces).ok();
        };
        const std::vector<hal::Piece> sums = {{at(0), at(kCount), 10}, {at(10), at(kCount + 10), kCount - 10}};
        REQUIRE((*communicator)->Reserve({hal::OperationKind::kAllReduce}, sums).ok());
        REQUIRE(issue({hal::OperationKind::kAllReduce}, sums));
        REQUIRE(issue({hal::OperationKind::kAllReduce}, {{at(0), at(0), 1}}));  // in place
        REQUIRE(issue({hal::OperationKind::kAllGather}, {{at(1), at(2 * kCount), 7}}));
        REQUIRE(issue({hal::OperationKind::kPermute, kernels::DType::kF32, 1}, {{at(1), at(5 * kCount), 7}}));
        hal::Operation transfer = {rank == 0 ? hal::OperationKind::kSend : hal::OperationKind::kReceive};
        transfer.peer = 1 - rank;
        REQUIRE(issue(transfer, {{rank == 0 ? at(3) : 0, rank == 0 ? 0 : at(3 * kCount), 3}}));
        REQUIRE(issue({hal::OperationKind::kBarrier}, {}));
        REQUIRE((*stream)->Synchronize().ok());
        const std::vector<float> got = Floats(*memory, 0, 6 * kCount);
        for (size_t i = 0; i < kCount; ++i) REQUIRE(got[kCount + i] == 2 * static_cast<float>(i) + 5);
        REQUIRE(got[0] == 5 && got[1] == values[1]);
        for (size_t i = 0; i < 7; ++i) {
          REQUIRE(got[2 * kCount + i] == static_cast<float>(i + 1) &&
                  got[2 * kCount + 7 + i] == static_cast<float>(i + 6));
        }
        for (size_t i = 0; i < 7; ++i) REQUIRE(got[5 * kCount + i] == static_cast<float>(i + (rank == 0 ? 6 : 1)));
        REQUIRE(got[3 * kCount] == (rank == 0 ? 0.0f : 3.0f));
        REQUIRE((*communicator)->Issue(**stream, transfer, {{0, 0, 1}}).code() == absl::StatusCode::kInvalidArgument);
        return "";
      }();
      // The other rank waits for nobody who gave up.
      if (!wrong[static_cast<size_t>(rank)].empty()) (*group)->Abort(absl::InternalError("gave up"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong[0] + wrong[1];
}

std::string RefusesAnUnknownKernel(hal::Device& device, hal::StreamMode) {
  kernels::Signature signature = Fill(1, 4);
  signature.kernel = "no such kernel";
  REQUIRE(device.CreateKernel(signature).status().code() == absl::StatusCode::kNotFound);
  return "";
}

std::string RefusesAnUnknownSymbol(hal::Device& device, hal::StreamMode) {
  const Fixture fixture = FixtureOf(device, 4);
  const auto executable = device.LoadExecutable(fixture.format, fixture.image);
  REQUIRE(executable.ok());
  const absl::Status status = (*executable)->Resolve("no_such_symbol").status();
  REQUIRE(status.code() == absl::StatusCode::kNotFound);
  REQUIRE(status.message().find("no_such_symbol") != absl::string_view::npos);
  return "";
}

std::string RefusesImagesThatDoNotLoad(hal::Device& device, hal::StreamMode) {
  Fixture fixture = FixtureOf(device, 4);
  REQUIRE(device.KnowsFormat(fixture.format));
  REQUIRE(!device.KnowsFormat("no such format"));
  REQUIRE(device.LoadExecutable("no such format", fixture.image).status().code() == absl::StatusCode::kInvalidArgument);
  fixture.image.resize(100);
  REQUIRE(device.LoadExecutable(fixture.format, fixture.image).status().code() == absl::StatusCode::kInvalidArgument);
  return "";
}

std::string RefusesOtherTargets(hal::Device& device, hal::StreamMode) {
  for (const hal::Target& target :
       {hal::Target{"abacus", "x86_64", "x86-64"}, hal::Target{"cpu", "vax", "x86-64"},
        hal::Target{"cpu", "x86_64", "x86-64-v99"}, hal::Target{"cuda", "nvptx64", "sm_999a"},
        hal::Target{"cuda", "x86_64", "sm_90"}}) {
    REQUIRE(device.CheckTarget(target).code() == absl::StatusCode::kFailedPrecondition);
  }
  return "";
}

struct Case {
  std::string driver;
  const char* name;
  Body body;
  hal::StreamMode mode;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
#define CASE(body) cases.push_back({driver, #body, &body, hal::StreamMode::kInline})
#define STREAM_CASE(body) \
  CASE(body);             \
  cases.push_back({driver, #body, &body, hal::StreamMode::kWorker})
  std::vector<std::string> drivers = BuiltinDrivers().Names();
  drivers.push_back("discrete");
  drivers.push_back("cuda");
  for (const std::string& driver : drivers) {
    CASE(AllocationsAreAlignedAndApart);
    STREAM_CASE(OnlyPinnedMemoryIsTheHosts);
    CASE(EmptyAllocation);
    CASE(ImpossibleAllocationIsAnError);
    CASE(TransfersStayInside);
    STREAM_CASE(CopyMovesBytes);
    STREAM_CASE(LaunchesRegisteredKernels);
    STREAM_CASE(LaunchesGeneratedKernelsOverTheirWholeExtent);
    STREAM_CASE(CommandsRunInOrder);
    STREAM_CASE(EventsOrderStreams);
    STREAM_CASE(CallsRunInOrder);
    STREAM_CASE(WaitsSeeWhatWasRecorded);
    STREAM_CASE(ErrorsArriveOnceAndStopTheStream);
    STREAM_CASE(NamesTheCommandThatFailed);
    STREAM_CASE(TimesOfEventsAreThoseOfTheirPoints);
    STREAM_CASE(AwaitedPointsAreReachedAndNoMore);
    STREAM_CASE(CommunicatorsMoveTheDevicesMemory);
    CASE(RefusesGeometriesThatAreNone);
    CASE(RefusesAnUnknownKernel);
    CASE(RefusesAnUnknownSymbol);
    CASE(RefusesImagesThatDoNotLoad);
    CASE(RefusesOtherTargets);
  }
  return cases;
}

class Conformance : public ::testing::TestWithParam<Case> {};

TEST_P(Conformance, Holds) {
  const auto device = AllDrivers("").CreateDevice(GetParam().driver, {.threads = 3});
  // Of a build without it, or a machine without a card. Where there should be one, BOWLINE_REQUIRE_CARD says so.
  if (GetParam().driver == "cuda" && (absl::IsUnavailable(device.status()) || absl::IsNotFound(device.status())) &&
      std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) {
    GTEST_SKIP() << device.status().message();
  }
  ASSERT_TRUE(device.ok()) << device.status();
  const auto declared = Declarations().find({GetParam().driver, GetParam().name});
  if (declared != Declarations().end() && declared->second.expectation == Expectation::kUnsupported) {
    GTEST_SKIP() << "unsupported: " << declared->second.reason;
  }
  const std::string wrong = GetParam().body(**device, GetParam().mode);
  if (declared == Declarations().end()) {
    EXPECT_EQ(wrong, "");
  } else {
    EXPECT_NE(wrong, "") << "passes although it is declared to fail (" << declared->second.reason
                         << "); remove the declaration";
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, Conformance, ::testing::ValuesIn(AllCases()), [](const auto& info) {
  return info.param.driver + "_" + info.param.name + (info.param.mode == hal::StreamMode::kWorker ? "_OnAWorker" : "");
});

TEST(ConformanceDeclarations, NameTestsThatExist) {
  for (const auto& [key, declaration] : Declarations()) {
    bool found = false;
    for (const Case& c : AllCases()) found |= c.driver == key.first && c.name == key.second;
    EXPECT_TRUE(found) << key.first << " " << key.second;
  }
}

}  // namespace
}  // namespace bowline
