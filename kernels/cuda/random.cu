// random_normal and random_uniform: a thread computes one Philox block (kernels/registry/philox.h), four elements, or
// as many of them as lie in its row.

#include "kernels/cuda/trigonometry.h"

namespace {

using namespace bowline::device;

struct PhiloxWords {
  uint32_t at[4];
};

BOWLINE_DEVICE PhiloxWords Philox(uint64_t block, uint32_t key0, uint32_t key1) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * c0, product1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

struct Normal {
  BOWLINE_DEVICE static void Values(const PhiloxWords& words, double (&values)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const double radius = SquareRoot(Mul(-2.0, LogOf(Mul(Add(ToDouble(words.at[i]), 0.5), 0x1p-32))));
      double sine, cosine;
      SineCosine(Mul(6.283185307179586476925, Mul(ToDouble(words.at[i + 1]), 0x1p-32)), &sine, &cosine);
      values[i] = Mul(radius, cosine);
      values[i + 1] = Mul(radius, sine);
    }
  }
};

struct Uniform {
  BOWLINE_DEVICE static void Values(const PhiloxWords& words, double (&values)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = Mul(ToDouble(words.at[i] >> 8), 0x1p-24);
  }
};

// A dimension of the shard: its extent, that of the global tensor, and where it begins there: at `offset`, or where
// `place` is not null, at *place times the extent.
struct Dimension {
  int64_t extent, global, offset;
  const int32_t* place;

  BOWLINE_DEVICE int64_t Start() const { return place == nullptr ? offset : *place * extent; }
};

struct Scaling {
  double bias, gain;
  float limit, below_limit;
};

// `rows` are [d0, d1, d2] of the shard, `columns` the last dimension; `units` Philox blocks cover a row however it
// lies.
template <typename Distribution, typename T>
BOWLINE_DEVICE void Fill(uint32_t key0, uint32_t key1, const Scaling& scaling, const Dimension& d0, const Dimension& d1,
                         const Dimension& d2, const Dimension& columns, int64_t rows, int64_t units, T* out) {
  for (int64_t unit = GlobalThread(); unit < rows * units; unit += GlobalThreads()) {
    const int64_t row = unit / units, part = unit - row * units;
    const int64_t at2 = d2.Start() + row % d2.extent, at1 = d1.Start() + row / d2.extent % d1.extent,
                  at0 = d0.Start() + row / d2.extent / d1.extent;
    const bool inside = at0 < d0.global && at1 < d1.global && at2 < d2.global;
    const int64_t first_column = columns.Start();
    const int64_t count = inside ? Clamped(columns.global - first_column, int64_t{0}, columns.extent) : 0;
    const uint64_t first =
        inside ? static_cast<uint64_t>(((at0 * d1.global + at1) * d2.global + at2) * columns.global + first_column) : 0;
    const int64_t begin = part * 4 - static_cast<int64_t>(first % 4);  // the column of the block's first element
    if (begin >= columns.extent) continue;
    double values[4];
    Distribution::Values(Philox(first / 4 + static_cast<uint64_t>(part), key0, key1), values);
    Vector<T, 4> elements;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float scaled = static_cast<float>(Add(Mul(scaling.gain, values[i]), scaling.bias));
      const float value = scaled < scaling.limit ? scaled : scaling.below_limit;
      elements.at[i] = Narrow<T>(begin + i < count ? value : 0.0f);
    }
    T* to = out + row * columns.extent + begin;
    if (begin >= 0 && begin + 4 <= columns.extent && (row * columns.extent + begin) % 4 == 0) {
      StoreAligned(to, elements);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (begin + i >= 0 && begin + i < columns.extent) to[i] = elements.at[i];
      }
    }
  }
}

}  // namespace

#define BOWLINE_RANDOM(name, Distribution, T)                                                                          \
  BOWLINE_DEVICE_FUNCTION(name, 256, uint32_t key0, uint32_t key1, double bias, double gain, float limit,              \
                          float below_limit, int64_t extent0, int64_t global0, int64_t offset0, const int32_t* place0, \
                          int64_t extent1, int64_t global1, int64_t offset1, const int32_t* place1, int64_t extent2,   \
                          int64_t global2, int64_t offset2, const int32_t* place2, int64_t extent3, int64_t global3,   \
                          int64_t offset3, const int32_t* place3, int64_t rows, int64_t units, T* out) {               \
    Fill<Distribution>(key0, key1, {bias, gain, limit, below_limit}, {extent0, global0, offset0, place0},              \
                       {extent1, global1, offset1, place1}, {extent2, global2, offset2, place2},                       \
                       {extent3, global3, offset3, place3}, rows, units, out);                                         \
  }
BOWLINE_RANDOM(bowline_random_normal_f32, Normal, float)
BOWLINE_RANDOM(bowline_random_normal_bf16, Normal, Bf16)
BOWLINE_RANDOM(bowline_random_uniform_f32, Uniform, float)
#undef BOWLINE_RANDOM
