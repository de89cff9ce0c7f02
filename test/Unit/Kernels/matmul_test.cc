#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

void CheckAgainstReference(std::mt19937_64& random, const Problem& p, int threads) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[0] << ","
                                    << p.a[1] << "," << p.a[2] << " b " << p.b[0] << "," << p.b[1] << "," << p.b[2]
                                    << " c " << p.c[0] << "," << p.c[1] << "," << p.c[2] << " +" << p.accumulate);
  Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), c = RandomFloats(random, p.c_size);
  std::vector<double> expected = ToDouble(c);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, ToDouble(a), ToDouble(b), expected);
  RunKernel(p.Sign(threads), {a.data(), b.data(), c.data()});
  // Gaps between the elements of C must keep their values, which `expected` holds too.
  EXPECT_LT(ScaledError(c, expected), 2e-7 * std::sqrt(p.k) + 5e-7);
}

using MatmulTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulTest, AllIsas(), IsaName);

TEST_P(MatmulTest, AgreesWithReferenceOnRandomStrides) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) CheckAgainstReference(random, RandomProblem(random), 1 + i % 3);
}

TEST_P(MatmulTest, CrossesEveryCacheBlock) {
  std::mt19937_64 random(2);
  CheckAgainstReference(random, Dense(1, 149, 1201, 791), 2);
  CheckAgainstReference(random, Dense(1, 547, 49, 801), 1);
  CheckAgainstReference(random, Strided(1, 547, 49, 791), 1);
  CheckAgainstReference(random, Strided(1, 29, 1201, 791), 2);
  CheckAgainstReference(random, Dense(1, 1, 1601, 1000), 2);
  CheckAgainstReference(random, Dense(1, 401, 1, 1000), 2);
}

TEST_P(MatmulTest, SameBitsForEveryNumberOfThreads) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    const Problem p = i == 0 ? Dense(1, 500, 1200, 800) : RandomProblem(random);
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), c0 = RandomFloats(random, p.c_size);
    Floats expected = c0;
    RunKernel(p.Sign(1), {a.data(), b.data(), expected.data()});
    for (int threads : {2, 3, 7}) {
      Floats c = c0;
      RunKernel(p.Sign(threads), {a.data(), b.data(), c.data()});
      EXPECT_TRUE(SameBits(c, expected)) << threads << " threads, " << p.m << "x" << p.n << "x" << p.k;
    }
  }
}

TEST(MatmulRefusals, EverythingUnsafe) {
  const Signature good = Dense(2, 3, 4, 5).Sign(1);
  ASSERT_TRUE(CreateKernel(good).ok());
  const auto with = [&](auto change) {
    Signature s = good;
    change(s);
    return s;
  };
  const auto set = [&](size_t attribute, std::vector<int64_t> values) {
    return with([&](Signature& s) { s.attributes[attribute].ints = values; });
  };
  ExpectRefused(set(1, {4}), "reaches beyond argument 0");
  ExpectRefused(set(3, {6}), "reaches beyond argument");
  ExpectRefused(set(0, {INT32_MAX}), "reaches beyond argument");
  ExpectRefused(set(0, {int64_t{1} << 40}), "must be 1 to");
  ExpectRefused(set(1, {0}), "must be 1 to");
  ExpectRefused(set(4, {INT64_MAX, INT64_MAX, INT64_MAX}), "reaches beyond argument 0");
  ExpectRefused(set(4, {15, 5}), "needs 3");
  ExpectRefused(set(5, {20, -4, 1}), "negative stride");
  ExpectRefused(set(6, {12, 3, 1}), "write one element of C twice");
  ExpectRefused(set(6, {0, 4, 1}), "write one element of C twice");
  ExpectRefused(set(7, {2}), "'accumulate' must be 0 or 1");
  ExpectRefused(set(7, {1}), "is declared written but is read and written");
  ExpectRefused(with([](Signature& s) { s.attributes.erase(s.attributes.begin()); }), "'batch' is missing");
  ExpectRefused(with([](Signature& s) { s.attributes.push_back(Int("m", 3)); }), "given twice");
  ExpectRefused(with([](Signature& s) { s.attributes.push_back(Int("alpha", 3)); }), "no attribute 'alpha'");
  ExpectRefused(with([](Signature& s) { s.arguments.pop_back(); }), "it takes 3: A, B, C");
  ExpectRefused(with([](Signature& s) { s.arguments[1].dtype = DType::kBF16; }), "'B' is bf16; only f32");
  ExpectRefused(with([](Signature& s) { s.arguments[2].access = Access::kRead; }), "is declared read but is written");
  ExpectRefused(with([](Signature& s) { s.arguments[0].shape = {int64_t{1} << 40, int64_t{1} << 40}; }), "2^47");
  ExpectRefused(with([](Signature& s) { s.arguments[0].shape = {0}; }), "at least 1");
  ExpectRefused(with([](Signature& s) { s.threads = 0; }), "threads is 0");
  ExpectRefused(with([](Signature& s) { s.arguments[2].dtype = DType::kBF16; }), "'C' is bf16; only f32");
  const auto bf16 = [&](size_t last) {
    return with([&](Signature& s) {
      for (size_t i = 0; i <= last; ++i) s.arguments[i].dtype = DType::kBF16;
    });
  };
  EXPECT_TRUE(CreateKernel(bf16(1)).ok());
  EXPECT_TRUE(CreateKernel(bf16(2)).ok());
  ExpectRefused(bf16(0), "'B' is f32; only bf16");
  Signature accumulated = bf16(2);
  accumulated.attributes[7].ints = {1};
  accumulated.arguments[2].access = Access::kReadWrite;
  ExpectRefused(accumulated, "accumulates in f32 only");
}

}  // namespace
}  // namespace bowline::kernels::testing
