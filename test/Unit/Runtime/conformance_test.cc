// The contract of runtime/hal, for every driver. What a driver cannot do is declared below with the reason.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/drivers/builtin_drivers.h"
#include "test/Unit/Plan/fixture_image.h"

namespace bowline {
namespace {

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
      {{"null", "LaunchesRegisteredKernels"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "LaunchesGeneratedKernelsOverTheirWholeExtent"}, {Expectation::kFails, "executes nothing"}},
      {{"null", "RefusesAnUnknownKernel"}, {Expectation::kUnsupported, "accepts every kernel"}},
      {{"null", "RefusesAnUnknownSymbol"}, {Expectation::kUnsupported, "accepts every symbol"}},
      {{"null", "RefusesImagesThatDoNotLoad"}, {Expectation::kUnsupported, "accepts every image"}},
      {{"null", "RefusesOtherTargets"}, {Expectation::kUnsupported, "accepts every target"}},
  };
  return declarations;
}

// A test body returns an empty string, or what is wrong: gtest cannot turn a failed EXPECT into a success.
#define REQUIRE(condition)                       \
  do {                                           \
    if (!(condition)) return "not: " #condition; \
  } while (false)

using Body = std::string (*)(hal::Device&, hal::StreamMode);

kernels::Signature Fill(double value, int64_t count) {
  kernels::Signature signature;
  signature.kernel = "fill";
  signature.attributes.push_back({"value", {}, {value}, ""});
  signature.arguments.push_back({kernels::Access::kWrite, kernels::DType::kF32, {count}});
  signature.threads = 2;
  return signature;
}

std::vector<float> Floats(const hal::Allocation& memory, size_t offset, size_t count) {
  std::vector<float> values(count);
  const absl::Status status = memory.Read(offset, {reinterpret_cast<uint8_t*>(values.data()), count * sizeof(float)});
  if (!status.ok()) values.assign(count, -12345);
  return values;
}

void WriteFloats(hal::Allocation& memory, size_t offset, const std::vector<float>& values) {
  memory.Write(offset, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}).IgnoreError();
}

std::string AllocationIsAlignedAndZero(hal::Device& device, hal::StreamMode) {
  for (size_t bytes : {size_t{1}, size_t{4096}, size_t{5000}, size_t{3} << 20}) {
    const auto memory = device.Allocate(bytes);
    REQUIRE(memory.ok());
    REQUIRE((*memory)->bytes() == bytes);
    REQUIRE(reinterpret_cast<uintptr_t>((*memory)->address()) % 4096 == 0);
    std::vector<uint8_t> read(bytes, 1);
    REQUIRE((*memory)->Read(0, absl::MakeSpan(read)).ok());
    REQUIRE(read == std::vector<uint8_t>(bytes, 0));
  }
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
  REQUIRE((*memory)->Write(98, {bytes.data(), 2}).ok());
  std::array<uint8_t, 3> tail;
  REQUIRE((*memory)->Read(97, absl::MakeSpan(tail)).ok());
  REQUIRE((tail == std::array<uint8_t, 3>{0, 7, 7}));
  return "";
}

std::string CopyMovesBytes(hal::Device& device, hal::StreamMode mode) {
  const auto memory = device.Allocate(4096);
  const auto stream = device.CreateStream(mode);
  REQUIRE(memory.ok() && stream.ok());
  WriteFloats(**memory, 0, {1, 2, 3});
  REQUIRE((*stream)->Copy((*memory)->address() + 64, (*memory)->address(), 12).ok());
  REQUIRE((*stream)->Copy((*memory)->address() + 128, (*memory)->address(), 0).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(**memory, 64, 4) == std::vector<float>{1, 2, 3, 0}));
  return "";
}

std::string LaunchesRegisteredKernels(hal::Device& device, hal::StreamMode mode) {
  const auto memory = device.Allocate(4096);
  const auto stream = device.CreateStream(mode);
  const auto kernel = device.CreateKernel(Fill(2.5, 7));
  REQUIRE(memory.ok() && stream.ok() && kernel.ok());
  void* arguments[] = {(*memory)->address()};
  REQUIRE((*stream)->Launch(**kernel, arguments, nullptr).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(**memory, 0, 8) == std::vector<float>{2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 0}));
  return "";
}

std::string LaunchesGeneratedKernelsOverTheirWholeExtent(hal::Device& device, hal::StreamMode mode) {
  constexpr size_t kCount = 1009;
  const auto memory = device.Allocate(3 * 4096);
  const auto stream = device.CreateStream(mode);
  const auto executable = device.LoadExecutable("elf", testing::FixtureImage());
  REQUIRE(memory.ok() && stream.ok() && executable.ok());
  const auto kernel = (*executable)->Resolve("fixture_increment", kCount);
  REQUIRE(kernel.ok());
  REQUIRE((*kernel)->ScratchBytes() == 0);
  std::vector<float> values(kCount + 1);
  std::iota(values.begin(), values.end(), 0.0f);
  WriteFloats(**memory, 0, values);
  void* arguments[] = {(*memory)->address()};
  REQUIRE((*stream)->Launch(**kernel, arguments, nullptr).ok());
  REQUIRE((*stream)->Synchronize().ok());
  // Each index once: twice would add two, never would add none. What lies behind stays.
  for (size_t i = 0; i < kCount; ++i) values[i] += 1;
  REQUIRE(Floats(**memory, 0, kCount + 1) == values);
  return "";
}

std::string CommandsRunInOrder(hal::Device& device, hal::StreamMode mode) {
  const auto memory = device.Allocate(4096);
  const auto stream = device.CreateStream(mode);
  const auto one = device.CreateKernel(Fill(1, 4)), two = device.CreateKernel(Fill(2, 4));
  REQUIRE(memory.ok() && stream.ok() && one.ok() && two.ok());
  uint8_t* base = (*memory)->address();
  void* arguments[] = {base};
  REQUIRE((*stream)->Launch(**one, arguments, nullptr).ok());
  REQUIRE((*stream)->Copy(base + 64, base, 16).ok());
  REQUIRE((*stream)->Launch(**two, arguments, nullptr).ok());
  REQUIRE((*stream)->Synchronize().ok());
  REQUIRE((Floats(**memory, 0, 4) == std::vector<float>{2, 2, 2, 2}));
  REQUIRE((Floats(**memory, 64, 4) == std::vector<float>{1, 1, 1, 1}));
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

// Appends its second parameter to the vector behind its context, after a while that its first says in milliseconds.
absl::Status Append(const hal::HostCall& call) {
  std::this_thread::sleep_for(std::chrono::milliseconds(call.parameters[0]));
  static_cast<std::vector<uint64_t>*>(call.context)->push_back(call.parameters[1]);
  return absl::OkStatus();
}

hal::HostCall Appends(std::vector<uint64_t>& to, uint64_t value, uint64_t milliseconds = 0) {
  return {&Append, &to, {milliseconds, value}};
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
    absl::Status called;
    for (uint64_t i = 0; i < before; ++i) {
      // Events are no commands.
      REQUIRE((*other)->Record(**event).ok() && (*stream)->Wait(**event).ok());
      REQUIRE((*stream)->Copy((*memory)->address(), (*memory)->address() + 64, 64).ok());
      REQUIRE((*stream)->Record(**event).ok());
    }
    called = (*stream)->Call(fails);
    if (called.ok()) REQUIRE((*stream)->Call(fails).ok());
    const absl::Status synchronized = (*stream)->Synchronize();
    REQUIRE(called.ok() != synchronized.ok());
    if (!synchronized.ok()) REQUIRE((*stream)->FailedCommand() == before);
    REQUIRE((*stream)->Synchronize().ok());
    REQUIRE(!(*stream)->FailedCommand().has_value());
  }
  return "";
}

std::string RefusesAnUnknownKernel(hal::Device& device, hal::StreamMode) {
  kernels::Signature signature = Fill(1, 4);
  signature.kernel = "no such kernel";
  REQUIRE(device.CreateKernel(signature).status().code() == absl::StatusCode::kNotFound);
  return "";
}

std::string RefusesAnUnknownSymbol(hal::Device& device, hal::StreamMode) {
  const auto executable = device.LoadExecutable("elf", testing::FixtureImage());
  REQUIRE(executable.ok());
  const absl::Status status = (*executable)->Resolve("no_such_symbol", 1).status();
  REQUIRE(status.code() == absl::StatusCode::kNotFound);
  REQUIRE(status.message().find("no_such_symbol") != absl::string_view::npos);
  return "";
}

std::string RefusesImagesThatDoNotLoad(hal::Device& device, hal::StreamMode) {
  std::vector<uint8_t> image = testing::FixtureImage();
  REQUIRE(device.LoadExecutable("no such format", image).status().code() == absl::StatusCode::kInvalidArgument);
  image.resize(100);
  REQUIRE(device.LoadExecutable("elf", image).status().code() == absl::StatusCode::kInvalidArgument);
  return "";
}

std::string RefusesOtherTargets(hal::Device& device, hal::StreamMode) {
  for (const hal::Target& target : {hal::Target{"abacus", "x86_64", "x86-64"}, hal::Target{"cpu", "vax", "x86-64"},
                                    hal::Target{"cpu", "x86_64", "x86-64-v99"}}) {
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
  for (const std::string& driver : BuiltinDrivers().Names()) {
    CASE(AllocationIsAlignedAndZero);
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
    CASE(RefusesAnUnknownKernel);
    CASE(RefusesAnUnknownSymbol);
    CASE(RefusesImagesThatDoNotLoad);
    CASE(RefusesOtherTargets);
  }
  return cases;
}

class Conformance : public ::testing::TestWithParam<Case> {};

TEST_P(Conformance, Holds) {
  const auto device = BuiltinDrivers().CreateDevice(GetParam().driver, {.threads = 3});
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
