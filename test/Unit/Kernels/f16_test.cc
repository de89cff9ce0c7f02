// Kernels on tensors of f16: conversions of every value, products with the accuracy that kernels/cpu/matmul/gemm.h
// promises, attention, and kernels that refuse the type.

#include <limits>

#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/matmul_problem.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

using F16s = std::vector<uint16_t>;

// The value from the definition of the format.
double Decode(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

std::vector<double> DecodeAll(const F16s& x) {
  std::vector<double> result;
  for (uint16_t bits : x) result.push_back(Decode(bits));
  return result;
}

// To nearest, ties to even, by a search among neighbours; infinity stands at 2^16.
uint16_t Encode(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::abs(value);
  uint16_t low = 0, high = 0x7c00;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (Decode(middle) <= value ? low : high) = middle;
  }
  const double below = value - Decode(low), above = (high == 0x7c00 ? 65536 : Decode(high)) - value;
  const bool down = below != above ? below < above : low % 2 == 0;
  return static_cast<uint16_t>(sign | (down ? low : high));
}

// Every exponent from `smallest` to `largest`, so that sums cancel and terms vanish beside others.
F16s RandomF16s(std::mt19937_64& random, int64_t count, int smallest = -8, int largest = 0) {
  F16s x(count);
  for (uint16_t& bits : x) {
    const uint64_t exponent = 15 + smallest + random() % (largest + 1 - smallest);
    bits = static_cast<uint16_t>((random() & 0x83FF) | exponent << 10);
  }
  return x;
}

std::vector<double> Absolute(std::vector<double> x) {
  for (double& value : x) value = std::abs(value);
  return x;
}

Signature InF16(const Problem& p, int threads, bool f16_result) {
  Signature signature = p.Sign(threads);
  signature.arguments[0].dtype = signature.arguments[1].dtype = DType::kF16;
  if (f16_result) signature.arguments[2].dtype = DType::kF16;
  return signature;
}

using F16Test = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, F16Test, AllIsas(), IsaName);

// A column and a row of all values, times one: widened for packing and where they lie, and rounded back.
TEST_P(F16Test, EveryValueIsWidenedExactlyAndComesBack) {
  constexpr int64_t kAll = 1 << 16;
  F16s all(kAll), one = {0x3c00};
  for (int64_t i = 0; i < kAll; ++i) all[i] = static_cast<uint16_t>(i);
  const Problem column = Dense(1, kAll, 1, 1), row = Dense(1, 1, kAll, 1);
  for (bool is_row : {false, true}) {
    void *a = is_row ? one.data() : all.data(), *b = is_row ? all.data() : one.data();
    Floats wide(kAll, NAN);
    F16s narrow(kAll);
    RunKernel(InF16(is_row ? row : column, 1, false), {a, b, wide.data()});
    RunKernel(InF16(is_row ? row : column, 1, true), {a, b, narrow.data()});
    for (int64_t i = 0; i < kAll; ++i) {
      const double expected = Decode(all[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i]) && std::isnan(Decode(narrow[i]))) << i;
        continue;
      }
      ASSERT_EQ(wide[i], expected) << i;
      // A sum that begins with 0 makes -0 of no product.
      ASSERT_EQ(narrow[i] & (expected == 0 ? 0x7fff : 0xffff), all[i] & (expected == 0 ? 0x7fff : 0xffff)) << i;
    }
  }
}

// Products of two halves are exact in f32, so that a product of matrices over one step is each rounded once: into
// subnormal numbers and to infinity too.
TEST_P(F16Test, ProductsAreRoundedToNearestEven) {
  std::mt19937_64 random(31);
  for (int i = 0; i < 40; ++i) {
    const Problem p = i % 2 == 0 ? Dense(1, 61, 77, 1) : Strided(1, 35, 83, 1);
    F16s a = RandomF16s(random, p.a_size, -14, 15), b = RandomF16s(random, p.b_size, -14, 15), c(p.c_size);
    // Few bits give ties.
    for (uint16_t& bits : a) bits &= i % 3 == 0 ? 0xFFE0 : 0xFFFF;
    for (uint16_t& bits : b) bits &= i % 3 == 0 ? 0xFFC0 : 0xFFFF;
    RunKernel(InF16(p, 1 + i % 2, true), {a.data(), b.data(), c.data()});
    for (int64_t m = 0; m < p.m; ++m) {
      for (int64_t n = 0; n < p.n; ++n) {
        const double product = Decode(a[m * p.a[1]]) * Decode(b[n * p.b[2]]);
        ASSERT_EQ(c[m * p.c[1] + n * p.c[2]], Encode(product)) << product;
      }
    }
  }
}

void CheckProduct(std::mt19937_64& random, Problem p, int threads, bool f16_result) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[0] << ","
                                    << p.a[1] << "," << p.a[2] << " b " << p.b[0] << "," << p.b[1] << "," << p.b[2]
                                    << " c " << p.c[0] << "," << p.c[1] << "," << p.c[2] << " +" << p.accumulate);
  p.accumulate &= !f16_result;
  F16s a = RandomF16s(random, p.a_size), b = RandomF16s(random, p.b_size), narrow = RandomF16s(random, p.c_size);
  Floats wide = RandomFloats(random, p.c_size);
  std::vector<double> expected = f16_result ? DecodeAll(narrow) : ToDouble(wide), magnitude = Absolute(expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, DecodeAll(a), DecodeAll(b), expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, Absolute(DecodeAll(a)), Absolute(DecodeAll(b)),
                    magnitude);
  void* out = f16_result ? static_cast<void*>(narrow.data()) : static_cast<void*>(wide.data());
  RunKernel(InF16(p, threads, f16_result), {a.data(), b.data(), out});
  const std::vector<double> c = f16_result ? DecodeAll(narrow) : ToDouble(wide);
  const double roundings = static_cast<double>(p.k + (p.k + 767) / 768 + 1) * 0x1p-24;
  int64_t wrong = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    double bound = roundings / (1 - roundings) * magnitude[i];
    if (f16_result) bound += StoringError(DType::kF16, std::abs(expected[i]) + bound);
    if (!(std::abs(c[i] - expected[i]) <= bound) && wrong++ == 0) {
      ADD_FAILURE() << "element " << i << " is " << c[i] << ", expected " << expected[i] << " within " << bound;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(F16Test, ProductsOnRandomStridesAreAccurate) {
  std::mt19937_64 random(32);
  for (int i = 0; i < 150; ++i) CheckProduct(random, RandomProblem(random), 1 + i % 3, i % 3 == 0);
}

TEST_P(F16Test, ProductsThatCrossEveryCacheBlockAreAccurate) {
  std::mt19937_64 random(33);
  for (bool f16_result : {false, true}) {
    CheckProduct(random, Dense(1, 33, 1201, 1601), 2, f16_result);
    CheckProduct(random, Dense(1, 547, 49, 1555), 1, f16_result);
    CheckProduct(random, Strided(1, 29, 1201, 791), 2, f16_result);
    CheckProduct(random, Dense(1, 1, 1601, 1000), 2, f16_result);
    CheckProduct(random, Dense(1, 401, 1, 1001), 2, f16_result);
  }
}

// One row by a matrix that is contiguous in k, as logits are: dot products over vectors of k.
TEST_P(F16Test, DotProductsAreAccurate) {
  std::mt19937_64 random(34);
  for (int64_t k : {1, 7, 33, 64, 257, 1000}) {
    Problem p = Dense(1, 1, 91, k);
    p.b = {0, 1, k};
    CheckProduct(random, p, 2, k % 2 == 0);
  }
}

TEST_P(F16Test, ProductsHaveTheSameBitsForEveryNumberOfThreads) {
  std::mt19937_64 random(35);
  for (int i = 0; i < 30; ++i) {
    const Problem p = i == 0 ? Dense(1, 500, 900, 1601) : RandomProblem(random);
    F16s a = RandomF16s(random, p.a_size), b = RandomF16s(random, p.b_size);
    const Floats c0 = RandomFloats(random, p.c_size);
    Floats expected;
    for (int threads : {1, 2, 3, 7}) {
      Floats c = c0;
      RunKernel(InF16(p, threads, false), {a.data(), b.data(), c.data()});
      if (threads == 1) expected = c;
      EXPECT_TRUE(SameBits(c, expected)) << threads << " threads, " << p.m << "x" << p.n << "x" << p.k;
    }
  }
}

// Sums are kept in f32, where 65504 + 65504 is a number, and become infinity where they are stored in f16.
TEST_P(F16Test, SumsOverflowWhenTheyAreStored) {
  F16s a(2 * 2, 0x7bff), b(2 * 40, 0x3c00), narrow(2 * 40);
  a[2] = 0xfbff;  // row 1: 0
  Floats wide(2 * 40);
  RunKernel(InF16(Dense(1, 2, 40, 2), 1, false), {a.data(), b.data(), wide.data()});
  RunKernel(InF16(Dense(1, 2, 40, 2), 1, true), {a.data(), b.data(), narrow.data()});
  for (int j = 0; j < 40; ++j) {
    EXPECT_EQ(wide[j], 131008.0f);
    EXPECT_EQ(Decode(narrow[j]), INFINITY);
    EXPECT_EQ(Decode(narrow[40 + j]), 0.0);
  }
}

TEST_P(F16Test, AttentionAgreesWithReference) {
  std::mt19937_64 random(36);
  const std::vector<int64_t> dims = {1, 3, 8, 16, 20, 31, 33, 64, 80, 128};
  for (int i = 0; i < 60; ++i) {
    reference::AttentionSize s{};
    s.batch = 1 + random() % 2;
    s.queries = i % 4 == 0 ? 1 : 1 + random() % 150;
    s.keys = s.queries + random() % 150;
    s.kv_heads = 1 + random() % 3;
    s.heads = s.kv_heads * (1 + random() % 3);
    s.head_dim = dims[random() % dims.size()];
    s.causal = random() % 2;
    s.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    if (s.causal && i % 3 == 0) s.window = 1 + random() % 60;
    const std::vector<int64_t> like_q = {s.batch, s.queries, s.heads, s.head_dim},
                               like_k = {s.batch, s.keys, s.kv_heads, s.head_dim};
    Stored q = RandomStored(random, DType::kF16, Count(like_q)), k = RandomStored(random, DType::kF16, Count(like_k)),
           v = RandomStored(random, DType::kF16, Count(like_k)), out = Unwritten(DType::kF16, Count(like_q));
    Floats lse(s.batch * s.heads * s.queries, NAN);
    std::vector<Attribute> attributes = {Int("causal", s.causal), Float("scale", s.scale)};
    if (s.window != 0) attributes.push_back(Int("window", s.window));
    RunKernel({"attention_forward",
               attributes,
               {In(like_q, DType::kF16), In(like_k, DType::kF16), In(like_k, DType::kF16), Out(like_q, DType::kF16),
                Out({s.batch, s.heads, s.queries})},
               1 + i % 3},
              {q.data(), k.data(), v.data(), out.data(), lse.data()});
    const reference::AttentionOutput expected = reference::Attention(s, q.Doubles(), k.Doubles(), v.Doubles());
    // All is computed in f32, as it is for tensors of f32, and stored once.
    EXPECT_LE(ErrorBeyondRounding(DType::kF16, out.Values(), expected.out), 1e-5) << s.queries << " of " << s.keys;
    EXPECT_LE(ScaledError(lse, expected.lse), 1e-5) << s.queries << " of " << s.keys;
  }
}

TEST(F16, RowsAreGathered) {
  std::mt19937_64 random(37);
  Stored table = RandomStored(random, DType::kF16, 9 * 13), out = Unwritten(DType::kF16, 5 * 13);
  std::vector<int32_t> ids = {8, 0, 3, 3, 7};
  RunKernel({"gather_rows", {}, {In({9, 13}, DType::kF16), In({5}, DType::kI32), Out({5, 13}, DType::kF16)}, 2},
            {table.data(), ids.data(), out.data()});
  const Floats from = table.Values(), to = out.Values();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_TRUE(std::equal(to.begin() + i * 13, to.begin() + (i + 1) * 13, from.begin() + ids[i] * 13)) << i;
  }
}

TEST(F16, AnglesAreRounded) {
  std::vector<int32_t> positions = {0, 1, 77, 4095, 131071};
  Stored cosines = Unwritten(DType::kF16, 5 * 33), sines = Unwritten(DType::kF16, 5 * 33);
  RunKernel({"rope_angles",
             {Float("theta", 10000.0)},
             {In({5}, DType::kI32), Out({5, 33}, DType::kF16), Out({5, 33}, DType::kF16)},
             2},
            {positions.data(), cosines.data(), sines.data()});
  const reference::Angles expected = reference::RopeAngles(positions, 33, 10000.0);
  EXPECT_LT(ErrorBeyondRounding(DType::kF16, cosines.Values(), expected.cos), 6.1e-8);
  EXPECT_LT(ErrorBeyondRounding(DType::kF16, sines.Values(), expected.sin), 6.1e-8);
}

TEST(F16, FillsAndRandomNumbersAreRounded) {
  Stored filled = Unwritten(DType::kF16, 1003);
  RunKernel({"fill", {Float("value", 0.1)}, {Out({1003}, DType::kF16)}, 3}, {filled.data()});
  EXPECT_TRUE(filled == Stored(DType::kF16, Floats(1003, 0.1f)));

  Signature normal = {"random_normal",
                      {Int("seed", 3), Int("key", 4), Float("mean", 0.5), Float("stddev", 2),
                       Ints("global_shape", {2500}), Ints("offsets", {0})},
                      {Out({2500})},
                      2};
  Floats wide(2500);
  RunKernel(normal, {wide.data()});
  normal.arguments[0].dtype = DType::kF16;
  Stored narrow = Unwritten(DType::kF16, 2500);
  RunKernel(normal, {narrow.data()});
  EXPECT_TRUE(narrow == Stored(DType::kF16, wide));
}

TEST(F16, WhatIsForTrainingOrPackedRefuses) {
  ExpectRefused({"scatter_add_rows", {}, {In({5, 8}, DType::kF16), In({5}, DType::kI32), Out({9, 8}, DType::kF16)}, 1},
                "does not compute in f16");
  const TensorSpec x = In({1, 4, 2, 8}, DType::kF16), out = Out({1, 4, 2, 8}, DType::kF16);
  ExpectRefused(
      {"attention_backward", {Int("causal", 1), Float("scale", 1)}, {x, x, x, x, In({1, 2, 4}), x, out, out, out}, 1},
      "does not compute in f16");
  ExpectRefused({"pack_matrix",
                 {Int("k", 32), Int("n", 48), Ints("b_strides", {0, 48, 1})},
                 {In({32 * 48}, DType::kF16), Out({32 * 48}, DType::kF16)},
                 1},
                "'B' is f16; only f32");
  Signature packed = InF16(Dense(1, 16, 48, 32), 1, false);
  packed.attributes.push_back(Int("b_packed", 1));
  ExpectRefused(packed, "packs no f16");
}

TEST(F16, TypesAreNotMixed) {
  Signature mixed = InF16(Dense(1, 3, 4, 5), 1, true);
  mixed.arguments[1].dtype = DType::kBF16;
  ExpectRefused(mixed, "'B' is bf16; only f16");
  mixed = InF16(Dense(1, 3, 4, 5), 1, true);
  mixed.arguments[2].dtype = DType::kBF16;
  ExpectRefused(mixed, "'C' is bf16; only f32");
}

// No kernel computes in blocks yet; each says so by the type's name.
TEST(F16, BlocksAreRefusedByName) {
  Signature blocks = Dense(1, 32, 32, 32).Sign(1);
  blocks.arguments[1].dtype = DType::kQ4_0;
  ExpectRefused(blocks, "'B' is q4_0; only f32");
  blocks.arguments[1].dtype = static_cast<DType>(77);
  ExpectRefused(blocks, "'B' is type 77; only f32");
}

}  // namespace
}  // namespace bowline::kernels::testing
