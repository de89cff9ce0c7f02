#ifndef BOWLINE_TEST_UNIT_KERNELS_MATMUL_PROBLEM_H_
#define BOWLINE_TEST_UNIT_KERNELS_MATMUL_PROBLEM_H_

#include <array>

#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {

using Strides = std::array<int64_t, 3>;

struct Problem {
  int64_t batch, m, n, k;
  Strides a, b, c;
  int64_t a_size, b_size, c_size;
  bool accumulate = false;
  bool bf16x6 = false;

  Signature Sign(int threads) const {
    Signature s{
        "matmul",
        {Int("batch", batch), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {a[0], a[1], a[2]}),
         Ints("b_strides", {b[0], b[1], b[2]}), Ints("c_strides", {c[0], c[1], c[2]}), Int("accumulate", accumulate)},
        {In({a_size}), In({b_size}), Out({c_size})},
        threads};
    if (accumulate) s.arguments[2].access = Access::kReadWrite;
    if (bf16x6) s.attributes.push_back(Int("bf16x6", 1));
    return s;
  }
};

inline Problem Dense(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return {batch, m, n, k, {m * k, k, 1}, {k * n, n, 1}, {m * n, n, 1}, batch * m * k, batch * k * n, batch * m * n};
}

// No dimension of any operand is contiguous.
inline Problem Strided(int64_t batch, int64_t m, int64_t n, int64_t k) {
  Problem p = Dense(batch, m, n, k);
  for (Strides* strides : {&p.a, &p.b, &p.c}) {
    for (int64_t& stride : *strides) stride *= 2;
  }
  p.a_size *= 2;
  p.b_size *= 2;
  p.c_size *= 2;
  return p;
}

// Dense in a random order of dimensions, sometimes with gaps.
inline Strides RandomLayout(std::mt19937_64& random, Strides extents, int64_t* size) {
  std::array<int, 3> order = {0, 1, 2};
  std::shuffle(order.begin(), order.end(), random);
  Strides strides;
  int64_t stride = 1 + random() % 4 / 3;
  for (int d : order) {
    strides[d] = stride;
    stride = stride * extents[d] + random() % 3 / 2;
  }
  *size = 1;
  for (int d = 0; d < 3; ++d) *size += strides[d] * (extents[d] - 1);
  // Whatever an extent-1 dimension says must not matter.
  for (int d = 0; d < 3; ++d) {
    if (extents[d] == 1 && random() % 2) strides[d] = random() % 1000;
  }
  return strides;
}

inline Problem RandomProblem(std::mt19937_64& random) {
  const std::vector<int64_t> sizes = {1, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 61, 64, 97, 127, 130};
  const auto pick = [&] { return sizes[random() % sizes.size()]; };
  Problem p{};
  p.batch = 1 + random() % 4;
  p.m = pick();
  p.n = pick();
  p.k = random() % 8 == 0 ? 700 + random() % 500 : pick();
  p.a = RandomLayout(random, {p.batch, p.m, p.k}, &p.a_size);
  p.b = RandomLayout(random, {p.batch, p.k, p.n}, &p.b_size);
  p.c = RandomLayout(random, {p.batch, p.m, p.n}, &p.c_size);
  if (random() % 4 == 0) p.b[0] = 0;
  p.accumulate = random() % 2;
  return p;
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_MATMUL_PROBLEM_H_
