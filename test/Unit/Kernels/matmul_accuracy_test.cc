// The accuracy that kernels/cpu/matmul/gemm.h promises, element by element, for every type of operands and result.

#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

using Bf16s = std::vector<uint16_t>;

float Widen(uint16_t value) {
  const uint32_t bits = uint32_t{value} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

std::vector<double> WidenAll(const Bf16s& x) {
  std::vector<double> result;
  for (uint16_t value : x) result.push_back(Widen(value));
  return result;
}

// Every exponent from `smallest` to 0, so that sums cancel and terms vanish beside others.
Bf16s RandomBf16s(std::mt19937_64& random, int64_t count, int smallest = -8) {
  Bf16s x(count);
  for (uint16_t& value : x) {
    const uint64_t exponent = 127 + smallest + random() % (1 - smallest);
    value = static_cast<uint16_t>((random() & 0x807F) | exponent << 7);
  }
  return x;
}

std::vector<double> Absolute(std::vector<double> x) {
  for (double& value : x) value = std::abs(value);
  return x;
}

// c must be within the promise of A B (+ c0), where `magnitude` is |A| |B| (+ |c0|).
void ExpectAccurate(int64_t k, const std::vector<double>& c, bool rounded_to_bf16, const std::vector<double>& expected,
                    const std::vector<double>& magnitude) {
  const double roundings = static_cast<double>(k + (k + 767) / 768 + 1) * 0x1p-24;
  const double relative = roundings / (1 - roundings);
  int64_t wrong = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    double bound = relative * magnitude[i] + static_cast<double>(k) * 0x1p-126;
    if (rounded_to_bf16) bound += (std::abs(expected[i]) + bound) * 0x1p-8 + 0x1p-134;
    if (!(std::abs(c[i] - expected[i]) <= bound) && wrong++ == 0) {
      ADD_FAILURE() << "element " << i << " is " << c[i] << ", expected " << expected[i] << " within " << bound;
    }
  }
  EXPECT_EQ(wrong, 0);
}

void CheckBf16(std::mt19937_64& random, Problem p, int threads, bool bf16_result, int smallest = -8) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[0] << ","
                                    << p.a[1] << "," << p.a[2] << " b " << p.b[0] << "," << p.b[1] << "," << p.b[2]
                                    << " c " << p.c[0] << "," << p.c[1] << "," << p.c[2] << " +" << p.accumulate);
  p.accumulate &= !bf16_result;
  Signature signature = p.Sign(threads);
  signature.arguments[0].dtype = signature.arguments[1].dtype = DType::kBF16;
  if (bf16_result) signature.arguments[2].dtype = DType::kBF16;
  Bf16s a = RandomBf16s(random, p.a_size, smallest), b = RandomBf16s(random, p.b_size, smallest);
  Bf16s c_bf16 = RandomBf16s(random, p.c_size);
  Floats c = RandomFloats(random, p.c_size);
  std::vector<double> expected = bf16_result ? WidenAll(c_bf16) : ToDouble(c), magnitude = Absolute(expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, WidenAll(a), WidenAll(b), expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, Absolute(WidenAll(a)), Absolute(WidenAll(b)),
                    magnitude);
  void* out = bf16_result ? static_cast<void*>(c_bf16.data()) : static_cast<void*>(c.data());
  RunKernel(signature, {a.data(), b.data(), out});
  ExpectAccurate(p.k, bf16_result ? WidenAll(c_bf16) : ToDouble(c), bf16_result, expected, magnitude);
}

using MatmulAccuracyTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulAccuracyTest, AllIsas(), IsaName);

TEST_P(MatmulAccuracyTest, F32OnRandomStrides) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100; ++i) {
    const Problem p = RandomProblem(random);
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), c = RandomFloats(random, p.c_size);
    std::vector<double> expected = ToDouble(c), magnitude = Absolute(expected);
    reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, ToDouble(a), ToDouble(b), expected);
    reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, Absolute(ToDouble(a)), Absolute(ToDouble(b)),
                      magnitude);
    RunKernel(p.Sign(1 + i % 3), {a.data(), b.data(), c.data()});
    ExpectAccurate(p.k, ToDouble(c), false, expected, magnitude);
  }
}

TEST_P(MatmulAccuracyTest, Bf16OnRandomStrides) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 150; ++i) CheckBf16(random, RandomProblem(random), 1 + i % 3, i % 3 == 0);
}

TEST_P(MatmulAccuracyTest, Bf16CrossesEveryCacheBlock) {
  std::mt19937_64 random(13);
  for (bool bf16_result : {false, true}) {
    CheckBf16(random, Dense(1, 33, 1201, 1601), 2, bf16_result);
    CheckBf16(random, Dense(1, 547, 49, 1555), 1, bf16_result);
    CheckBf16(random, Strided(1, 29, 1201, 791), 2, bf16_result);
    CheckBf16(random, Dense(1, 1, 1601, 1000), 2, bf16_result);
    CheckBf16(random, Dense(1, 401, 1, 1001), 2, bf16_result);
  }
}

// Products below the smallest normal f32, which some instructions take as zero.
TEST_P(MatmulAccuracyTest, Bf16OfTinyNumbers) {
  std::mt19937_64 random(14);
  for (int i = 0; i < 20; ++i) CheckBf16(random, RandomProblem(random), 1, i % 2, -126);
}

// A bf16 result is the f32 one, rounded to nearest with ties to even.
TEST_P(MatmulAccuracyTest, Bf16ResultIsTheRoundedF32One) {
  std::mt19937_64 random(15);
  for (const Problem& p : {Dense(1, 37, 53, 29), Dense(1, 130, 97, 901), Strided(2, 9, 33, 40)}) {
    Signature signature = p.Sign(2);
    signature.arguments[0].dtype = signature.arguments[1].dtype = DType::kBF16;
    Bf16s a = RandomBf16s(random, p.a_size), b = RandomBf16s(random, p.b_size), rounded(p.c_size);
    // Few different operands give ties.
    for (uint16_t& value : a) value &= 0xFFE0;
    for (uint16_t& value : b) value &= 0xFFF8;
    Floats c(p.c_size);
    RunKernel(signature, {a.data(), b.data(), c.data()});
    signature.arguments[2].dtype = DType::kBF16;
    RunKernel(signature, {a.data(), b.data(), rounded.data()});
    for (int64_t i = 0; i < p.c_size; ++i) {
      if (c[i] == Widen(rounded[i])) continue;
      const double down = Widen(static_cast<uint16_t>(rounded[i] - 1)),
                   up = Widen(static_cast<uint16_t>(rounded[i] + 1));
      const double value = c[i], distance = std::abs(value - Widen(rounded[i]));
      ASSERT_LE(distance, std::abs(value - down)) << value;
      ASSERT_LE(distance, std::abs(value - up)) << value;
      if (distance > 0 && (distance == std::abs(value - down) || distance == std::abs(value - up))) {
        ASSERT_EQ(rounded[i] & 1, 0) << value << " is a tie";
      }
    }
  }
}

TEST_P(MatmulAccuracyTest, Bf16KeepsInfinityAndNan) {
  for (bool bf16_result : {false, true}) {
    Signature signature = Dense(1, 2, 40, 33).Sign(1);
    signature.arguments[0].dtype = signature.arguments[1].dtype = DType::kBF16;
    if (bf16_result) signature.arguments[2].dtype = DType::kBF16;
    Bf16s a(2 * 33, 0x3F80), b(33 * 40, 0x3F80), rounded(2 * 40);
    Floats c(2 * 40);
    a[5] = 0x7FFF;   // row 0: a NaN whose set bits a careless rounding would carry away
    a[40] = 0x7F80;  // row 1: infinity
    void* out = bf16_result ? static_cast<void*>(rounded.data()) : static_cast<void*>(c.data());
    RunKernel(signature, {a.data(), b.data(), out});
    for (int j = 0; j < 40; ++j) {
      EXPECT_TRUE(std::isnan(bf16_result ? Widen(rounded[j]) : c[j]));
      EXPECT_EQ(bf16_result ? Widen(rounded[40 + j]) : c[40 + j], INFINITY);
    }
  }
}

TEST_P(MatmulAccuracyTest, Bf16SameBitsForEveryNumberOfThreads) {
  std::mt19937_64 random(16);
  for (int i = 0; i < 40; ++i) {
    const Problem p = i == 0 ? Dense(1, 500, 900, 1601) : RandomProblem(random);
    Bf16s a = RandomBf16s(random, p.a_size), b = RandomBf16s(random, p.b_size);
    const Floats c0 = RandomFloats(random, p.c_size);
    Floats expected;
    for (int threads : {1, 2, 3, 7}) {
      Signature signature = p.Sign(threads);
      signature.arguments[0].dtype = signature.arguments[1].dtype = DType::kBF16;
      Floats c = c0;
      RunKernel(signature, {a.data(), b.data(), c.data()});
      if (threads == 1) expected = c;
      EXPECT_TRUE(SameBits(c, expected)) << threads << " threads, " << p.m << "x" << p.n << "x" << p.k;
    }
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
