// Products whose B is much the larger operand, both contiguous in k, are computed as their transposes: with the bits
// that the same numbers give where B is contiguous in n, which is never turned.

#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

int64_t columns;  // of the epilogue's output

// arguments: product, times called
void Record(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  for (int64_t m = m0; m < m1; ++m) {
    for (int64_t n = n0; n < n1; ++n) {
      static_cast<float*>(arguments[0])[m * columns + n] = tile[(m - m0) * stride + n - n0];
      static_cast<float*>(arguments[1])[m * columns + n] += 1.0f;
    }
  }
}

// B contiguous in k; rows of C with a gap behind them.
Problem ContiguousInK(int64_t m, int64_t n, int64_t k) {
  Problem p = Dense(1, m, n, k);
  p.b = {k * n, 1, k};
  p.c = {m * (n + 3), n + 3, 1};
  p.c_size = m * (n + 3);
  return p;
}

template <typename T>
std::vector<T> Transposed(const T* from, int64_t rows, int64_t row_columns) {
  std::vector<T> to(rows * row_columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < row_columns; ++j) to[j * rows + i] = from[i * row_columns + j];
  }
  return to;
}

// Sizes around the least that are turned, with and without remainders of tiles, vectors, units and blocks of k; k is
// even or not, which matters to bf16.
const std::vector<std::array<int64_t, 3>> kSizes = {{128, 1024, 96},  {128, 1025, 64},  {131, 1101, 801},
                                                    {137, 1999, 35},  {145, 1163, 802}, {300, 2400, 512},
                                                    {129, 1040, 1600}};

using MatmulFlipTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulFlipTest, AllIsas(), IsaName);

TEST_P(MatmulFlipTest, AgreesWithReference) {
  std::mt19937_64 random(31);
  for (auto [m, n, k] : kSizes) {
    const Problem p = ContiguousInK(m, n, k);
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), c = RandomFloats(random, p.c_size);
    std::vector<double> expected = ToDouble(c);
    reference::Matmul(1, m, n, k, p.a, p.b, p.c, false, ToDouble(a), ToDouble(b), expected);
    RunKernel(p.Sign(2), {a.data(), b.data(), c.data()});
    EXPECT_LT(ScaledError(c, expected), 2e-7 * std::sqrt(k) + 5e-7) << m << "x" << n << "x" << k;
  }
}

TEST_P(MatmulFlipTest, SameBitsAsWithBContiguousInN) {
  std::mt19937_64 random(32);
  for (auto [m, n, k] : kSizes) {
    const Problem flipped = ContiguousInK(m, n, k), plain = Dense(1, m, n, k);
    const Floats a = RandomFloats(random, m * k), b = RandomFloats(random, n * k);
    const Floats b_plain = Transposed(b.data(), n, k);
    Floats expected(m * n);
    RunKernel(plain.Sign(1), {const_cast<float*>(a.data()), const_cast<float*>(b_plain.data()), expected.data()});
    for (int threads : {1, 2, 5}) {
      Floats c(flipped.c_size, -7.0f);
      RunKernel(flipped.Sign(threads), {const_cast<float*>(a.data()), const_cast<float*>(b.data()), c.data()});
      for (int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(std::memcmp(&c[i * (n + 3)], &expected[i * n], n * sizeof(float)), 0)
            << m << "x" << n << "x" << k << ", row " << i << ", " << threads << " threads";
        for (int64_t gap = n; gap < n + 3; ++gap) ASSERT_EQ(c[i * (n + 3) + gap], -7.0f);
      }
    }
  }
}

TEST_P(MatmulFlipTest, SameBitsOfBf16IntoF32AndBf16) {
  std::mt19937_64 random(33);
  for (auto [m, n, k] : kSizes) {
    std::vector<uint16_t> a(m * k), b(n * k);
    for (auto* x : {&a, &b}) {
      // Of many exponents, so that each order of additions has bits of its own.
      for (uint16_t& value : *x) value = static_cast<uint16_t>((random() & 0x807F) | (119 + random() % 9) << 7);
    }
    std::vector<uint16_t> b_plain = Transposed(b.data(), n, k);
    for (DType result : {DType::kF32, DType::kBF16}) {
      const int64_t bytes = static_cast<int64_t>(SizeOf(result));
      Signature plain = Dense(1, m, n, k).Sign(1), flipped = ContiguousInK(m, n, k).Sign(2);
      for (Signature* s : {&plain, &flipped}) {
        s->arguments[0].dtype = s->arguments[1].dtype = DType::kBF16;
        s->arguments[2].dtype = result;
      }
      std::vector<char> expected(m * n * bytes), c(m * (n + 3) * bytes);
      RunKernel(plain, {a.data(), b_plain.data(), expected.data()});
      RunKernel(flipped, {a.data(), b.data(), c.data()});
      for (int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(std::memcmp(&c[i * (n + 3) * bytes], &expected[i * n * bytes], n * bytes), 0)
            << m << "x" << n << "x" << k << ", row " << i << ", " << bytes << " bytes an element";
      }
    }
  }
}

TEST_P(MatmulFlipTest, AnEpilogueGetsEachElementOnceAsItIsWanted) {
  std::mt19937_64 random(34);
  for (auto [m, n, k] : kSizes) {
    columns = n;
    Problem p = Dense(1, m, n, k);
    Floats a = RandomFloats(random, m * k), b = RandomFloats(random, n * k), b_plain = Transposed(b.data(), n, k);
    Floats expected(m * n);
    RunKernel(p.Sign(1), {a.data(), b_plain.data(), expected.data()});
    p.b = {k * n, 1, k};
    for (int threads : {1, 3}) {
      Signature s = p.Sign(threads);
      s.attributes.erase(s.attributes.begin() + 6, s.attributes.begin() + 8);  // c_strides, accumulate
      s.arguments.pop_back();
      s.arguments.insert(s.arguments.end(), {Out({m, n}), Out({m, n})});
      s.has_epilogue = true;
      s.epilogue = &Record;
      Floats product(m * n, 0.0f), calls(m * n, 0.0f);
      RunKernel(s, {a.data(), b.data(), product.data(), calls.data()});
      EXPECT_EQ(calls, Floats(m * n, 1.0f));
      EXPECT_TRUE(SameBits(product, expected)) << m << "x" << n << "x" << k;
    }
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
