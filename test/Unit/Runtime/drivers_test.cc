#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cpu/isa/flush_subnormals.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/drivers/cpu/perf_map.h"
#include "runtime/drivers/host/host_memory.h"
#include "runtime/drivers/null/null_device.h"
#include "test/Unit/Plan/fixture_image.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(DriverRegistry, ListsWhatItHas) {
  const hal::DriverRegistry drivers = BuiltinDrivers();
  EXPECT_EQ(drivers.Names(), (std::vector<std::string>{"cpu", "null"}));
  const auto device = drivers.CreateDevice("tpu", {});
  EXPECT_EQ(device.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(device.status().message(), "there is no driver 'tpu'; this build has cpu, null");
}

TEST(DriverRegistry, RefusesANameTwice) {
  hal::DriverRegistry drivers = BuiltinDrivers();
  EXPECT_EQ(drivers.Add("cpu", &CreateCpuDevice).code(), absl::StatusCode::kAlreadyExists);
}

TEST(DriverChoice, IsANameAndSettings) {
  const auto plain = hal::ParseDriverChoice("cpu"), full = hal::ParseDriverChoice("some_gpu-2:seed=7,path=a=b:c");
  ASSERT_TRUE(plain.ok() && full.ok());
  EXPECT_EQ(plain->name, "cpu");
  EXPECT_TRUE(plain->settings.empty());
  EXPECT_EQ(full->name, "some_gpu-2");
  EXPECT_EQ(full->settings, (std::map<std::string, std::string>{{"seed", "7"}, {"path", "a=b:c"}}));
  for (const auto& [text, why] :
       {std::pair{"", "a name has lower-case"}, std::pair{"../x", "a name has lower-case"},
        std::pair{"a:", "'' is no KEY=VALUE"}, std::pair{"a:seed", "'seed' is no KEY=VALUE"},
        std::pair{"a:=1", "'=1' is no KEY=VALUE"}, std::pair{"a:b=1,b=2", "'b' is there twice"}}) {
    const absl::Status status = hal::ParseDriverChoice(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << text;
  }
}

TEST(CpuDevice, AcceptsItsOwnTargetAndLesserOnes) {
  const auto device = CreateCpuDevice({.threads = 1});
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE((*device)->CheckTarget({"cpu", HostArch(), HostCpuFeatures()->Name()}).ok());
  EXPECT_TRUE((*device)->CheckTarget({"cpu", HostArch(), "x86-64"}).ok());
  const absl::Status status = (*device)->CheckTarget({"cpu", HostArch(), "x86-64-v5"});
  EXPECT_THAT(std::string(status.message()), HasSubstr("compiled for CPU 'x86-64-v5', but this machine is '"));
}

TEST(CpuDevice, RefusesInstructionsThatTheProcessorLacks) {
  const hal::Target target{"cpu", HostArch(), "x86-64-v4+avx512bf16"};
  const auto with = CreateCpuDeviceAs({.threads = 1}, CpuFeatures{.level = 3, .beyond = {"avx512bf16"}});
  ASSERT_TRUE(with.ok());
  EXPECT_TRUE((*with)->CheckTarget(target).ok());
  EXPECT_TRUE((*with)->CheckTarget({"cpu", HostArch(), "x86-64-v4"}).ok());
  EXPECT_FALSE((*with)->CheckTarget({"cpu", HostArch(), "x86-64-v4+avx512bf16+avx512fp16"}).ok());
  // Kernels use it where it is.
  EXPECT_TRUE((*with)->CheckTarget({"cpu", HostArch(), "x86-64-v4+avx512bf16+amx"}).ok());
  EXPECT_FALSE((*with)->CheckTarget({"cpu", HostArch(), "x86-64-v4+"}).ok());
  EXPECT_FALSE((*with)->CheckTarget({"cpu", HostArch(), ""}).ok());
  const auto without = CreateCpuDeviceAs({.threads = 1}, CpuFeatures{.level = 3});
  ASSERT_TRUE(without.ok());
  const absl::Status refusal = (*without)->CheckTarget(target);
  EXPECT_EQ(refusal.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refusal.message()),
              HasSubstr("compiled for CPU 'x86-64-v4+avx512bf16', but this machine is 'x86-64-v4'; compile the model "
                        "again for this machine"));
  // A feature does not make up for a level.
  const auto lower = CreateCpuDeviceAs({.threads = 1}, CpuFeatures{.level = 2, .beyond = {"avx512bf16"}});
  ASSERT_TRUE(lower.ok());
  EXPECT_FALSE((*lower)->CheckTarget(target).ok());
}

// Generated code of a level uses all features of the level, also those that kernels do not use.
TEST(CpuDevice, NamesTheFeaturesThatALevelNeeds) {
  std::set<std::string> features;
  for (const X86Feature& feature : kX86LevelFeatures) features.insert(feature.name);
  EXPECT_EQ(CpuFeaturesOf(features).Name(), "x86-64-v4");
  features.insert("avx512bf16");
  EXPECT_EQ(CpuFeaturesOf(features).Name(), "x86-64-v4+avx512bf16");
  for (const X86Feature& feature : kX86LevelFeatures) {
    std::set<std::string> others = features;
    others.erase(feature.name);
    EXPECT_EQ(CpuFeaturesOf(others).Name(), kX86Levels[feature.level - 1]) << feature.name;
  }
  features.erase("f16c");
  features.erase("movbe");
  features.erase("avx512cd");
  const auto device = CreateCpuDeviceAs({.threads = 1}, CpuFeaturesOf(features));
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE((*device)->CheckTarget({"cpu", HostArch(), "x86-64-v2"}).ok());
  const absl::Status refusal = (*device)->CheckTarget({"cpu", HostArch(), "x86-64-v3"});
  EXPECT_THAT(std::string(refusal.message()),
              HasSubstr("compiled for CPU 'x86-64-v3', but this machine is 'x86-64-v2 without f16c, movbe'; compile"));
}

TEST(CpuDevice, IsTakenForOneOfTheLevelItIsLimitedTo) {
  std::set<std::string> features = {kBf16Feature};
  for (const X86Feature& feature : kX86LevelFeatures) features.insert(feature.name);
  constexpr std::string_view kTargets[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16"};
  for (size_t limit = 0; limit < std::size(kTargets); ++limit) {
    CpuFeatures cpu = CpuFeaturesOf(features);
    cpu.LimitTo(*CpuLevelNamed(kTargets[limit]));
    EXPECT_EQ(cpu.Name(), kTargets[limit]);
    EXPECT_EQ(cpu.is_limited, limit + 1 < std::size(kTargets));
    const auto device = CreateCpuDeviceAs({.threads = 1}, cpu);
    ASSERT_TRUE(device.ok());
    for (size_t target = 0; target < std::size(kTargets); ++target) {
      EXPECT_EQ((*device)->CheckTarget({"cpu", HostArch(), std::string(kTargets[target])}).ok(), target <= limit)
          << kTargets[limit] << " " << kTargets[target];
    }
  }
  CpuFeatures cpu = CpuFeaturesOf(features);
  cpu.LimitTo(CpuLevel::kV3);
  const absl::Status refusal = (*CreateCpuDeviceAs({.threads = 1}, cpu))->CheckTarget({"cpu", HostArch(), "x86-64-v4"});
  EXPECT_EQ(refusal.message(),
            "the plan was compiled for CPU 'x86-64-v4', but this machine is 'x86-64-v3' by the environment's "
            "BOWLINE_TARGET_CPU; compile the model again for this machine, or unset BOWLINE_TARGET_CPU");
}

// The loader of the system takes two libraries for one where they have one name.
TEST(CpuDevice, TwoImagesAreTwo) {
  const auto device = CreateCpuDevice({.threads = 1});
  ASSERT_TRUE(device.ok());
  const auto first = (*device)->LoadExecutable("elf", testing::FixtureImage());
  const auto second = (*device)->LoadExecutable("elf", testing::FixtureImage());
  ASSERT_TRUE(first.ok() && second.ok());
  const auto address = (*first)->ResolveFunction("fixture_increment");
  const auto other = (*second)->ResolveFunction("fixture_increment");
  ASSERT_TRUE(address.ok() && other.ok());
  EXPECT_NE(*address, *other);
}

TEST(CpuDevice, TellsPerfWhereKernelsAreOnRequest) {
  const auto device = CreateCpuDevice({.threads = 1});
  ASSERT_TRUE(device.ok());
  std::remove(PerfMapPath().c_str());
  ASSERT_TRUE((*(*device)->LoadExecutable("elf", testing::FixtureImage()))->Resolve("fixture_increment").ok());
  EXPECT_FALSE(std::ifstream(PerfMapPath()).good()) << "nobody asked";

  ::setenv("BOWLINE_PERF_MAP", "1", 1);
  const auto executable = (*device)->LoadExecutable("elf", testing::FixtureImage());
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto kernel = (*executable)->Resolve("fixture_increment");
  const auto address = (*executable)->ResolveFunction("fixture_increment");
  ::unsetenv("BOWLINE_PERF_MAP");
  ASSERT_TRUE(kernel.ok() && address.ok());
  std::ifstream file(PerfMapPath());
  uint64_t begin = 0, bytes = 0;
  std::string name;
  ASSERT_TRUE(file >> std::hex >> begin >> bytes >> name);
  EXPECT_EQ(begin, reinterpret_cast<uintptr_t>(*address));
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(name, "fixture_increment");
  std::remove(PerfMapPath().c_str());

  // perf asks its map only about memory without a file.
  std::ifstream maps("/proc/self/maps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    uint64_t from = 0, to = 0;
    char dash = 0;
    ASSERT_TRUE(std::istringstream(line) >> std::hex >> from >> dash >> to) << line;
    if (begin < from || begin >= to) continue;
    found = true;
    EXPECT_THAT(line, HasSubstr(" r-xp "));
    EXPECT_EQ(line.find('/'), std::string::npos) << line;
  }
  EXPECT_TRUE(found);

  // The code is unchanged.
  const auto memory = (*device)->Allocate(4096);
  const auto stream = (*device)->CreateStream();
  ASSERT_TRUE(memory.ok() && stream.ok());
  std::vector<float> values = {1, 2, 3};
  const size_t size = values.size() * sizeof(float);
  ASSERT_TRUE((*memory)->Write(0, {reinterpret_cast<const uint8_t*>(values.data()), size}).ok());
  const hal::DeviceAddress arguments[] = {(*memory)->address()};
  const hal::Geometry geometry = hal::Extent{3};
  ASSERT_TRUE((*stream)->Launch(**kernel, geometry, arguments, 0).ok());
  ASSERT_TRUE((*stream)->Synchronize().ok());
  ASSERT_TRUE((*memory)->Read(0, {reinterpret_cast<uint8_t*>(values.data()), size}).ok());
  EXPECT_THAT(values, ::testing::ElementsAre(2, 3, 4));
}

#if defined(__x86_64__)

// Also on threads of the device's own, and never behind the caller's back.
TEST(CpuDevice, TakesSubnormalNumbersForZerosAndLeavesTheCallerItsSettings) {
  const auto device = CreateCpuDevice({.threads = 2});
  ASSERT_TRUE(device.ok());
  const int64_t n = 32;
  kernels::Signature product;
  product.kernel = "matmul";
  for (const char* name : {"batch", "m", "n", "k"})
    product.attributes.push_back({name, {*name == 'b' ? 1 : n}, {}, ""});
  for (const char* name : {"a_strides", "b_strides", "c_strides"})
    product.attributes.push_back({name, {n * n, n, 1}, {}, ""});
  product.attributes.push_back({"accumulate", {0}, {}, ""});
  for (const auto access : {kernels::Access::kRead, kernels::Access::kRead, kernels::Access::kWrite})
    product.arguments.push_back({access, kernels::DType::kF32, {n * n}});
  product.threads = 2;
  const auto kernel = (*device)->CreateKernel(product);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto memory = (*device)->Allocate(3 * n * n * sizeof(float));
  const auto scratch = (*device)->Allocate(std::max<size_t>((*kernel)->ScratchBytes(), 64));
  ASSERT_TRUE(memory.ok() && scratch.ok());
  std::vector<float> values(3 * n * n, NAN);
  std::fill_n(values.begin(), n * n, 0x1p-130f);
  std::fill_n(values.begin() + n * n, n * n, 0x1p20f);
  const size_t bytes = values.size() * sizeof(float);
  for (const hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    ASSERT_TRUE((*memory)->Write(0, {reinterpret_cast<const uint8_t*>(values.data()), bytes}).ok());
    const auto stream = (*device)->CreateStream(mode);
    ASSERT_TRUE(stream.ok());
    std::vector<hal::DeviceAddress> arguments;
    for (int64_t i = 0; i < 3; ++i) arguments.push_back((*memory)->address() + i * n * n * sizeof(float));
    const uint32_t before = kernels::FloatSettings();
    ASSERT_TRUE((*stream)->Launch(**kernel, {}, arguments, (*scratch)->address()).ok());
    ASSERT_TRUE((*stream)->Synchronize().ok());
    EXPECT_EQ(kernels::FloatSettings(), before);
    std::vector<float> results(3 * n * n);
    ASSERT_TRUE((*memory)->Read(0, {reinterpret_cast<uint8_t*>(results.data()), bytes}).ok());
    results.erase(results.begin(), results.begin() + 2 * n * n);
    EXPECT_THAT(results, ::testing::Each(0.0f));
  }
}

#endif

TEST(CpuDevice, NeedsAThread) { EXPECT_FALSE(CreateCpuDevice({.threads = 0}).ok()); }

TEST(CpuDevice, RefusesSettingsThatItDoesNotKnow) {
  hal::DeviceOptions options = {.threads = 1};
  options.settings = {{"teams", "half"}};
  EXPECT_THAT(std::string(CreateCpuDevice(options).status().message()), HasSubstr("teams=half is not 'whole'"));
  options.settings = {{"team", "whole"}};
  EXPECT_THAT(std::string(CreateCpuDevice(options).status().message()), HasSubstr("no setting 'team'; it has teams"));
}

TEST(CpuDeviceDeathTest, StopsAtTheEndOfTheArena) {
  const auto device = CreateCpuDevice({.threads = 1});
  const auto memory = (*device)->Allocate(size_t{2} << 20);
  ASSERT_TRUE(memory.ok());
  volatile uint8_t* end = static_cast<uint8_t*>(PointerOf((*memory)->address())) + (*memory)->bytes();
  EXPECT_DEATH(*end = 1, "");
}

TEST(NullDevice, CountsCommands) {
  const auto device = CreateNullDevice({});
  const auto stream = (*device)->CreateStream();
  const auto event = (*device)->CreateEvent();
  const auto kernel = (*device)->CreateKernel({});
  ASSERT_TRUE((*stream)->Launch(**kernel, {}, {}, 0).ok());
  ASSERT_TRUE((*stream)->Copy(0, 0, 12).ok());
  ASSERT_TRUE((*stream)->Copy(0, 0, 30).ok());
  ASSERT_TRUE((*stream)->Call({}).ok());
  ASSERT_TRUE((*stream)->Record(**event).ok());
  ASSERT_TRUE((*stream)->Wait(**event).ok());
  ASSERT_TRUE((*stream)->Synchronize().ok());
  const NullCounts counts = CountsOf(**device);
  EXPECT_EQ(counts.launches, 1u);
  EXPECT_EQ(counts.copies, 2u);
  EXPECT_EQ(counts.copied_bytes, 42u);
  EXPECT_EQ(counts.calls, 1u);
  EXPECT_EQ(counts.records, 1u);
  EXPECT_EQ(counts.waits, 1u);
  EXPECT_EQ(counts.synchronizations, 1u);
}

TEST(NullDevice, HoldsAPlanLargerThanTheMachine) {
  const auto device = CreateNullDevice({});
  const auto memory = (*device)->Allocate(size_t{1} << 42);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const uint8_t one = 1;
  EXPECT_TRUE((*memory)->Write((size_t{1} << 42) - 1, {&one, 1}).ok());
}

}  // namespace
}  // namespace bowline
