#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

TEST(Registry, IsOrderedAndDescribed) {
  const auto kernels = AllKernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i > 0) EXPECT_LT(kernels[i - 1].name, kernels[i].name);
    EXPECT_FALSE(kernels[i].summary.empty()) << kernels[i].name;
    EXPECT_EQ(FindKernel(kernels[i].name).value(), &kernels[i]);
  }
}

TEST(Registry, UnknownNamesListTheKnown) {
  const auto missing = FindKernel("matmull");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              ::testing::HasSubstr("paged_attention, quantized_gather, quantized_matmul, random_normal"));
}

TEST(Registry, EveryKernelRefusesAnEmptySignature) {
  for (const KernelDefinition& kernel : AllKernels()) {
    EXPECT_EQ(CreateKernel({std::string(kernel.name), {}, {}, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(DTypes, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kF64), 8u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_EQ(NameOf(DType::kBool), "bool");
  EXPECT_EQ(NameOf(static_cast<DType>(200)), "type 200");
}

TEST(Signatures, AttributesOfTheWrongKind) {
  const Signature s{"fill", {Float("f", 1), Ints("i", {1, 2})}, {}, 1};
  EXPECT_FALSE(s.Int("f").ok());
  EXPECT_FALSE(s.Int("i").ok());
  EXPECT_FALSE(s.Float("i").ok());
  EXPECT_FALSE(s.Ints("f").ok());
  EXPECT_EQ(s.Ints("i").value(), (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace bowline::kernels::testing
