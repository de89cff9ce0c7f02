#include "kernels/registry/cpu_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cpu/isa/isa_choice.h"
#include "kernels/registry/registry.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

// The features of psABI levels up to `level`.
std::set<std::string> FeaturesUpTo(size_t level) {
  std::set<std::string> features;
  for (const X86Feature& feature : kX86LevelFeatures) {
    if (feature.level <= level) features.insert(feature.name);
  }
  return features;
}

TEST(CpuLevel, IsTheMostThatTheFeaturesMakeUp) {
  EXPECT_EQ(CpuLevelOf({}), std::nullopt);
  EXPECT_EQ(CpuLevelOf(FeaturesUpTo(1)), CpuLevel::kV2);
  std::set<std::string> features = FeaturesUpTo(2);
  for (const char* missing : {"avx2", "f16c", "lzcnt", "movbe"}) {
    std::set<std::string> others = features;
    others.erase(missing);
    EXPECT_EQ(CpuLevelOf(others), CpuLevel::kV2) << missing;
  }
  EXPECT_EQ(CpuLevelOf(features), CpuLevel::kV3);
  // A feature of a level that is not there as a whole.
  features.insert(kBf16Feature);
  EXPECT_EQ(CpuLevelOf(features), CpuLevel::kV3);
  features.merge(FeaturesUpTo(3));
  EXPECT_EQ(CpuLevelOf(features), CpuLevel::kV4Bf16);
  features.insert(kAmxFeature);
  EXPECT_EQ(CpuLevelOf(features), CpuLevel::kV4Bf16Amx);
  features.erase(kBf16Feature);
  EXPECT_EQ(CpuLevelOf(features), CpuLevel::kV4);
}

TEST(CpuLevel, NamesAreLevels) {
  for (std::string_view name : kCpuLevelNames) EXPECT_EQ(NameOf(*CpuLevelNamed(name)), name);
  EXPECT_EQ(CpuLevelNamed("x86-64"), std::nullopt);
}

TEST(CpuLimit, IsALevelThatTheMachineHas) {
  EXPECT_EQ(*ReadCpuLimit(nullptr, CpuLevel::kV4), std::nullopt);
  EXPECT_EQ(*ReadCpuLimit("", CpuLevel::kV4), std::nullopt);
  for (size_t machine = 0; machine < std::size(kCpuLevelNames); ++machine) {
    for (size_t asked = 0; asked < std::size(kCpuLevelNames); ++asked) {
      const auto limit = ReadCpuLimit(std::string(kCpuLevelNames[asked]).c_str(), static_cast<CpuLevel>(machine));
      ASSERT_EQ(limit.ok(), asked <= machine) << kCpuLevelNames[asked] << " " << kCpuLevelNames[machine];
      if (limit.ok()) EXPECT_EQ(*limit, static_cast<CpuLevel>(asked));
    }
  }
  const absl::Status above = ReadCpuLimit("x86-64-v4+avx512bf16+amx", CpuLevel::kV4Bf16).status();
  EXPECT_EQ(above.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(above.message(),
            "the environment's BOWLINE_TARGET_CPU='x86-64-v4+avx512bf16+amx' is more than this machine, which is "
            "'x86-64-v4+avx512bf16'; unset it, or set it to a level that this machine has");
  EXPECT_THAT(std::string(ReadCpuLimit("x86-64-v2", std::nullopt).status().message()),
              HasSubstr("which has less than 'x86-64-v2'"));
}

TEST(CpuLimit, UnknownLevelsListTheKnown) {
  for (const char* unknown : {"native", "x86-64", "x86-64-v3 ", "X86-64-V3", "znver4", "x86-64-v4+amx"}) {
    const absl::Status status = ReadCpuLimit(unknown, CpuLevel::kV4Bf16Amx).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << unknown;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("set it to one of x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4+avx512bf16, "
                          "x86-64-v4+avx512bf16+amx, or unset it"));
  }
}

TEST(CpuLimit, KernelsAreTheBestOfALevel) {
  using kernels::BestIsa;
  using kernels::Isa;
  using kernels::IsaOf;
  std::set<std::string> features = FeaturesUpTo(3);
  EXPECT_EQ(BestIsa(FeaturesUpTo(1)), IsaOf(CpuLevel::kV2));
  EXPECT_EQ(BestIsa(FeaturesUpTo(2)), IsaOf(CpuLevel::kV3));
  EXPECT_EQ(BestIsa(features), IsaOf(CpuLevel::kV4));
  features.insert(kBf16Feature);
  EXPECT_EQ(BestIsa(features), IsaOf(CpuLevel::kV4Bf16));
  features.insert(kAmxFeature);
  EXPECT_EQ(BestIsa(features), IsaOf(CpuLevel::kV4Bf16Amx));
  EXPECT_EQ(IsaOf(CpuLevel::kV2), Isa::kBaseline);
  EXPECT_EQ(IsaOf(CpuLevel::kV4Bf16Amx), kernels::kBestIsa);
}

// Each in a process of its own, which reads the environment anew.
class CpuLimitDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void ExitWithIsaUnder(const char* limit) {
    setenv(kCpuLimitVariable, limit, 1);
    std::_Exit(static_cast<int>(kernels::ActiveIsa()));
  }
};

TEST_F(CpuLimitDeathTest, IsaFollowsTheEnvironment) {
  const std::optional<CpuLevel> machine = CpuLevelOf(HostFeatures());
  for (size_t level = 0; machine.has_value() && level <= static_cast<size_t>(*machine); ++level) {
    const kernels::Isa expected = kernels::IsaOf(static_cast<CpuLevel>(level));
    EXPECT_EXIT(ExitWithIsaUnder(std::string(kCpuLevelNames[level]).c_str()),
                ::testing::ExitedWithCode(static_cast<int>(expected)), "");
  }
}

TEST_F(CpuLimitDeathTest, NoKernelIsCreatedUnderAnUnknownLimit) {
  EXPECT_EXIT(
      {
        setenv(kCpuLimitVariable, "znver4", 1);
        const absl::Status status = kernels::CreateKernel({"fill", {}, {}, 1}).status();
        fputs(std::string(status.message()).c_str(), stderr);
        std::_Exit(1);
      },
      ::testing::ExitedWithCode(1), "BOWLINE_TARGET_CPU='znver4' is no level of processors");
}

}  // namespace
}  // namespace bowline
