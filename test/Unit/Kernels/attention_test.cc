#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

using reference::AttentionSize;

struct Inputs {
  Floats q, k, v, dout;
};

struct Result {
  Floats out, lse, dq, dk, dv;
};

Inputs RandomInputs(std::mt19937_64& random, const AttentionSize& s, float magnitude = 1.0f) {
  const int64_t q = s.batch * s.queries * s.heads * s.head_dim, k = s.batch * s.keys * s.kv_heads * s.head_dim;
  return {RandomFloats(random, q, magnitude), RandomFloats(random, k, magnitude), RandomFloats(random, k),
          RandomFloats(random, q)};
}

Signature ForwardSignature(const AttentionSize& s, int threads) {
  const std::vector<int64_t> q = {s.batch, s.queries, s.heads, s.head_dim},
                             k = {s.batch, s.keys, s.kv_heads, s.head_dim};
  return {"attention_forward",
          {Int("causal", s.causal), Float("scale", s.scale)},
          {In(q), In(k), In(k), Out(q), Out({s.batch, s.heads, s.queries})},
          threads};
}

Signature BackwardSignature(const AttentionSize& s, int threads) {
  const std::vector<int64_t> q = {s.batch, s.queries, s.heads, s.head_dim},
                             k = {s.batch, s.keys, s.kv_heads, s.head_dim};
  return {"attention_backward",
          {Int("causal", s.causal), Float("scale", s.scale)},
          {In(q), In(k), In(k), In(q), In({s.batch, s.heads, s.queries}), In(q), Out(q), Out(k), Out(k)},
          threads};
}

Result Attend(const AttentionSize& s, Inputs x, int threads) {
  Result r{Floats(x.q.size(), NAN), Floats(s.batch * s.heads * s.queries, NAN), Floats(x.q.size(), NAN),
           Floats(x.k.size(), NAN), Floats(x.v.size(), NAN)};
  RunKernel(ForwardSignature(s, threads), {x.q.data(), x.k.data(), x.v.data(), r.out.data(), r.lse.data()});
  RunKernel(BackwardSignature(s, threads), {x.q.data(), x.k.data(), x.v.data(), r.out.data(), r.lse.data(),
                                            x.dout.data(), r.dq.data(), r.dk.data(), r.dv.data()});
  return r;
}

void CheckAgainstReference(std::mt19937_64& random, const AttentionSize& s, int threads, float magnitude = 1.0f) {
  SCOPED_TRACE(::testing::Message() << "B " << s.batch << " S " << s.queries << " T " << s.keys << " H " << s.heads
                                    << " KV " << s.kv_heads << " D " << s.head_dim << " causal " << s.causal);
  const Inputs x = RandomInputs(random, s, magnitude);
  const auto q = ToDouble(x.q), k = ToDouble(x.k), v = ToDouble(x.v);
  const auto forward = reference::Attention(s, q, k, v);
  const auto backward = reference::AttentionBackward(s, q, k, v, ToDouble(x.dout));
  const Result r = Attend(s, x, threads);
  EXPECT_LE(ScaledError(r.out, forward.out), 1e-5);
  EXPECT_LE(ScaledError(r.lse, forward.lse), 1e-5);
  EXPECT_LE(ScaledError(r.dq, backward.dq), 1e-5);
  EXPECT_LE(ScaledError(r.dk, backward.dk), 1e-5);
  EXPECT_LE(ScaledError(r.dv, backward.dv), 1e-5);
}

using AttentionTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, AttentionTest, AllIsas(), IsaName);

TEST_P(AttentionTest, AgreesWithReferenceAtManyLengths) {
  std::mt19937_64 random(1);
  for (int64_t length : {1, 17, 128, 1024}) {
    for (bool causal : {false, true}) {
      CheckAgainstReference(random, {1, length, length, 2, 1, 32, causal, 1 / std::sqrt(32.0)}, 2);
    }
  }
}

TEST_P(AttentionTest, AgreesWithReferenceOnRandomShapes) {
  std::mt19937_64 random(2);
  const std::vector<int64_t> dims = {1, 3, 8, 16, 31, 64, 80, 128};
  for (int i = 0; i < 60; ++i) {
    AttentionSize s{};
    s.batch = 1 + random() % 3;
    s.queries = 1 + random() % 150;
    s.keys = s.queries + (i % 3 == 0 ? random() % 150 : 0);
    s.kv_heads = 1 + random() % 3;
    s.heads = s.kv_heads * (1 + random() % 3);
    s.head_dim = dims[random() % dims.size()];
    s.causal = random() % 2;
    if (!s.causal && i % 5 == 0) s.keys = 1 + random() % s.queries;
    s.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    CheckAgainstReference(random, s, 1 + i % 3);
  }
}

TEST_P(AttentionTest, SharpDistributions) {
  // Scores in the hundreds: the running maximum must keep every exponential in range.
  std::mt19937_64 random(3);
  const AttentionSize s = {1, 70, 300, 2, 2, 16, false, 1.0};
  Inputs x = RandomInputs(random, s, 10.0f);
  const auto expected = reference::Attention(s, ToDouble(x.q), ToDouble(x.k), ToDouble(x.v));
  const Result r = Attend(s, x, 1);
  // A score of magnitude 500 carries an f32 rounding error of 3e-5, which becomes a relative error of each probability.
  EXPECT_LE(ScaledError(r.out, expected.out), 1e-4);
  EXPECT_LE(ScaledError(r.lse, expected.lse), 1e-6);
}

TEST_P(AttentionTest, SameBitsForEveryNumberOfThreads) {
  std::mt19937_64 random(4);
  const AttentionSize s = {3, 77, 201, 6, 3, 40, true, 0.15};
  const Inputs x = RandomInputs(random, s);
  const Result one = Attend(s, x, 1);
  for (int threads : {2, 5}) {
    const Result many = Attend(s, x, threads);
    EXPECT_TRUE(SameBits(one.out, many.out) && SameBits(one.lse, many.lse));
    EXPECT_TRUE(SameBits(one.dq, many.dq) && SameBits(one.dk, many.dk) && SameBits(one.dv, many.dv));
  }
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  std::mt19937_64 random(5);
  for (bool causal : {false, true}) {
    const AttentionSize s = {1, 3, 5, 4, 2, 3, causal, 0.7};
    const Inputs x = RandomInputs(random, s);
    std::vector<double> q = ToDouble(x.q), k = ToDouble(x.k), v = ToDouble(x.v);
    const std::vector<double> dout = ToDouble(x.dout);
    const auto gradients = reference::AttentionBackward(s, q, k, v, dout);
    const auto loss = [&] {
      const auto result = reference::Attention(s, q, k, v);
      double sum = 0;
      for (size_t i = 0; i < dout.size(); ++i) sum += result.out[i] * dout[i];
      return sum;
    };
    const auto check = [&](std::vector<double>& input, const std::vector<double>& gradient) {
      for (size_t i = 0; i < input.size(); ++i) {
        const double value = input[i], step = 1e-5;
        input[i] = value + step;
        const double above = loss();
        input[i] = value - step;
        const double below = loss();
        input[i] = value;
        EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-9);
      }
    };
    check(q, gradients.dq);
    check(k, gradients.dk);
    check(v, gradients.dv);
  }
}

TEST(AttentionRefusals, EverythingUnsafe) {
  const AttentionSize good = {2, 3, 5, 4, 2, 8, true, 0.5};
  ASSERT_TRUE(CreateKernel(ForwardSignature(good, 1)).ok());
  ASSERT_TRUE(CreateKernel(BackwardSignature(good, 1)).ok());
  AttentionSize uneven = good;
  uneven.kv_heads = 3;
  ExpectRefused(ForwardSignature(uneven, 1), "must be a multiple");
  ExpectRefused(BackwardSignature(uneven, 1), "must be a multiple");
  AttentionSize blind = good;
  blind.keys = 2;
  ExpectRefused(ForwardSignature(blind, 1), "would see nothing");
  for (Signature s : {ForwardSignature(good, 1), BackwardSignature(good, 1)}) {
    for (size_t i = 0; i < s.arguments.size(); ++i) {
      Signature bad = s;
      ++bad.arguments[i].shape.back();
      EXPECT_FALSE(CreateKernel(bad).ok()) << i;
      bad = s;
      bad.arguments[i].shape.pop_back();
      ExpectRefused(bad, "is needed");
      bad = s;
      bad.arguments[i].dtype = DType::kF16;
      ExpectRefused(bad, "only f32");
    }
    Signature bad = s;
    bad.attributes[0].ints = {2};
    ExpectRefused(bad, "'causal' must be 0 or 1");
    bad.attributes = s.attributes;
    bad.attributes[1].floats = {NAN};
    ExpectRefused(bad, "must be finite");
    bad.attributes.pop_back();
    ExpectRefused(bad, "'scale' is missing");
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
