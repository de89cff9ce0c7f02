// Products of f32 that AMX computes in bf16 (kernels/cpu/matmul/amx_split.h), held to gemm.h's promise for them, and
// those of the other instruction sets to the same promise.

#include <bit>
#include <functional>

#include "kernels/cpu/isa/flush_subnormals.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

Problem Split(Problem p) {
  p.bf16x6 = true;
  return p;
}
Problem SplitDense(int64_t batch, int64_t m, int64_t n, int64_t k) { return Split(Dense(batch, m, n, k)); }
Problem SplitStrided(int64_t batch, int64_t m, int64_t n, int64_t k) { return Split(Strided(batch, m, n, k)); }

constexpr double kUnit = 0x1p-24, kTiny = 0x1p-126;
constexpr float kLargest = 3.40282347e38f;

double Rounded(double times) { return times * kUnit / (1 - times * kUnit); }

double Promise(int64_t k) {
  const int64_t roundings = k + (k + 767) / 768 + 1;
  return Rounded(static_cast<double>(roundings));
}

// The bound that gemm.h derives for AMX, which is less than the promise.
double PromiseOfTiles(int64_t k) {
  const int64_t roundings = 16 + 6 * ((std::min<int64_t>(k, 768) + 31) / 32) + (k + 767) / 768;
  return (1 + 0x1p-6 + 0x1p-13) * Rounded(static_cast<double>(roundings)) + 1.01 * kUnit;
}

bool OnTiles(const Problem& p) { return ActiveIsa() == Isa::kAmx && p.m >= 16 && p.n >= 16 && p.k >= 64; }

// An element of A B (+ c0), of |A| |B| (+ |c0|), and of the sum of |A| + |B|.
struct Exact {
  double value, magnitude, operands;
};

struct Place {
  int64_t batch, m, n;
};

void ForEach(const Problem& p, const std::function<void(const Place&, int64_t c)>& call) {
  for (int64_t s = 0; s < p.batch; ++s) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) call({s, i, j}, s * p.c[0] + i * p.c[1] + j * p.c[2]);
    }
  }
}

Exact At(const Problem& p, const Floats& a, const Floats& b, double c0, const Place& at) {
  Exact exact = {c0, std::abs(c0), 0};
  const float* row = a.data() + at.batch * p.a[0] + at.m * p.a[1];
  const float* column = b.data() + at.batch * p.b[0] + at.n * p.b[2];
  for (int64_t s = 0; s < p.k; ++s) {
    const double x = row[s * p.a[2]], y = column[s * p.b[1]];
    exact.value += x * y;
    exact.magnitude += std::abs(x * y);
    exact.operands += std::abs(x) + std::abs(y);
  }
  return exact;
}

// Elements of C that are infinities or NaNs over the operands must be the same ones, all others within the bound.
void ExpectWithin(const Problem& p, const Floats& a, const Floats& b, const Floats& c0, const Floats& c,
                  double relative) {
  int64_t wrong = 0;
  ForEach(p, [&](const Place& at, int64_t index) {
    const Exact exact = At(p, a, b, p.accumulate ? c0[index] : 0.0, at);
    const double tiny = OnTiles(p) ? exact.operands + 7 * static_cast<double>(p.k) : static_cast<double>(p.k);
    const double bound = relative * exact.magnitude + tiny * kTiny;
    const bool right = std::isnan(exact.value)   ? std::isnan(c[index])
                       : std::isinf(exact.value) ? c[index] == exact.value
                                                 : std::abs(c[index] - exact.value) <= bound;
    if (!right && wrong++ == 0) {
      ADD_FAILURE() << "element " << at.batch << ", " << at.m << ", " << at.n << " is " << c[index] << ", expected "
                    << exact.value << " within " << bound;
    }
  });
  EXPECT_EQ(wrong, 0);
}

::testing::Message Name(const Problem& p) {
  return ::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[1] << "," << p.a[2]
                              << " b " << p.b[1] << "," << p.b[2] << " +" << p.accumulate;
}

Floats Multiply(const Problem& p, Floats a, Floats b, const Floats& c0, int threads = 1) {
  Floats c = c0;
  RunKernel(p.Sign(threads), {a.data(), b.data(), c.data()});
  return c;
}

void Check(const Problem& p, const Floats& a, const Floats& b, const Floats& c0, int threads = 1) {
  SCOPED_TRACE(Name(p));
  ExpectWithin(p, a, b, c0, Multiply(p, a, b, c0, threads), OnTiles(p) ? PromiseOfTiles(p.k) : Promise(p.k));
}
void Check(const Problem& p, const Floats& a, const Floats& b) { Check(p, a, b, Floats(p.c_size)); }

// A, B or both contiguous in their other dimension.
Problem Ordered(Problem p, bool a_transposed, bool b_transposed) {
  if (a_transposed) p.a = {p.m * p.k, 1, p.m};
  if (b_transposed) p.b = {p.k * p.n, 1, p.k};
  return p;
}

std::vector<Problem> AllOrders(const Problem& p) {
  return {p, Ordered(p, false, true), Ordered(p, true, false), Ordered(p, true, true)};
}

// Multiplies by powers of two up to 2^most and down to 2^-most: one for each of `groups` of neighbours.
void ScaleBadly(std::mt19937_64& random, Floats& x, int64_t groups, int most = 60) {
  const int64_t each = static_cast<int64_t>(x.size()) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % static_cast<uint64_t>(2 * most + 1)) - most);
    for (int64_t i = 0; i < each; ++i) x[g * each + i] *= scale;
  }
}

using MatmulSplitTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulSplitTest, AllIsas(), IsaName);

TEST_P(MatmulSplitTest, IsWithinTheBoundForOddSizesAndAllOrders) {
  std::mt19937_64 random(61);
  for (Problem dense :
       {SplitDense(1, 16, 16, 64), SplitDense(1, 17, 19, 65), SplitDense(2, 33, 50, 97), SplitDense(1, 67, 131, 257),
        SplitDense(1, 31, 211, 769), SplitDense(1, 18, 17, 1567), SplitStrided(2, 35, 37, 99)}) {
    for (Problem& p : AllOrders(dense)) {
      if (dense.a[2] != 1) p = dense;
      for (bool accumulate : {false, true}) {
        p.accumulate = accumulate;
        Check(p, RandomFloats(random, p.a_size), RandomFloats(random, p.b_size), RandomFloats(random, p.c_size), 2);
      }
    }
  }
}

TEST_P(MatmulSplitTest, IsWithinTheBoundForTransposedResults) {
  std::mt19937_64 random(62);
  Problem p = SplitDense(1, 45, 83, 1001);
  p.c = {0, 1, p.m};
  for (bool accumulate : {false, true}) {
    p.accumulate = accumulate;
    Check(p, RandomFloats(random, p.a_size), RandomFloats(random, p.b_size), RandomFloats(random, p.c_size), 2);
  }
}

TEST_P(MatmulSplitTest, IsWithinTheBoundOnRandomStrides) {
  std::mt19937_64 random(63);
  for (int i = 0; i < 60; ++i) {
    const Problem p = Split(RandomProblem(random));
    Check(p, RandomFloats(random, p.a_size), RandomFloats(random, p.b_size), RandomFloats(random, p.c_size), 1 + i % 3);
  }
}

TEST_P(MatmulSplitTest, IsWithinTheBoundWhereOperandsAreScaledBadly) {
  std::mt19937_64 random(64);
  for (const Problem& p : AllOrders(SplitDense(1, 49, 51, 321))) {
    for (bool each : {false, true}) {
      Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size);
      // Rows of A or steps of k, by the order; steps of k or columns of B.
      ScaleBadly(random, a, each ? p.a_size : p.a[2] == 1 ? p.m : p.k);
      ScaleBadly(random, b, each ? p.b_size : p.b[2] == 1 ? p.k : p.n);
      Check(p, a, b);
    }
  }
}

// The second half of k cancels the sum of the first half, but for 2^-20 of it.
TEST_P(MatmulSplitTest, IsWithinTheBoundWhereSumsCancel) {
  std::mt19937_64 random(65);
  for (int64_t k : {64, 300, 1600}) {
    for (const Problem& p : AllOrders(SplitDense(1, 33, 49, k))) {
      Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size);
      // The second half of k repeats the first, negated in A and a little larger in B.
      for (int64_t s = 0; s < k / 2; ++s) {
        for (int64_t i = 0; i < p.m; ++i) a[i * p.a[1] + (k / 2 + s) * p.a[2]] = -a[i * p.a[1] + s * p.a[2]];
        for (int64_t j = 0; j < p.n; ++j) {
          b[j * p.b[2] + (k / 2 + s) * p.b[1]] = b[j * p.b[2] + s * p.b[1]] * (1 + 0x1p-20f);
        }
      }
      Check(p, a, b);
    }
  }
}

// Parts of elements are below 2^-126, or elements themselves, or products.
TEST_P(MatmulSplitTest, IsWithinTheBoundForTinyNumbers) {
  std::mt19937_64 random(66);
  const auto tiny = [&](int64_t count, int smallest, int largest) {
    Floats x = RandomFloats(random, count);
    for (float& value : x) {
      value = std::ldexp(value, smallest + static_cast<int>(random() % static_cast<uint64_t>(largest - smallest + 1)));
    }
    return x;
  };
  const auto check = [](const Problem& p, const Floats& a, const Floats& b) {
    Check(p, a, b);
    if (!OnTiles(p)) return;  // of vectors that take subnormal operands for zeros gemm.h says nothing
    Floats c;
    {
      const FlushSubnormals flush;  // as plans run
      c = Multiply(p, a, b, Floats(p.c_size));
    }
    ExpectWithin(p, a, b, {}, c, PromiseOfTiles(p.k));
  };
  for (const Problem& p : AllOrders(SplitDense(1, 35, 34, 131))) {
    check(p, tiny(p.a_size, -149, -100), tiny(p.b_size, -20, 20));
    check(p, tiny(p.a_size, -20, 100), tiny(p.b_size, -149, -90));
    check(p, tiny(p.a_size, -70, -50), tiny(p.b_size, -75, -55));
    check(p, tiny(p.a_size, -126, -126), tiny(p.b_size, 126, 126));
    check(p, tiny(p.a_size, -149, -120), tiny(p.b_size, -149, 0));
  }
}

// Rounded to bf16 they would be infinities.
TEST_P(MatmulSplitTest, TakesTheLargestNumbers) {
  std::mt19937_64 random(67);
  for (const Problem& p : AllOrders(SplitDense(1, 34, 50, 96))) {
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size, 0x1p-10f);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t s = i % 3; s < p.k; s += 3) {
        const float large = s % 2 == 0 ? kLargest : 3.3961775e38f + 0x1p104f * static_cast<float>(random() % 1000);
        a[i * p.a[1] + s * p.a[2]] = random() % 2 == 0 ? large : -large;
      }
    }
    Check(p, a, b);
    Problem swapped = SplitDense(1, p.n, p.m, p.k);
    swapped.a = {0, p.b[2], p.b[1]};
    swapped.b = {0, p.a[2], p.a[1]};
    Check(swapped, b, a);
  }
}

// A sum of 0.999 of the largest number: bf16's rounding of either operand makes it an infinity, and so do sums of even
// and of odd steps by themselves where these have other signs.
TEST_P(MatmulSplitTest, SumsOverflowOnlyWhereTheyAreTooLarge) {
  const float x = (1 + 0x1p-8f) * 0x1p60f;
  for (const Problem& p : AllOrders(SplitDense(1, 37, 40, 64))) {
    Floats a(p.a_size), b(p.b_size, x);
    const auto fill = [&](const std::function<double(int64_t i, int64_t s)>& part) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t s = 0; s < p.k; ++s) {
          a[i * p.a[1] + s * p.a[2]] = static_cast<float>(part(i, s) * double{kLargest} / double{x});
        }
      }
    };
    const auto sign = [](int64_t i) { return i % 2 == 0 ? 1.0 : -1.0; };
    SCOPED_TRACE(Name(p));
    // Rows 0 to 15 fit and the others do not.
    fill([&](int64_t i, int64_t) { return sign(i) * (i < 16 ? 0.999 : 1.01) / 64; });
    Floats c = Multiply(p, a, b, Floats(p.c_size));
    ForEach(p, [&](const Place& at, int64_t index) {
      if (at.m < 16) {
        const double expected = At(p, a, b, 0, at).value;
        EXPECT_LE(std::abs(c[index] - expected), Promise(p.k) * std::abs(expected)) << at.m << ", " << at.n;
      } else {
        EXPECT_EQ(c[index], sign(at.m) * INFINITY) << at.m << ", " << at.n;
      }
    });
    // Even steps have one sign and odd ones the other.
    fill([&](int64_t i, int64_t s) { return sign(i) * sign(s) * 0.3; });
    ExpectWithin(p, a, b, c, Multiply(p, a, b, Floats(p.c_size)), Promise(p.k));
  }
}

TEST_P(MatmulSplitTest, KeepsInfinityAndNan) {
  std::mt19937_64 random(68);
  const auto put = [&](Floats& x, int64_t stride, int64_t stride_k, const std::vector<std::array<int64_t, 2>>& places) {
    const float values[] = {INFINITY, -INFINITY, NAN, -INFINITY, INFINITY};
    int next = 0;
    for (const auto& [i, s] : places) x[i * stride + s * stride_k] = values[next++ % 5];
  };
  for (int64_t k : {70, 1001}) {
    for (const Problem& p : AllOrders(SplitDense(1, 53, 100, k))) {
      for (bool zeros : {false, true}) {
        Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size);
        if (zeros) {
          // Rows and columns of zeros times infinity are NaN.
          for (int64_t s = 0; s < k; ++s) {
            a[2 * p.a[1] + s * p.a[2]] = a[40 * p.a[1] + s * p.a[2]] = 0.0f;
            b[3 * p.b[2] + s * p.b[1]] = b[99 * p.b[2] + s * p.b[1]] = -0.0f;
          }
        }
        const auto check = [&] {
          SCOPED_TRACE(Name(p));
          ExpectWithin(p, a, b, {}, Multiply(p, a, b, Floats(p.c_size), 2),
                       OnTiles(p) ? PromiseOfTiles(k) : Promise(k));
        };
        put(a, p.a[1], p.a[2], {{5, 0}, {18, k - 1}, {33, 40}, {51, 69}});
        check();
        put(b, p.b[2], p.b[1], {{7, 69}, {20, 0}, {98, 33}, {97, k - 1}});
        check();
        // In A too, so that infinities meet.
        put(a, p.a[1], p.a[2], {{52, 0}, {52, 69}, {52, k - 1}});
        check();
        a = RandomFloats(random, p.a_size);
        check();
      }
    }
  }
}

// Whatever rows and columns beside them are, also where parts of them underflow.
TEST_P(MatmulSplitTest, ElementsDoNotDependOnOthers) {
  std::mt19937_64 random(74);
  for (const float magnitude : {1.0f, 0x1p-110f}) {
    for (const Problem& p : AllOrders(SplitDense(1, 40, 52, 130))) {
      SCOPED_TRACE(Name(p));
      const Floats a = RandomFloats(random, p.a_size, magnitude), b = RandomFloats(random, p.b_size);
      Floats a_special = a, b_special = b;
      a_special[3 * p.a[1] + 7 * p.a[2]] = INFINITY;
      for (int64_t s = 0; s < p.k; ++s) a_special[20 * p.a[1] + s * p.a[2]] = kLargest;
      b_special[5 * p.b[2] + 64 * p.b[1]] = NAN;
      b_special[33 * p.b[2] + 2 * p.b[1]] = -kLargest;
      const Floats expected = Multiply(p, a, b, Floats(p.c_size));
      const Floats c = Multiply(p, a_special, b_special, Floats(p.c_size));
      ForEach(p, [&](const Place& at, int64_t index) {
        if (at.m == 3 || at.m == 20 || at.n == 5 || at.n == 33) return;
        EXPECT_EQ(c[index], expected[index]) << at.m << ", " << at.n;
      });
    }
  }
}

int64_t columns;

// arguments: product
void StoreTile(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1, int64_t n0,
               int64_t n1) {
  for (int64_t m = m0; m < m1; ++m) {
    for (int64_t n = n0; n < n1; ++n) {
      static_cast<float*>(arguments[0])[m * columns + n] = tile[(m - m0) * stride + n - n0];
    }
  }
}

TEST_P(MatmulSplitTest, IsWithinTheBoundWithEpiloguesAndPackedOperands) {
  std::mt19937_64 random(69);
  for (const Problem& dense : {SplitDense(1, 50, 70, 90), SplitDense(1, 19, 201, 1551), SplitDense(1, 40, 49, 769)}) {
    for (const Problem& p : AllOrders(dense)) {
      SCOPED_TRACE(Name(p));
      for (bool special : {false, true}) {
        Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), c(p.c_size);
        if (special) b[p.b_size / 2] = INFINITY;
        const double relative = OnTiles(p) ? PromiseOfTiles(p.k) : Promise(p.k);
        columns = p.n;
        Signature epilogue = p.Sign(2);
        epilogue.attributes.resize(6);  // without c_strides and accumulate
        epilogue.attributes.push_back(Int("bf16x6", 1));
        epilogue.has_epilogue = true;
        epilogue.epilogue = &StoreTile;
        RunKernel(epilogue, {a.data(), b.data(), c.data()});
        ExpectWithin(p, a, b, {}, c, relative);
        const TensorSpec buffer = In({(p.n + 47) / 48 * 48 * p.k});
        Floats packed(static_cast<size_t>(buffer.shape[0]), NAN), of_packed(p.c_size);
        RunKernel({"pack_matrix",
                   {Int("k", p.k), Int("n", p.n), Ints("b_strides", {0, p.b[1], p.b[2]})},
                   {In({p.b_size}), Out(buffer.shape)},
                   2},
                  {b.data(), packed.data()});
        Signature product = p.Sign(2);
        std::erase_if(product.attributes, [](const Attribute& attribute) { return attribute.name == "b_strides"; });
        product.attributes.push_back(Int("b_packed", 1));
        product.arguments[1] = buffer;
        RunKernel(product, {a.data(), packed.data(), of_packed.data()});
        ExpectWithin(p, a, b, {}, of_packed, relative);
        EXPECT_TRUE(SameBits(c, of_packed));
      }
    }
  }
}

// Rows and columns that begin at a multiple of 48 of a product, computed by themselves.
void ExpectBitsOfSlices(const Problem& p, DType dtype, const std::vector<std::array<int64_t, 4>>& slices) {
  std::mt19937_64 random(70);
  const int64_t bytes = dtype == DType::kF32 ? 4 : 2;
  // As bf16, floats are pairs of numbers: the lower halves get exponents like the upper ones.
  const auto operand = [&](int64_t count) {
    Floats x = RandomFloats(random, count * bytes / 4 + 1);
    if (dtype == DType::kF32) return x;
    for (float& value : x) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits = (bits & 0xffff807fu) | (0x3c00u + static_cast<uint32_t>(random() % 8) * 0x80u);
      std::memcpy(&value, &bits, sizeof(bits));
    }
    return x;
  };
  Floats a = operand(p.a_size), b = operand(p.b_size);
  const Floats c0 = RandomFloats(random, p.c_size);
  const auto multiply = [&](const Problem& q, int64_t m0, int64_t n0, int threads) {
    Floats c = c0;
    Signature signature = q.Sign(threads);
    signature.arguments[0].dtype = signature.arguments[1].dtype = dtype;
    RunKernel(signature,
              {reinterpret_cast<char*>(a.data()) + m0 * p.a[1] * bytes,
               reinterpret_cast<char*>(b.data()) + n0 * p.b[2] * bytes, c.data() + m0 * p.c[1] + n0 * p.c[2]});
    return c;
  };
  const Floats whole = multiply(p, 0, 0, 1);
  for (int threads : {2, 3, 7}) EXPECT_TRUE(SameBits(whole, multiply(p, 0, 0, threads))) << threads << " threads";
  for (const auto& [m0, m, n0, n] : slices) {
    Problem q = p;
    q.m = m;
    q.n = n;
    q.a_size = (m - 1) * p.a[1] + (p.k - 1) * p.a[2] + 1;
    q.b_size = (p.k - 1) * p.b[1] + (n - 1) * p.b[2] + 1;
    q.c_size = (m - 1) * p.c[1] + (n - 1) * p.c[2] + 1;
    const Floats slice = multiply(q, m0, n0, 1);
    int64_t wrong = 0;
    for (int64_t i = m0; i < m0 + m; ++i) {
      for (int64_t j = n0; j < n0 + n; ++j) {
        const int64_t at = i * p.c[1] + j * p.c[2];
        wrong += std::bit_cast<uint32_t>(slice[at]) != std::bit_cast<uint32_t>(whole[at]);
      }
    }
    EXPECT_EQ(wrong, 0) << "rows from " << m0 << ", columns from " << n0;
  }
}

// Beyond a span of rows, a block of columns and a block of k.
TEST_P(MatmulSplitTest, SlicesHaveTheBitsOfTheWhole) {
  const Problem dense = SplitDense(1, 1107, 1601, 801);
  for (Problem p : {dense, Ordered(dense, true, true)}) {
    SCOPED_TRACE(Name(p));
    p.accumulate = p.a[2] != 1;
    ExpectBitsOfSlices(p, DType::kF32,
                       {{0, 48, 0, 1601}, {1056, 51, 48, 96}, {96, 1011, 1584, 17}, {1008, 48, 1488, 113}});
  }
}

TEST_P(MatmulSplitTest, SlicesOfBf16HaveTheBitsOfTheWhole) {
  if (GetParam() < Isa::kAvx512Bf16) return;  // widened to f32 and multiplied as that
  for (const Problem& p : {Dense(1, 2107, 1503, 1569), Ordered(Dense(1, 2107, 1503, 1569), true, true)}) {
    SCOPED_TRACE(Name(p));
    ExpectBitsOfSlices(p, DType::kBF16,
                       {{0, 48, 0, 1503}, {2064, 43, 48, 96}, {96, 2011, 1440, 63}, {2016, 91, 1392, 111}});
  }
}

TEST(MatmulSplitError, IsWithinThePromiseFrom23Steps) {
  EXPECT_GT(PromiseOfTiles(22), Promise(22));
  for (int64_t k = 23; k < 100000; ++k) ASSERT_LE(PromiseOfTiles(k), Promise(k)) << k;
}

struct Errors {
  double largest = 0, sum = 0;
};

// Relative to |A| |B|.
Errors ErrorsOf(const Problem& p, const Floats& a, const Floats& b, const std::vector<Exact>& exact, Isa isa) {
  LimitIsaForTesting(isa);
  const Floats c = Multiply(p, a, b, Floats(p.c_size));
  Errors errors;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double error = std::abs(c[i] - exact[i].value) / exact[i].magnitude;
    errors.largest = std::max(errors.largest, error);
    errors.sum += error;
  }
  return errors;
}

// It is above where a few products make up most of a sum, as with factors of up to 2^30 for each element: then vectors
// round little more than once, and tiles each of several sums and leave products out. For 2^60 the largest error is up
// to 2.1 times theirs, the mean one 1.3 times. It is above, too, where operands or products are below 2^-102: parts of
// them underflow.
TEST(MatmulSplitError, IsNotAboveThatOfVectors) {
  LimitIsaForTesting(kBestIsa);
  if (ActiveIsa() != Isa::kAmx) GTEST_SKIP() << "this machine has no AMX";
  using Change = std::function<void(std::mt19937_64&, const Problem&, Floats&)>;
  const auto each = [](int smallest) {
    return [smallest](std::mt19937_64& random, const Problem&, Floats& x) {
      for (float& value : x) value = std::ldexp(value, smallest + static_cast<int>(random() % (1 - 2 * smallest)));
    };
  };
  const std::vector<std::pair<std::string, Change>> kinds = {
      {"uniform", [](std::mt19937_64&, const Problem&, Floats&) {}},
      {"positive",
       [](std::mt19937_64&, const Problem&, Floats& x) {
         for (float& value : x) value = std::abs(value);
       }},
      {"rows and columns scaled",
       [](std::mt19937_64& random, const Problem& p, Floats& x) { ScaleBadly(random, x, p.m, 40); }},
      {"all scaled by up to 2^4", each(-4)},
      {"all scaled by up to 2^8", each(-8)},
      {"all scaled by up to 2^16", each(-16)}};
  for (const auto& [name, change] : kinds) {
    for (int64_t k : {64, 65, 96, 100, 128, 200, 256, 384, 512, 767, 768, 769, 1000, 1536, 2048, 3072}) {
      for (uint64_t seed : {71, 72, 73}) {
        std::mt19937_64 random(seed);
        const Problem p = Ordered(SplitDense(1, 48, 48, k), false, true);
        Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size);
        change(random, p, a);
        change(random, p, b);
        std::vector<Exact> exact;
        ForEach(p, [&](const Place& at, int64_t) { exact.push_back(At(p, a, b, 0, at)); });
        const Errors tiles = ErrorsOf(p, a, b, exact, kBestIsa), vectors = ErrorsOf(p, a, b, exact, Isa::kAvx512Bf16);
        EXPECT_LE(tiles.largest, vectors.largest) << name << ", k = " << k << ", seed " << seed;
        EXPECT_LE(tiles.sum, vectors.sum) << name << ", k = " << k << ", seed " << seed;
      }
    }
  }
  LimitIsaForTesting(kBestIsa);
}

}  // namespace
}  // namespace bowline::kernels::testing
