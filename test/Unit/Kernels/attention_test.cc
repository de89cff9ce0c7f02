#include "kernels/cpu/attention/attention_division.h"
#include "kernels/reference/reference.h"
#include "kernels/signatures/attention_signature.h"
#include "test/Unit/Kernels/attention_bounds.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

using reference::AttentionSize;

struct Inputs {
  Stored q, k, v, dout;
};

struct Result {
  Stored out;
  Floats lse;
  Stored dq, dk, dv;

  friend bool operator==(const Result& a, const Result& b) {
    return a.out == b.out && SameBits(a.lse, b.lse) && a.dq == b.dq && a.dk == b.dk && a.dv == b.dv;
  }
};

struct Expected {
  reference::AttentionOutput forward;
  reference::AttentionGradients backward;
};

int64_t QueryElements(const AttentionSize& s) { return s.batch * s.queries * s.heads * s.head_dim; }
int64_t KeyElements(const AttentionSize& s) { return s.batch * s.keys * s.kv_heads * s.head_dim; }

Inputs RandomInputs(std::mt19937_64& random, const AttentionSize& s, DType dtype, float magnitude = 1.0f) {
  return {RandomStored(random, dtype, QueryElements(s), magnitude),
          RandomStored(random, dtype, KeyElements(s), magnitude), RandomStored(random, dtype, KeyElements(s)),
          RandomStored(random, dtype, QueryElements(s))};
}

std::vector<Attribute> Attributes(const AttentionSize& s) {
  std::vector<Attribute> attributes = {Int("causal", s.causal), Float("scale", s.scale)};
  if (s.window != 0) attributes.push_back(Int("window", s.window));
  return attributes;
}

Signature ForwardSignature(const AttentionSize& s, int threads, DType dtype = DType::kF32) {
  const std::vector<int64_t> q = {s.batch, s.queries, s.heads, s.head_dim},
                             k = {s.batch, s.keys, s.kv_heads, s.head_dim};
  return {"attention_forward",
          Attributes(s),
          {In(q, dtype), In(k, dtype), In(k, dtype), Out(q, dtype), Out({s.batch, s.heads, s.queries})},
          threads};
}

Signature BackwardSignature(const AttentionSize& s, int threads, DType dtype = DType::kF32) {
  const std::vector<int64_t> q = {s.batch, s.queries, s.heads, s.head_dim},
                             k = {s.batch, s.keys, s.kv_heads, s.head_dim};
  return {"attention_backward",
          Attributes(s),
          {In(q, dtype), In(k, dtype), In(k, dtype), In(q, dtype), In({s.batch, s.heads, s.queries}), In(q, dtype),
           Out(q, dtype), Out(k, dtype), Out(k, dtype)},
          threads};
}

Result Attend(const AttentionSize& s, DType dtype, Inputs x, int threads) {
  Result r{Unwritten(dtype, QueryElements(s)), Floats(s.batch * s.heads * s.queries, NAN),
           Unwritten(dtype, QueryElements(s)), Unwritten(dtype, KeyElements(s)), Unwritten(dtype, KeyElements(s))};
  RunKernel(ForwardSignature(s, threads, dtype), {x.q.data(), x.k.data(), x.v.data(), r.out.data(), r.lse.data()});
  RunKernel(BackwardSignature(s, threads, dtype), {x.q.data(), x.k.data(), x.v.data(), r.out.data(), r.lse.data(),
                                                   x.dout.data(), r.dq.data(), r.dk.data(), r.dv.data()});
  return r;
}

Expected Reference(const AttentionSize& s, const Inputs& x) {
  const auto q = x.q.Doubles(), k = x.k.Doubles(), v = x.v.Doubles();
  return {reference::Attention(s, q, k, v), reference::AttentionBackward(s, q, k, v, x.dout.Doubles())};
}

void ExpectAgreement(const AttentionSize& s, DType dtype, const Inputs& x, const Result& r, const Expected& expected) {
  SCOPED_TRACE(::testing::Message() << "B " << s.batch << " S " << s.queries << " T " << s.keys << " H " << s.heads
                                    << " KV " << s.kv_heads << " D " << s.head_dim << " causal " << s.causal
                                    << " window " << s.window << " " << NameOf(dtype) << " ISA "
                                    << static_cast<int>(ActiveIsa()));
  AttentionBounds bounds;
  if (dtype == DType::kBF16) {
    const AttentionShape shape = *ParseAttentionForward(ForwardSignature(s, 1, dtype));
    const bool rounds = AttentionIsForAmx(shape, ActiveIsa()) || AttentionPrefersPairs(shape, ActiveIsa());
    bounds = BoundAttention(s, rounds, x.q.Doubles(), x.k.Doubles(), x.v.Doubles(), x.dout.Doubles(), expected.forward);
  }
  EXPECT_LE(ScaledError(r.lse, expected.forward.lse), 1e-5);
  ExpectWithin("out", dtype, r.out, expected.forward.out, bounds.out);
  ExpectWithin("dq", dtype, r.dq, expected.backward.dq, bounds.dq);
  ExpectWithin("dk", dtype, r.dk, expected.backward.dk, bounds.dk);
  ExpectWithin("dv", dtype, r.dv, expected.backward.dv, bounds.dv);
}

void CheckAgainstReference(std::mt19937_64& random, const AttentionSize& s, int threads, DType dtype) {
  const Inputs x = RandomInputs(random, s, dtype);
  ExpectAgreement(s, dtype, x, Attend(s, dtype, x, threads), Reference(s, x));
}

using AttentionTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, AttentionTest, AllIsas(), IsaName);

TEST_P(AttentionTest, AgreesWithReferenceOnRandomShapes) {
  std::mt19937_64 random(2);
  const std::vector<int64_t> dims = {1, 3, 8, 16, 20, 31, 33, 64, 80, 128, 129};
  for (int i = 0; i < 80; ++i) {
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
    CheckAgainstReference(random, s, 1 + i % 3, i % 2 == 0 ? DType::kBF16 : DType::kF32);
  }
}

TEST_P(AttentionTest, GroupedHeadsOfOddSizes) {
  std::mt19937_64 random(6);
  for (int64_t group : {1, 3, 8}) {
    for (int64_t head_dim : {7, 33, 65}) {
      for (bool causal : {false, true}) {
        const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
        for (DType dtype : {DType::kF32, DType::kBF16}) {
          CheckAgainstReference(random, {1, 37, 91, 2 * group, 2, head_dim, causal, scale}, 2, dtype);
        }
      }
    }
  }
}

// Windows that begin and end inside of tiles, strips and blocks, of 1 key, and of as many as there are or more.
TEST_P(AttentionTest, WindowsAgreeWithReference) {
  std::mt19937_64 random(9);
  const std::vector<int64_t> windows = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 130, 200};
  const std::vector<int64_t> dims = {1, 3, 16, 31, 33, 64, 80};
  for (int i = 0; i < 90; ++i) {
    AttentionSize s{};
    s.batch = 1 + random() % 2;
    s.queries = 1 + random() % 210;
    s.keys = s.queries + (i % 3 == 0 ? random() % 150 : 0);
    // One key head for more threads than that: keys and queries are differentiated apart.
    s.kv_heads = i % 4 == 0 ? 1 : 1 + random() % 2;
    s.heads = s.kv_heads * (1 + random() % 2);
    s.head_dim = dims[random() % dims.size()];
    s.causal = true;
    s.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    s.window = i % 10 == 0 ? s.keys - 1 + random() % 3 : windows[random() % windows.size()];
    s.window = std::max<int64_t>(s.window, 1);
    CheckAgainstReference(random, s, 1 + i % 3, i % 2 == 0 ? DType::kBF16 : DType::kF32);
  }
}

TEST_P(AttentionTest, WindowOfOneKeyIsItsValue) {
  std::mt19937_64 random(10);
  const AttentionSize s = {2, 70, 90, 2, 2, 20, true, 0.3, 1};
  const Inputs x = RandomInputs(random, s, DType::kF32);
  const Result r = Attend(s, DType::kF32, x, 2);
  const Floats out = r.out.Values(), v = x.v.Values(), dv = r.dv.Values(), dout = x.dout.Values();
  const int64_t row = s.heads * s.head_dim;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t j = 0; j < s.keys; ++j) {
      const int64_t query = j - (s.keys - s.queries);
      for (int64_t d = 0; d < row; ++d) {
        const int64_t key_at = (b * s.keys + j) * row + d, query_at = (b * s.queries + query) * row + d;
        if (query >= 0) {
          EXPECT_NEAR(out[query_at], v[key_at], 1e-6);
          EXPECT_NEAR(dv[key_at], dout[query_at], 1e-6);
        } else {
          EXPECT_EQ(dv[key_at], 0.0f);
        }
      }
    }
  }
}

TEST_P(AttentionTest, WindowOfAllKeysChangesNoBit) {
  std::mt19937_64 random(11);
  AttentionSize s = {2, 77, 201, 6, 3, 40, true, 0.15};
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Inputs x = RandomInputs(random, s, dtype);
    s.window = 0;
    const Result whole = Attend(s, dtype, x, 2);
    for (int64_t window : {s.keys, s.keys + 1, int64_t{1} << 40, INT64_MAX}) {
      s.window = window;
      EXPECT_TRUE(Attend(s, dtype, x, 2) == whole) << window;
    }
    s.window = s.keys - 1;  // hides one key of one query
    EXPECT_FALSE(Attend(s, dtype, x, 2) == whole);
  }
}

// A key that the window hides from a query changes no bit of the query's results.
TEST_P(AttentionTest, HiddenKeysChangeNoBit) {
  std::mt19937_64 random(12);
  const AttentionSize s = {1, 300, 300, 2, 1, 24, true, 0.2, 90};
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Inputs x = RandomInputs(random, s, dtype);
    const Result before = Attend(s, dtype, x, 2);
    constexpr int64_t kChanged = 101;  // keys before this one
    for (Stored* tensor : {&x.k, &x.v}) {
      Floats values = tensor->Values();
      for (int64_t i = 0; i < kChanged * s.kv_heads * s.head_dim; ++i) values[i] = -3 * values[i];
      *tensor = Stored(dtype, values);
    }
    const Result after = Attend(s, dtype, x, 2);
    const auto differ = [](const Stored& a, const Stored& b, int64_t row, int64_t begin, int64_t end) {
      const Floats first = a.Values(), second = b.Values();
      return !std::equal(first.begin() + begin * row, first.begin() + end * row, second.begin() + begin * row);
    };
    const int64_t row = s.heads * s.head_dim, seen_until = kChanged + s.window - 1;
    EXPECT_TRUE(differ(before.out, after.out, row, seen_until - 1, seen_until));
    EXPECT_FALSE(differ(before.out, after.out, row, seen_until, s.queries));
    EXPECT_TRUE(differ(before.dq, after.dq, row, seen_until - 1, seen_until));
    EXPECT_FALSE(differ(before.dq, after.dq, row, seen_until, s.queries));
    // Keys whose queries all stayed as they were.
    const int64_t kv_row = s.kv_heads * s.head_dim;
    EXPECT_FALSE(differ(before.dk, after.dk, kv_row, seen_until, s.keys));
    EXPECT_FALSE(differ(before.dv, after.dv, kv_row, seen_until, s.keys));
  }
}

// Zero times NaN is NaN: tiles of keys before all windows of a block of queries, and of queries behind all windows that
// have a key, are not multiplied.
TEST_P(AttentionTest, TilesOutsideOfTheWindowAreSkipped) {
  std::mt19937_64 random(13);
  const AttentionSize s = {1, 600, 600, 2, 1, 24, true, 0.2, 90};
  // These keys and queries are NaN.
  constexpr int64_t kKeysBefore = 101, kQueriesFrom = 448;
  // Blocks of 64 queries that see none of these keys, nor another one of the tile of the last of them, and keys whose
  // queries are before those queries, at least by a tile.
  constexpr int64_t kFirstBlock = 256, kLastKey = kQueriesFrom - 90 - 8;
  const int64_t q_row = s.heads * s.head_dim, kv_row = s.kv_heads * s.head_dim;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Inputs x = RandomInputs(random, s, dtype);
    const Result expected = Attend(s, dtype, x, 2);
    const auto spoil = [&](Stored& tensor, int64_t begin, int64_t end) {
      Floats values = tensor.Values();
      std::fill(values.begin() + begin, values.begin() + end, NAN);
      tensor = Stored(dtype, values);
    };
    for (Stored* tensor : {&x.k, &x.v}) spoil(*tensor, 0, kKeysBefore * kv_row);
    for (Stored* tensor : {&x.q, &x.dout}) spoil(*tensor, kQueriesFrom * q_row, s.queries * q_row);
    const Result r = Attend(s, dtype, x, 2);
    const auto expect_same = [](const Stored& actual, const Stored& expected, int64_t begin, int64_t end) {
      const Floats a = actual.Values(), b = expected.Values();
      EXPECT_TRUE(std::equal(a.begin() + begin, a.begin() + end, b.begin() + begin));
    };
    expect_same(r.out, expected.out, kFirstBlock * q_row, kQueriesFrom * q_row);
    expect_same(r.dq, expected.dq, kFirstBlock * q_row, kQueriesFrom * q_row);
    expect_same(r.dk, expected.dk, kFirstBlock * kv_row, kLastKey * kv_row);
    expect_same(r.dv, expected.dv, kFirstBlock * kv_row, kLastKey * kv_row);
  }
}

TEST_P(AttentionTest, SharpDistributions) {
  // Scores in the hundreds: the running maximum must keep every exponential in range.
  std::mt19937_64 random(3);
  for (double scale : {1.0, -1.0}) {
    const AttentionSize s = {1, 70, 300, 2, 2, 16, false, scale};
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const Inputs x = RandomInputs(random, s, dtype, 10.0f);
      const auto expected = reference::Attention(s, x.q.Doubles(), x.k.Doubles(), x.v.Doubles());
      const Result r = Attend(s, dtype, x, 1);
      // A score of magnitude 500 carries an f32 rounding error of 3e-5, which becomes a relative error of each
      // probability. A result in bf16 is a mean of values below 1 with weights wrong by 2^-8, and stored once.
      EXPECT_LE(ErrorBeyondRounding(dtype, r.out.Values(), expected.out), dtype == DType::kF32 ? 1e-4 : 0x1p-8 + 1e-4);
      EXPECT_LE(ScaledError(r.lse, expected.lse), 1e-6);
    }
  }
}

TEST_P(AttentionTest, SameBitsForEveryNumberOfThreads) {
  std::mt19937_64 random(4);
  // The second has fewer key heads than threads, where the backward pass computes dq and dk, dv apart.
  for (const AttentionSize& s :
       {AttentionSize{3, 77, 201, 6, 3, 40, true, 0.15}, AttentionSize{1, 400, 700, 3, 1, 40, true, 0.15},
        AttentionSize{1, 300, 513, 1, 1, 17, false, 0.2}, AttentionSize{1, 400, 700, 3, 1, 40, true, 0.15, 150}}) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const Inputs x = RandomInputs(random, s, dtype);
      const Result one = Attend(s, dtype, x, 1);
      for (int threads : {2, 5, 16}) EXPECT_TRUE(Attend(s, dtype, x, threads) == one) << threads << " threads";
    }
  }
}

TEST_P(AttentionTest, NanStaysInItsQuery) {
  std::mt19937_64 random(7);
  for (int64_t dim : {16, 15}) {
    const AttentionSize s = {1, 40, 40, 1, 1, dim, true, 0.25};
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Inputs x = RandomInputs(random, s, dtype);
      Floats q = x.q.Values();
      q[5 * dim + 3] = NAN;
      x.q = Stored(dtype, q);
      const Floats out = Attend(s, dtype, x, 1).out.Values();
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i / dim == 5) << i;
    }
  }
}

// Of heads that lie side by side: an odd head_dim must not read its neighbour's first element into a pair.
TEST_P(AttentionTest, NanStaysInItsHead) {
  std::mt19937_64 random(8);
  for (int64_t dim : {1, 15, 31}) {
    const AttentionSize s = {1, 35, 35, 2, 2, dim, false, 0.25};
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Inputs x = RandomInputs(random, s, dtype);
      for (Stored* tensor : {&x.q, &x.k, &x.v, &x.dout}) {
        Floats values = tensor->Values();
        for (size_t i = 0; i < values.size(); ++i) {
          if (i / dim % 2 == 1) values[i] = NAN;
        }
        *tensor = Stored(dtype, values);
      }
      const Result r = Attend(s, dtype, x, 1);
      for (const Stored& tensor : {r.out, r.dq, r.dk, r.dv}) {
        const Floats values = tensor.Values();
        for (size_t i = 0; i < values.size(); ++i)
          EXPECT_EQ(std::isnan(values[i]), i / dim % 2 == 1) << dim << " " << i;
      }
    }
  }
}

// Hidden keys stay so. With a scale of zero all that are seen weigh the same.
TEST_P(AttentionTest, ScalesThatAreNotPositive) {
  std::mt19937_64 random(14);
  for (double scale : {0.0, -0.3}) {
    for (int64_t window : {0, 40}) {
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        CheckAgainstReference(random, {1, 70, 150, 2, 1, 20, true, scale, window}, 2, dtype);
      }
    }
  }
}

// A key whose score is minus infinity has no weight, and one of infinity leaves no number.
TEST_P(AttentionTest, InfiniteScores) {
  std::mt19937_64 random(15);
  const AttentionSize s = {1, 70, 300, 1, 1, 16, false, 0.25};
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Inputs x = RandomInputs(random, s, dtype);
    Floats q = x.q.Values(), k = x.k.Values();
    for (int64_t i = 0; i < s.queries; ++i) q[i * s.head_dim] = i % 2 == 0 ? 0.5f : -0.5f;
    for (int64_t j : {3, 200}) k[j * s.head_dim] = -INFINITY;
    x.q = Stored(dtype, q);
    x.k = Stored(dtype, k);
    const Result r = Attend(s, dtype, x, 1);
    const Floats out = r.out.Values();
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isfinite(out[i]), i / s.head_dim % 2 == 0) << i;
    for (size_t i = 0; i < r.lse.size(); ++i) EXPECT_EQ(std::isfinite(r.lse[i]), i % 2 == 0) << i;
  }
}

// No query sees a key whose scores are minus infinity, however many queries are computed together.
TEST_P(AttentionTest, InfiniteKeysHaveFiniteGradients) {
  std::mt19937_64 random(29);
  for (const int64_t queries : {40, 64}) {
    const AttentionSize s = {1, queries, 64, 1, 1, 32, false, 0.2};
    Floats q = RandomFloats(random, QueryElements(s)), k = RandomFloats(random, KeyElements(s));
    for (float& element : q) element = std::abs(element) + 0.1f;
    k[17 * s.head_dim + 3] = -INFINITY;
    const Inputs x = {Stored(DType::kBF16, q), Stored(DType::kBF16, k),
                      RandomStored(random, DType::kBF16, KeyElements(s)),
                      RandomStored(random, DType::kBF16, QueryElements(s))};
    const Result r = Attend(s, DType::kBF16, x, 1);
    for (const Stored& gradient : {r.dk, r.dv}) {
      const Floats values = gradient.Values();
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
    }
  }
}

// The scores of later keys are larger than those before by little, which nothing is rescaled for, or by much.
TEST_P(AttentionTest, GrowingScores) {
  std::mt19937_64 random(16);
  for (float step : {1.0f, 3.0f, 8.0f}) {
    const AttentionSize s = {1, 45, 700, 1, 1, 8, true, 1};
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Inputs x = RandomInputs(random, s, dtype);
      Floats q = x.q.Values(), k = x.k.Values();
      for (int64_t i = 0; i < s.queries; ++i) q[i * s.head_dim] = 1;
      for (int64_t j = 0; j < s.keys; ++j) {
        const int64_t block = j / 128;
        k[j * s.head_dim] = step * static_cast<float>(block);
      }
      x.q = Stored(dtype, q);
      x.k = Stored(dtype, k);
      ExpectAgreement(s, dtype, x, Attend(s, dtype, x, 1), Reference(s, x));
    }
  }
}

// The reference is slow: computed once for all instruction sets.
void CheckLengths(DType dtype) {
  std::mt19937_64 random(1);
  const Isa best = ActiveIsa();
  for (int64_t length : {1, 17, 128, 1024, 4096}) {
    const int64_t dim = length < 4096 ? 32 : dtype == DType::kF32 ? 16 : 8, heads = length < 4096 ? 2 : 1;
    for (bool causal : {false, true}) {
      const AttentionSize s = {1, length, length, heads, 1, dim, causal, 1 / std::sqrt(32.0)};
      const Inputs x = RandomInputs(random, s, dtype);
      const Expected expected = Reference(s, x);
      for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
        if (dtype == DType::kBF16 && length >= 1024 && isa != best) continue;  // the bounds are slow, too
        LimitIsaForTesting(isa);
        if (ActiveIsa() == isa) ExpectAgreement(s, dtype, x, Attend(s, dtype, x, 2), expected);
      }
      LimitIsaForTesting(kBestIsa);
    }
  }
}
TEST(AttentionLengths, AgreeWithReference) { CheckLengths(DType::kF32); }
TEST(AttentionLengths, Bf16AgreesWithReference) { CheckLengths(DType::kBF16); }

TEST(AttentionScratch, IsLinearInTheSequence) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (int threads : {1, 2, 64}) {
      const auto scratch = [&](int64_t length, bool backward) {
        const AttentionSize s = {1, length, length, 12, 4, 64, true, 0.125};
        auto kernel = CreateKernel((backward ? BackwardSignature : ForwardSignature)(s, threads, dtype));
        EXPECT_TRUE(kernel.ok()) << kernel.status();
        return (*kernel)->ScratchBytes();
      };
      for (int64_t length = 4096; length <= 1 << 20; length *= 2) {
        EXPECT_EQ(scratch(length, false), scratch(4096, false));  // one block of queries and one of keys for a thread
        EXPECT_LE(scratch(2 * length, true), 2 * scratch(length, true));
        // Two sums, of the gradients of keys and values, of one head for a thread.
        EXPECT_LE(scratch(length, true), threads * (2 * length * 64 * sizeof(float) + (512 << 10)));
      }
    }
  }
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  std::mt19937_64 random(5);
  for (int window : {-1, 0, 1, 3}) {
    const AttentionSize s = {1, 3, 5, 4, 2, 3, window >= 0, 0.7, std::max(window, 0)};
    const Inputs x = RandomInputs(random, s, DType::kF32);
    std::vector<double> q = x.q.Doubles(), k = x.k.Doubles(), v = x.v.Doubles();
    const std::vector<double> dout = x.dout.Doubles();
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
    Signature mixed = s;  // only some of the tensors
    mixed.arguments[1].dtype = DType::kBF16;
    ExpectRefused(mixed, "'k' is bf16; only f32");
    mixed = s;
    mixed.arguments[0].dtype = DType::kBF16;
    ExpectRefused(mixed, "'k' is f32; only bf16");
    for (size_t i = 0; i < s.arguments.size(); ++i) {
      Signature bad = s;
      ++bad.arguments[i].shape.back();
      EXPECT_FALSE(CreateKernel(bad).ok()) << i;
      bad = s;
      bad.arguments[i].shape.pop_back();
      ExpectRefused(bad, "is needed");
      bad = s;
      bad.arguments[i].dtype = DType::kF64;
      ExpectRefused(bad, "only f32");
    }
    Signature bad = s;
    bad.attributes[0].ints = {2};
    ExpectRefused(bad, "'causal' must be 0 or 1");
    bad.attributes = s.attributes;
    bad.attributes.push_back(Int("window", 0));
    ExpectRefused(bad, "'window' must be at least 1");
    bad.attributes.back().ints = {-3};
    ExpectRefused(bad, "'window' must be at least 1");
    bad.attributes.back() = Int("window", 2);
    EXPECT_TRUE(CreateKernel(bad).ok());
    bad.attributes[0].ints = {0};
    ExpectRefused(bad, "needs 'causal' to be 1");
    bad.attributes.back() = Float("window", 2);
    ExpectRefused(bad, "'window'");
    bad.attributes = s.attributes;
    bad.attributes[1].floats = {NAN};
    ExpectRefused(bad, "must be finite");
    bad.attributes.pop_back();
    ExpectRefused(bad, "'scale' is missing");
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
