// Properties that targets state of themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "kernels/cpu/isa/isa.h"
#include "targets/target.h"

namespace bowline::targets {
namespace {

using kernels::Access;
using kernels::DType;
using kernels::Isa;
using kernels::Signature;
using ::testing::HasSubstr;

Signature Matmul(int64_t m, int64_t n, int64_t k, DType type) {
  return {"matmul",
          {{"batch", {1}, {}, {}},
           {"m", {m}, {}, {}},
           {"n", {n}, {}, {}},
           {"k", {k}, {}, {}},
           {"a_strides", {0, k, 1}, {}, {}},
           {"b_strides", {0, n, 1}, {}, {}},
           {"c_strides", {0, n, 1}, {}, {}}},
          {{Access::kRead, type, {m, k}}, {Access::kRead, type, {k, n}}, {Access::kWrite, DType::kF32, {m, n}}},
          2};
}

const Target& Cpu() { return DefaultTarget(); }

TEST(Targets, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const Target* target : AllTargets()) {
    EXPECT_TRUE(names.insert(target->name).second) << target->name;
    EXPECT_EQ(FindTarget(target->name).value(), target);
  }
  EXPECT_EQ(DefaultTarget().name, "cpu");
  const absl::Status unknown = FindTarget("abacus").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  for (const std::string_view name : names) EXPECT_THAT(std::string(unknown.message()), HasSubstr(std::string(name)));
}

// Every target refuses a new attribute of a signature that it does not compute; none ignores it.
TEST(Targets, RefuseAnAttributeThatNobodyComputes) {
  const Signature fill = {"fill", {{"value", {}, {1}, {}}}, {{Access::kWrite, DType::kF32, {8}}}};
  const Signature scatter = {
      "scatter_add_rows",
      {},
      {{Access::kRead, DType::kF32, {4, 3}}, {Access::kRead, DType::kI32, {4}}, {Access::kWrite, DType::kF32, {5, 3}}}};
  for (const Target* target : AllTargets()) {
    for (Signature signature : {Matmul(4, 5, 6, DType::kF32), fill, scatter}) {
      SCOPED_TRACE(std::string(target->name) + ", " + signature.kernel);
      EXPECT_TRUE(target->needs(signature, target->levels.names.front()).ok());
      signature.attributes.push_back({"tilt", {1}, {}, {}});
      const absl::Status status = target->needs(signature, target->levels.names.front()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("attribute 'tilt'"));
    }
  }
}

TEST(Targets, SayWhatPassesCanUse) {
  for (const Target* target : AllTargets()) {
    SCOPED_TRACE(target->name);
    EXPECT_GE(target->alignment, 64);
    EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(target->alignment)));
    EXPECT_FALSE(target->levels.names.empty());
    EXPECT_FALSE(target->levels.flag.empty());
    EXPECT_THAT(target->computed_types, ::testing::Contains(DType::kF32));
    for (const std::string_view kernel : {"", "matmul", "attention_forward", "no_kernel"}) {
      for (const Access access : {Access::kRead, Access::kWrite, Access::kReadWrite}) {
        const int64_t alignment = target->argument_alignment(kernel, access);
        EXPECT_TRUE(alignment == 0 || std::has_single_bit(static_cast<uint64_t>(alignment))) << kernel;
        EXPECT_LE(alignment, target->alignment) << kernel;
      }
    }
    EXPECT_GT(target->loss_tile_bytes, 0);
    EXPECT_GT(target->column_sum_blocks, 0);
    EXPECT_EQ(target->costs("no level").flops, target->costs(target->levels.names[0]).flops);
    for (const std::string_view level : target->levels.names) {
      const Costs costs = target->costs(level);
      EXPECT_GT(costs.flops, 0) << level;
      EXPECT_GT(costs.bytes, 0) << level;
      EXPECT_GT(costs.command_seconds, 0) << level;
      EXPECT_TRUE(costs.link.emulated()) << level;
      for (const DType type : target->computed_types) {
        EXPECT_TRUE(target->needs(Matmul(64, 64, 64, type), level).ok()) << level << ", " << NameOf(type);
      }
      const absl::Status unknown = target->needs({"no_kernel", {}, {}}, level).status();
      EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound) << unknown;
      Signature wrong = Matmul(64, 64, 64, DType::kF32);
      wrong.arguments.pop_back();
      EXPECT_EQ(target->needs(wrong, level).status().code(), absl::StatusCode::kInvalidArgument) << level;
    }
  }
}

// A plan for a level runs on every processor from that level on: kernels there never want more than it gives them.
TEST(Targets, WorkspaceOfALevelIsEnoughForBetterProcessors) {
  constexpr Isa kWorst[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAvx512Bf16};
  ASSERT_EQ(Cpu().levels.names.size(), std::size(kWorst));
  for (size_t i = 0; i < std::size(kWorst); ++i) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const int64_t size : {1, 7, 48, 130, 400, 1000}) {
        Signature signature = Matmul(size, 2 * size, 3 * size, type);
        const size_t given = Cpu().needs(signature, Cpu().levels.names[i]).value().scratch_bytes;
        signature.scratch_limit = given;
        for (Isa isa = kWorst[i]; isa <= kernels::kBestIsa; isa = static_cast<Isa>(static_cast<int>(isa) + 1)) {
          kernels::LimitIsaForTesting(isa);
          // This machine lacks the set: its kernels are those of another one, and plans above its level are refused.
          if (kernels::ActiveIsa() != isa) continue;
          const auto kernel = kernels::CreateKernel(signature);
          ASSERT_TRUE(kernel.ok()) << kernel.status();
          EXPECT_LE((*kernel)->ScratchBytes(), given) << Cpu().levels.names[i] << ", size " << size;
        }
        kernels::LimitIsaForTesting(kernels::kBestIsa);
      }
    }
  }
}

TEST(Targets, Bf16IsPackedWhereEveryProcessorOfTheLevelCan) {
  const Packing& packing = Cpu().packing.value();
  EXPECT_EQ(packing.elements(70, 200, DType::kF32, "x86-64-v2"), 70 * 240);
  EXPECT_EQ(packing.elements(70, 200, DType::kBF16, "x86-64-v4"), std::nullopt);
  EXPECT_EQ(packing.elements(70, 200, DType::kBF16, "x86-64-v4+avx512bf16"), 96 * 240);
  EXPECT_EQ(packing.elements(70, 200, DType::kF16, "x86-64-v4+avx512bf16"), std::nullopt);
  EXPECT_EQ(packing.elements(70, 200, DType::kI32, "x86-64-v4+avx512bf16"), std::nullopt);
}

// Code reads elements at any address but in attention, and may write whole cache lines; cards take the alignment of
// their own allocations.
TEST(Targets, SayWhichAddressesKernelsTake) {
  EXPECT_EQ(Cpu().argument_alignment("matmul", Access::kRead), 0);
  EXPECT_EQ(Cpu().argument_alignment("", Access::kRead), 0);
  EXPECT_EQ(Cpu().argument_alignment("attention_forward", Access::kRead), 64);
  EXPECT_EQ(Cpu().argument_alignment("attention_backward", Access::kRead), 64);
  EXPECT_EQ(Cpu().argument_alignment("", Access::kWrite), 64);
  EXPECT_EQ(Cpu().argument_alignment("matmul", Access::kReadWrite), 64);
  const Target& card = *FindTarget("cuda").value();
  EXPECT_EQ(card.argument_alignment("matmul", Access::kRead), 256);
  EXPECT_EQ(card.alignment, 256);
}

}  // namespace
}  // namespace bowline::targets
