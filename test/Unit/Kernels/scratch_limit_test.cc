// A plan from a machine without AMX gives kernels as little scratch as they need there. They do with it.

#include "kernels/cpu/isa/isa.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

size_t ScratchOf(const Signature& signature) {
  auto kernel = CreateKernel(signature);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? (*kernel)->ScratchBytes() : 0;
}

class ScratchLimit : public ::testing::Test {
 protected:
  void SetUp() override {
    LimitIsaForTesting(Isa::kAvx512Bf16);
    if (ActiveIsa() != Isa::kAvx512Bf16) GTEST_SKIP() << "this machine has no AVX512-BF16";
  }
  void TearDown() override { LimitIsaForTesting(kBestIsa); }

  // `buffers` holds the arguments' bytes; outputs must be equal.
  static void ExpectSameAsWithoutAmx(Signature signature, std::vector<std::vector<uint16_t>> buffers) {
    const auto run = [&] {
      auto x = buffers;
      std::vector<void*> arguments;
      for (auto& buffer : x) arguments.push_back(buffer.data());
      RunKernel(signature, arguments);
      return x;
    };
    LimitIsaForTesting(Isa::kAvx512Bf16);
    const size_t limit = ScratchOf(signature);
    const auto expected = run();
    LimitIsaForTesting(kBestIsa);
    if (ActiveIsa() == Isa::kAmx) EXPECT_GT(ScratchOf(signature), limit) << "the limit would change nothing";
    signature.scratch_limit = limit;
    EXPECT_EQ(ScratchOf(signature), limit);
    EXPECT_EQ(run(), expected);
  }
};

std::vector<uint16_t> RandomHalves(std::mt19937_64& random, int64_t count) {
  std::vector<uint16_t> x(count);
  for (uint16_t& value : x) value = static_cast<uint16_t>((random() & 0x807F) | (119 + random() % 9) << 7);
  return x;
}

TEST_F(ScratchLimit, Products) {
  std::mt19937_64 random(51);
  const int64_t m = 300, n = 200, k = 500;
  const Signature signature = {"matmul",
                               {Int("batch", 1), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {0, k, 1}),
                                Ints("b_strides", {0, n, 1}), Ints("c_strides", {0, n, 1})},
                               {In({m, k}, DType::kBF16), In({k, n}, DType::kBF16), Out({m, n}, DType::kBF16)},
                               2};
  ExpectSameAsWithoutAmx(signature,
                         {RandomHalves(random, m * k), RandomHalves(random, k * n), std::vector<uint16_t>(m * n)});
}

// In halves of f32, which are bf16 numbers with 16 bits more.
TEST_F(ScratchLimit, ProductsOfF32) {
  std::mt19937_64 random(53);
  for (const int64_t k : {64, 500, 1603}) {
    for (const bool packed : {false, true}) {
      const int64_t m = 300, n = 240;
      Signature signature = {"matmul",
                             {Int("batch", 1), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {0, k, 1}),
                              Ints("c_strides", {0, n, 1}), Int("bf16x6", 1)},
                             {In({m, k}), In({k, n}), Out({m, n})},
                             2};
      signature.attributes.push_back(packed ? Int("b_packed", 1) : Ints("b_strides", {0, n, 1}));
      ExpectSameAsWithoutAmx(signature, {RandomHalves(random, 2 * m * k), RandomHalves(random, 2 * k * n),
                                         std::vector<uint16_t>(2 * m * n)});
    }
  }
}

TEST_F(ScratchLimit, Attention) {
  std::mt19937_64 random(52);
  const std::vector<int64_t> shape = {1, 200, 3, 64};
  const int64_t count = Count(shape), rows = 3 * 200;
  const TensorSpec in = In(shape, DType::kBF16), out = Out(shape, DType::kBF16);
  const std::vector<Attribute> attributes = {Int("causal", 1), Float("scale", 0.125)};
  const Signature forward = {"attention_forward", attributes, {in, in, in, out, Out({1, 3, 200})}, 2};
  const auto q = RandomHalves(random, count), k = RandomHalves(random, count), v = RandomHalves(random, count);
  ExpectSameAsWithoutAmx(forward, {q, k, v, std::vector<uint16_t>(count), std::vector<uint16_t>(2 * rows)});

  auto x = std::vector{q, k, v, std::vector<uint16_t>(count), std::vector<uint16_t>(2 * rows)};
  RunKernel(forward, {x[0].data(), x[1].data(), x[2].data(), x[3].data(), x[4].data()});
  x.push_back(RandomHalves(random, count));
  x.resize(9, std::vector<uint16_t>(count));
  ExpectSameAsWithoutAmx({"attention_backward", attributes, {in, in, in, in, In({1, 3, 200}), in, out, out, out}, 2},
                         x);
}

}  // namespace
}  // namespace bowline::kernels::testing
