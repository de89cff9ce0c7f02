// Products of a B that pack_matrix packed before: the bits of plain products, and refused forms.

#include "kernels/cpu/isa/isa.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

constexpr int64_t kGuard = 64;

int64_t PackedCount(const Problem& p, DType dtype) {
  return (p.n + 47) / 48 * 48 * (dtype == DType::kBF16 ? (p.k + 31) / 32 * 32 : p.k);
}

Signature SignPack(const Problem& p, DType dtype, int threads) {
  TensorSpec source = In({p.b_size}), packed = Out({PackedCount(p, dtype)});
  source.dtype = packed.dtype = dtype;
  return {"pack_matrix",
          {Int("k", p.k), Int("n", p.n), Ints("b_strides", {p.b[0], p.b[1], p.b[2]})},
          {source, packed},
          threads};
}

Signature SignPacked(const Problem& p, const Signature& plain, DType dtype) {
  Signature s = plain;
  std::erase_if(s.attributes, [](const Attribute& attribute) { return attribute.name == "b_strides"; });
  s.attributes.push_back(Int("b_packed", 1));
  s.arguments[1].shape = {PackedCount(p, dtype)};
  return s;
}

void SetOperands(Signature& s, DType dtype) { s.arguments[0].dtype = s.arguments[1].dtype = dtype; }

// The same memory serves as floats or as twice as many bf16 numbers, of many exponents, so that each order of additions
// has bits of its own.
Floats RandomOperand(std::mt19937_64& random, int64_t count, DType dtype) {
  Floats values = RandomFloats(random, count);
  if (dtype == DType::kF32) return values;
  const auto half = [&] { return static_cast<uint32_t>((random() & 0x807F) | (119 + random() % 9) << 7); };
  for (float& value : values) {
    const uint32_t low = half(), bits = low | half() << 16;
    std::memcpy(&value, &bits, sizeof(value));
  }
  return values;
}

// Packed by `threads` threads; bytes behind the buffer must stay.
Floats PackB(const Problem& p, DType dtype, Floats& b, int threads) {
  const int64_t words = PackedCount(p, dtype) / (dtype == DType::kBF16 ? 2 : 1);
  Floats packed(words + kGuard, 7.0f);
  RunKernel(SignPack(p, dtype, threads), {b.data(), packed.data()});
  for (int64_t i = 0; i < kGuard; ++i) EXPECT_EQ(packed[words + i], 7.0f);
  return packed;
}

// C dense; extents beyond one block of k and of n, B in either order and with gaps.
Problem RandomPackable(std::mt19937_64& random) {
  Problem p{};
  do {
    p = RandomProblem(random);
  } while (p.m < 2 || p.n < 2);
  p.batch = 1;
  const Problem dense = Dense(1, p.m, p.n, p.k);
  p.c = dense.c;
  p.c_size = dense.c_size;
  return p;
}

Problem TransposedB(int64_t m, int64_t n, int64_t k) {
  Problem p = Dense(1, m, n, k);
  p.b = {k * n, 1, k};
  return p;
}

Problem PackedProblem(std::mt19937_64& random, int i) {
  return i == 0   ? Dense(1, 149, 1201, 791)
         : i == 1 ? TransposedB(67, 1201, 1603)
         : i == 2 ? Strided(1, 29, 50, 771)
         : i == 3 ? Dense(1, 2, 2, 1)
                  : RandomPackable(random);
}

using MatmulPackedTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulPackedTest, AllIsas(), IsaName);

TEST_P(MatmulPackedTest, HasTheBitsOfThePlainProduct) {
  std::mt19937_64 random(31);
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    if (dtype == DType::kBF16 && GetParam() < Isa::kAvx512Bf16) continue;  // refused, see below
    for (int i = 0; i < 80; ++i) {
      Problem p = PackedProblem(random, i);
      if (i == 2) p.c = Dense(1, p.m, p.n, p.k).c;
      SCOPED_TRACE(::testing::Message() << p.m << "x" << p.n << "x" << p.k << " b " << p.b[1] << "," << p.b[2]);
      Floats a = RandomOperand(random, p.a_size, dtype), b = RandomOperand(random, p.b_size, dtype);
      const Floats c0 = RandomFloats(random, p.c_size);
      for (bool bf16_result : {false, true}) {
        if (bf16_result && (dtype == DType::kF32 || p.accumulate)) continue;
        Signature plain = p.Sign(1);
        SetOperands(plain, dtype);
        if (bf16_result) plain.arguments[2].dtype = DType::kBF16;
        Floats expected = c0;
        RunKernel(plain, {a.data(), b.data(), expected.data()});
        for (int threads : {1, 2, 5}) {
          Floats packed = PackB(p, dtype, b, threads), c = c0;
          Signature signature = SignPacked(p, plain, dtype);
          signature.threads = threads;
          RunKernel(signature, {a.data(), packed.data(), c.data()});
          EXPECT_TRUE(SameBits(c, expected)) << threads << " threads, bf16 result " << bf16_result;
        }
      }
    }
  }
}

int64_t columns;

// arguments: bias[n], product + bias
void AddBias(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1, int64_t n0,
             int64_t n1) {
  for (int64_t m = m0; m < m1; ++m) {
    for (int64_t n = n0; n < n1; ++n) {
      static_cast<float*>(arguments[1])[m * columns + n] =
          tile[(m - m0) * stride + n - n0] + static_cast<const float*>(arguments[0])[n];
    }
  }
}

TEST_P(MatmulPackedTest, TakesEpilogues) {
  std::mt19937_64 random(32);
  for (int i = 0; i < 40; ++i) {
    Problem p = PackedProblem(random, i);
    p.accumulate = false;
    columns = p.n;
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), bias = RandomFloats(random, p.n);
    Signature plain = p.Sign(1);
    plain.attributes.erase(plain.attributes.begin() + 6, plain.attributes.begin() + 8);  // c_strides, accumulate
    plain.arguments.back() = In({p.n});
    plain.arguments.push_back(Out({p.m, p.n}));
    plain.has_epilogue = true;
    plain.epilogue = &AddBias;
    Floats expected(p.m * p.n, 0.0f);
    RunKernel(plain, {a.data(), b.data(), bias.data(), expected.data()});
    for (int threads : {1, 3}) {
      Floats packed = PackB(p, DType::kF32, b, threads), c(p.m * p.n, 0.0f);
      Signature signature = SignPacked(p, plain, DType::kF32);
      signature.threads = threads;
      RunKernel(signature, {a.data(), packed.data(), bias.data(), c.data()});
      EXPECT_TRUE(SameBits(c, expected)) << p.m << "x" << p.n << "x" << p.k << ", " << threads << " threads";
    }
  }
}

TEST_P(MatmulPackedTest, NeedsNoScratchForB) {
  const auto scratch = [](const Signature& signature) {
    const auto kernel = CreateKernel(signature);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel.ok() ? (*kernel)->ScratchBytes() : 0;
  };
  Problem p = Dense(1, 64, 100, 700);
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    if (dtype == DType::kBF16 && GetParam() < Isa::kAvx512Bf16) continue;  // refused, see below
    Signature plain = p.Sign(1);
    SetOperands(plain, dtype);
    const size_t without_b = scratch(SignPacked(p, plain, dtype));
    EXPECT_GE(scratch(plain), without_b + (dtype == DType::kF32 ? 4 : 2) * p.n * p.k);
  }
  // Panels of f32 are split into bf16 again.
  p.bf16x6 = true;
  EXPECT_LE(scratch(SignPacked(p, p.Sign(1), DType::kF32)), scratch(p.Sign(1)));
}

TEST_P(MatmulPackedTest, RefusesBf16WithoutPairs) {
  const Problem p = Dense(1, 4, 6, 8);
  Signature product = SignPacked(p, p.Sign(1), DType::kBF16);
  SetOperands(product, DType::kBF16);
  if (GetParam() >= Isa::kAvx512Bf16) {
    EXPECT_TRUE(CreateKernel(SignPack(p, DType::kBF16, 1)).ok());
    EXPECT_TRUE(CreateKernel(product).ok());
  } else {
    ExpectRefused(SignPack(p, DType::kBF16, 1), "only where the processor has AVX512-BF16");
    ExpectRefused(product, "only where the processor has AVX512-BF16");
  }
}

TEST(MatmulPackedRefusals, EverythingUnsafe) {
  const Problem p = Dense(1, 4, 6, 8);
  const Signature pack = SignPack(p, DType::kF32, 1), product = SignPacked(p, p.Sign(1), DType::kF32);
  ASSERT_TRUE(CreateKernel(pack).ok());
  ASSERT_TRUE(CreateKernel(product).ok());
  const auto with = [](Signature s, auto change) {
    change(s);
    return s;
  };
  const auto set = [](Signature s, std::string_view name, std::vector<int64_t> values) {
    for (Attribute& attribute : s.attributes) {
      if (attribute.name == name) attribute.ints = values;
    }
    return s;
  };
  ExpectRefused(with(pack, [](Signature& s) { s.arguments[1].shape = {48 * 7}; }),
                "has 336 elements; of 8 x 6 it has 384");
  ExpectRefused(with(pack, [](Signature& s) { s.arguments[0].shape = {47}; }), "reaches beyond argument 0");
  ExpectRefused(with(pack, [](Signature& s) { s.arguments[1].dtype = DType::kBF16; }), "'packed' is bf16; only f32");
  ExpectRefused(set(pack, "k", {0}), "must be 1 to");
  ExpectRefused(set(pack, "n", {INT32_MAX}), "reaches beyond argument 0");
  ExpectRefused(set(pack, "b_strides", {6, 1}), "needs 3");
  ExpectRefused(set(product, "b_packed", {2}), "'b_packed' must be 0 or 1");
  ExpectRefused(set(product, "k", {7}), "of 7 x 6 it has 336");
  ExpectRefused(with(product, [](Signature& s) { s.arguments[1].shape = {48}; }), "has 48 elements");
  const auto plain = [](int64_t batch, int64_t m, int64_t n) { return Dense(batch, m, n, 8); };
  for (const Problem& q : {plain(2, 4, 6), plain(1, 1, 6), plain(1, 4, 1)}) {
    ExpectRefused(SignPacked(q, q.Sign(1), DType::kF32), "needs batch 1, m and n of at least 2");
  }
  ExpectRefused(set(product, "c_strides", {24, 1, 4}), "rows of C that are contiguous");
}

}  // namespace
}  // namespace bowline::kernels::testing
