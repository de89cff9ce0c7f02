#include "kernels/cpu/isa/flush_subnormals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel/team.h"
#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/matmul_problem.h"

#if defined(__x86_64__)

namespace bowline::kernels::testing {
namespace {

constexpr float kSmallestNormal = std::numeric_limits<float>::min();

// Multiplied at run time.
bool Flushes() {
  volatile float normal = kSmallestNormal, subnormal = kSmallestNormal / 4, half = 0.5f, large = 0x1p100f;
  return normal * half == 0 && subnormal * large == 0;
}

TEST(FlushSubnormals, AsLongAsItLives) {
  const uint32_t before = FloatSettings();
  ASSERT_FALSE(Flushes());
  {
    const FlushSubnormals flush;
    EXPECT_TRUE(Flushes());
    {
      const FlushSubnormals again;
      EXPECT_TRUE(Flushes());
    }
    EXPECT_TRUE(Flushes());
  }
  EXPECT_FALSE(Flushes());
  EXPECT_EQ(FloatSettings(), before);
}

TEST(FlushSubnormals, KeepsHowTheCallerRounds) {
  const uint32_t before = FloatSettings(), up = before | 0x4000;
  SetFloatSettings(up);
  {
    const FlushSubnormals flush;
    EXPECT_EQ(FloatSettings() & 0x6000u, 0x4000u);
  }
  const uint32_t after = FloatSettings();
  SetFloatSettings(before);
  EXPECT_EQ(after, up);
}

// Or bits would say who computed them.
TEST(FlushSubnormals, HelpersComputeAsTheirCaller) {
  Team team(2);
  const auto helper_flushes = [&] {
    std::atomic<int> arrived = 0;
    bool flushes = false;
    team.Run(2, {2, 2}, [&](int member, int64_t, int64_t) {
      for (++arrived; arrived < 2;) {
      }
      if (member == 1) flushes = Flushes();
    });
    return flushes;
  };
  EXPECT_FALSE(helper_flushes());
  {
    const FlushSubnormals flush;
    EXPECT_TRUE(helper_flushes());
  }
  EXPECT_FALSE(helper_flushes());
}

TEST(FlushSubnormals, ProductsOfSubnormalNumbersAreZeros) {
  const int64_t m = 37, n = 41, k = 29;
  Floats a(m * k, 0x1p-130f), b(k * n, 0x1p20f), c(m * n, NAN);
  const Signature product = Dense(1, m, n, k).Sign(/*threads=*/2);
  RunKernel(product, {a.data(), b.data(), c.data()});
  EXPECT_THAT(c, ::testing::Each(static_cast<float>(k) * 0x1p-110f));
  {
    const FlushSubnormals flush;
    RunKernel(product, {a.data(), b.data(), c.data()});
  }
  EXPECT_THAT(c, ::testing::Each(0.0f));
}

// Attention whose probabilities and gradients reach from 1 down to where f32 ends. Flushed values are below the
// smallest normal number, so the reference, which computes in f64 and flushes nothing, is as near as it was.
TEST(FlushSubnormals, AttentionStaysNearItsReference) {
  const reference::AttentionSize size = {2, 48, 48, 2, 2, 16, true, 1.0};
  const int64_t elements = size.batch * size.queries * size.heads * size.head_dim;
  std::mt19937_64 random(5);
  Floats q = RandomFloats(random, elements, 6), k = RandomFloats(random, elements, 6),
         v = RandomFloats(random, elements), dout = RandomFloats(random, elements, 1e-5f);
  const std::vector<int64_t> shape = {size.batch, size.queries, size.heads, size.head_dim};
  const std::vector<int64_t> rows = {size.batch, size.heads, size.queries};
  const std::vector<Attribute> attributes = {Int("causal", 1), Float("scale", 1.0)};
  const Signature forward = {
      "attention_forward", attributes, {In(shape), In(shape), In(shape), Out(shape), Out(rows)}, 2};
  const Signature backward = {
      "attention_backward",
      attributes,
      {In(shape), In(shape), In(shape), In(shape), In(rows), In(shape), Out(shape), Out(shape), Out(shape)},
      2};
  const auto run = [&](Floats& out, Floats& dq, Floats& dk, Floats& dv) {
    Floats lse(size.batch * size.heads * size.queries, NAN);
    out = dq = dk = dv = Floats(elements, NAN);
    RunKernel(forward, {q.data(), k.data(), v.data(), out.data(), lse.data()});
    RunKernel(backward,
              {q.data(), k.data(), v.data(), out.data(), lse.data(), dout.data(), dq.data(), dk.data(), dv.data()});
  };
  Floats plain[4], flushed[4];
  run(plain[0], plain[1], plain[2], plain[3]);
  {
    const FlushSubnormals flush;
    run(flushed[0], flushed[1], flushed[2], flushed[3]);
  }
  const auto expected = reference::Attention(size, ToDouble(q), ToDouble(k), ToDouble(v));
  const auto gradients = reference::AttentionBackward(size, ToDouble(q), ToDouble(k), ToDouble(v), ToDouble(dout));
  int subnormal = 0;
  for (const Floats& result : plain) {
    for (float x : result) subnormal += std::fpclassify(x) == FP_SUBNORMAL;
  }
  EXPECT_GT(subnormal, 0) << "nothing reaches so far down";
  const reference::Tensor* references[] = {&expected.out, &gradients.dq, &gradients.dk, &gradients.dv};
  // A sum of at most `keys` terms, each flushed at most four times and then multiplied by at most 6.
  const double most = 4. * static_cast<double>(size.keys) * 6 * kSmallestNormal;
  for (int i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < elements; ++j) {
      const double before = std::abs(plain[i][j] - (*references[i])[j]);
      const double after = std::abs(flushed[i][j] - (*references[i])[j]);
      ASSERT_LE(after, before + most) << "result " << i << ", element " << j;
      ASSERT_NE(std::fpclassify(flushed[i][j]), FP_SUBNORMAL) << "result " << i << ", element " << j;
    }
  }
}

}  // namespace
}  // namespace bowline::kernels::testing

#endif
