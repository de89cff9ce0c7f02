#include "kernels/registry/philox.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

Signature Normal(std::vector<int64_t> shape, std::vector<int64_t> global, std::vector<int64_t> offsets, int threads,
                 int64_t seed = 7, int64_t key = 11) {
  return {"random_normal",
          {Int("seed", seed), Int("key", key), Float("mean", 0.5), Float("stddev", 2.0),
           Ints("global_shape", std::move(global)), Ints("offsets", std::move(offsets))},
          {Out(std::move(shape))},
          threads};
}

Signature Uniform(std::vector<int64_t> shape, double lo, double hi) {
  return {"random_uniform",
          {Int("seed", 7), Int("key", 11), Float("lo", lo), Float("hi", hi), Ints("global_shape", shape),
           Ints("offsets", std::vector<int64_t>(shape.size(), 0))},
          {Out(shape)},
          2};
}

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, PublishedKnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ::testing::ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              ::testing::ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(Philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              ::testing::ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

using RandomIsaTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, RandomIsaTest, AllIsas(), IsaName);

// Each value is that of the definition, rounded to f32, or within 2^-49 of it where a rounding boundary is as close:
// over so many values an error of 2^-44 would show.
TEST_P(RandomIsaTest, NormalIsTheDefinition) {
  const int64_t n = 1 << 21;
  for (int64_t key : {1, 2}) {
    Signature signature = Normal({n}, {n}, {0}, 2, 3, key);
    signature.attributes[2].floats = {0.0};
    signature.attributes[3].floats = {1.0 / key};
    Floats x(n, NAN);
    RunKernel(signature, {x.data()});
    int64_t other_way = 0;
    for (int64_t i = 0; i < n; i += 4) {
      const auto block = NormalBlock(MixKey(3, key), i / 4);
      for (int64_t j = 0; j < 4; ++j) {
        const double value = block[j] / key;
        if (x[i + j] == static_cast<float>(value)) continue;
        ++other_way;
        ASSERT_TRUE(x[i + j] == static_cast<float>(value * (1 + 0x1p-49)) ||
                    x[i + j] == static_cast<float>(value * (1 - 0x1p-49)))
            << x[i + j] << " instead of " << value;
      }
    }
    EXPECT_LE(other_way, 5);
  }
}

TEST_P(RandomIsaTest, UniformIsTheDefinition) {
  for (int64_t n : {1, 5, 31, 33, 1000, 100003}) {
    Floats x(n, NAN);
    RunKernel(Uniform({n}, -0.7, 1.9), {x.data()});
    for (int64_t i = 0; i < n; ++i) {
      const double value = UniformBlock(MixKey(7, 11), i / 4)[i % 4];
      ASSERT_EQ(x[i], static_cast<float>(-0.7 + (1.9 - -0.7) * value)) << i;
    }
  }
}

TEST(Random, Bf16IsF32Rounded) {
  for (int64_t n : {1, 70, 5003}) {
    Floats x(n);
    RunKernel(Normal({n}, {n + 9}, {5}, 2), {x.data()});
    Stored expected(DType::kBF16, x), actual = Unwritten(DType::kBF16, n);
    Signature signature = Normal({n}, {n + 9}, {5}, 3);
    signature.arguments[0].dtype = DType::kBF16;
    RunKernel(signature, {actual.data()});
    EXPECT_TRUE(actual == expected);
  }
}

TEST(Random, SameValuesUnderEverySharding) {
  const std::vector<int64_t> global = {3, 10, 7};
  Floats whole(Count(global));
  RunKernel(Normal(global, global, {0, 0, 0}, 1), {whole.data()});
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> shape, offsets;
    for (int64_t extent : global) {
      offsets.push_back(random() % extent);
      shape.push_back(1 + random() % (extent - offsets.back()));
    }
    Floats shard(Count(shape), NAN);
    RunKernel(Normal(shape, global, offsets, 1 + i % 4), {shard.data()});
    for (int64_t a = 0, n = 0; a < shape[0]; ++a) {
      for (int64_t b = 0; b < shape[1]; ++b) {
        for (int64_t c = 0; c < shape[2]; ++c, ++n) {
          ASSERT_EQ(shard[n], whole[((a + offsets[0]) * 10 + b + offsets[1]) * 7 + c + offsets[2]]);
        }
      }
    }
  }
}

// `global` in shards along `sharded_dims`, which operands choose.
Signature InParts(Signature whole, const std::vector<int64_t>& parts) {
  const std::vector<int64_t> global = whole.arguments.back().shape;
  std::vector<int64_t> sharded_dims;
  for (size_t d = 0; d < global.size(); ++d) {
    if (parts[d] == 0) continue;  // not cut; 1 is cut into one part
    whole.arguments.back().shape[d] /= parts[d];
    sharded_dims.push_back(static_cast<int64_t>(d));
    whole.arguments.insert(whole.arguments.begin(), In({}, DType::kI32));
  }
  whole.attributes.push_back(Ints("sharded_dims", sharded_dims));
  return whole;
}

void ExpectPartsOfWhole(const Signature& whole, const std::vector<int64_t>& parts, DType dtype) {
  const std::vector<int64_t> global = whole.arguments[0].shape;
  Stored expected = Unwritten(dtype, Count(global));
  RunKernel(whole, {expected.data()});
  const std::vector<double> values = expected.Doubles();
  const Signature signature = InParts(whole, parts);
  const std::vector<int64_t> shape = signature.arguments.back().shape;
  std::vector<int32_t> places(global.size(), 0);
  for (;;) {
    std::vector<void*> arguments;
    for (size_t d = 0; d < global.size(); ++d) {
      if (parts[d] > 0) arguments.push_back(&places[d]);
    }
    Stored part = Unwritten(dtype, Count(shape));
    arguments.push_back(part.data());
    RunKernel(signature, arguments);
    const std::vector<double> actual = part.Doubles();
    for (int64_t i = 0; i < Count(shape); ++i) {
      int64_t index = 0, stride = 1, rest = i;
      for (size_t d = global.size(); d-- > 0; rest /= shape[d], stride *= global[d]) {
        index += (places[d] * shape[d] + rest % shape[d]) * stride;
      }
      ASSERT_EQ(actual[i], values[index]) << "element " << i;
    }
    size_t d = 0;
    while (d < global.size() && ++places[d] >= std::max<int64_t>(1, parts[d])) places[d++] = 0;
    if (d == global.size()) return;
  }
}

TEST(Random, OperandsSayWhichPart) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> global, parts;
    for (int64_t rank = 1 + random() % 3; rank > 0; --rank) {
      parts.push_back(random() % 4);
      global.push_back((1 + random() % 9) * std::max<int64_t>(1, parts.back()));
    }
    Signature whole = Normal(global, global, std::vector<int64_t>(global.size(), 0), 1 + i % 4);
    const DType dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16;
    whole.arguments[0].dtype = dtype;
    ExpectPartsOfWhole(whole, parts, dtype);
    ExpectPartsOfWhole(Uniform(global, -1, 2), parts, DType::kF32);
  }
}

// Parts of one size may go beyond the end of the whole.
TEST(Random, ZeroBeyondTheEnd) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> global, shape, sharded_dims;
    std::vector<int32_t> places;
    std::vector<int64_t> first;
    const DType dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16;
    for (int64_t d = 0, rank = 1 + random() % 3; d < rank; ++d) {
      global.push_back(1 + random() % 9);
      shape.push_back(1 + random() % 9);
      if (random() % 2 == 0) {
        sharded_dims.push_back(d);
        places.push_back(static_cast<int32_t>(random() % 4));
        first.push_back(places.back() * shape.back());
      } else {
        shape.back() = global.back() + static_cast<int64_t>(random() % 3);
        first.push_back(0);
      }
    }
    Signature whole = Normal(global, global, std::vector<int64_t>(global.size(), 0), 1);
    whole.arguments[0].dtype = dtype;
    Stored values = Unwritten(dtype, Count(global));
    RunKernel(whole, {values.data()});
    Signature part = Normal(shape, global, std::vector<int64_t>(global.size(), 0), 1 + i % 4);
    part.arguments[0].dtype = dtype;
    part.arguments.insert(part.arguments.begin(), sharded_dims.size(), In({}, DType::kI32));
    part.attributes.push_back(Ints("sharded_dims", sharded_dims));
    part.attributes.push_back(Int("padded", 1));
    Stored result = Unwritten(dtype, Count(shape));
    std::vector<void*> arguments;
    for (int32_t& place : places) arguments.push_back(&place);
    arguments.push_back(result.data());
    RunKernel(part, arguments);
    for (int64_t n = 0; n < Count(shape); ++n) {
      int64_t index = 0, stride = 1, rest = n;
      bool inside = true;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d], stride *= global[d]) {
        const int64_t at = first[d] + rest % shape[d];
        inside &= at < global[d];
        index += at * stride;
      }
      ASSERT_EQ(result.Doubles()[n], inside ? values.Doubles()[index] : 0.0) << "element " << n;
    }
  }
}

TEST(Random, IndicesBeyond32Bits) {
  const int64_t far = (int64_t{1} << 40) + 3;
  Floats out(2);
  RunKernel(Normal({2}, {far + 2}, {far}, 1), {out.data()});
  const auto block = NormalBlock(MixKey(7, 11), far / 4);
  const auto next = NormalBlock(MixKey(7, 11), far / 4 + 1);
  EXPECT_EQ(out[0], static_cast<float>(0.5 + 2 * block[3]));
  EXPECT_EQ(out[1], static_cast<float>(0.5 + 2 * next[0]));
}

TEST(Random, NormalHasItsMoments) {
  const int64_t n = 1 << 20;
  Floats x(n);
  RunKernel(Normal({n}, {n}, {0}, 2), {x.data()});
  double moments[5] = {};
  for (float value : x) {
    const double z = (value - 0.5) / 2;
    for (int p = 1; p <= 4; ++p) moments[p] += std::pow(z, p) / n;
  }
  // Five standard errors: the variances of z, z^2, z^3, z^4 are 1, 2, 15, 96.
  const double error = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(moments[1], 0, error);
  EXPECT_NEAR(moments[2], 1, error * std::sqrt(2.0));
  EXPECT_NEAR(moments[3], 0, error * std::sqrt(15.0));
  EXPECT_NEAR(moments[4], 3, error * std::sqrt(96.0));
}

TEST(Random, SeedsAndKeysGiveUnrelatedStreams) {
  const int64_t n = 1 << 16;
  Floats a(n), b(n), c(n);
  RunKernel(Normal({n}, {n}, {0}, 1, 7, 11), {a.data()});
  RunKernel(Normal({n}, {n}, {0}, 1, 7, 12), {b.data()});
  RunKernel(Normal({n}, {n}, {0}, 1, 8, 11), {c.data()});
  double ab = 0, ac = 0;
  for (int64_t i = 0; i < n; ++i) {
    ab += (a[i] - 0.5) * (b[i] - 0.5) / 4 / n;
    ac += (a[i] - 0.5) * (c[i] - 0.5) / 4 / n;
  }
  EXPECT_NEAR(ab, 0, 5.0 / 256);
  EXPECT_NEAR(ac, 0, 5.0 / 256);
}

TEST(Random, UniformStaysInItsHalfOpenRange) {
  for (auto [lo, hi] : {std::pair{0.0, 1.0}, {-3.0, 5.0}, {1.0, 1.0 + 0x1p-22}}) {
    Floats x(1 << 18);
    RunKernel(Uniform({1 << 18}, lo, hi), {x.data()});
    double mean = 0;
    for (float value : x) {
      ASSERT_GE(value, lo);
      ASSERT_LT(value, hi);
      mean += value / static_cast<double>(x.size());
    }
    EXPECT_NEAR((mean - lo) / (hi - lo), 0.5, hi - lo < 1e-3 ? 0.2 : 0.003);
  }
}

TEST(RandomRefusals, EverythingUnsafe) {
  ASSERT_TRUE(CreateKernel(Normal({2, 3}, {4, 3}, {2, 0}, 1)).ok());
  ExpectRefused(Normal({2, 3}, {4, 3}, {3, 0}, 1), "must lie within the global extent");
  ExpectRefused(Normal({2, 3}, {4, 3}, {-1, 0}, 1), "must lie within the global extent");
  ExpectRefused(Normal({2, 3}, {4, 2}, {0, 0}, 1), "must lie within the global extent");
  ExpectRefused(Normal({2, 3}, {4, 3}, {INT64_MAX, 0}, 1), "must lie within the global extent");
  ExpectRefused(Normal({2, 3}, {4}, {0, 0}, 1), "rank");
  ExpectRefused(Normal({2, 3}, {INT64_MAX, 3}, {0, 0}, 1), "2^63");
  const Signature parts = InParts(Normal({2, 6}, {2, 6}, {0, 0}, 1), {0, 3});
  ASSERT_TRUE(CreateKernel(parts).ok());
  Signature bad = parts;
  bad.attributes[5].ints = {0, 2};
  ExpectRefused(bad, "do not make up the global extent");
  bad = parts;
  bad.attributes[4].ints = {2, 7};
  ExpectRefused(bad, "do not make up the global extent");
  bad = parts;
  bad.attributes.back().ints = {2};
  ExpectRefused(bad, "in increasing order");
  bad.attributes.back().ints = {-1};
  ExpectRefused(bad, "in increasing order");
  bad.attributes.back().ints = {0, 1};
  ExpectRefused(bad, "it takes 3");
  bad = parts;
  bad.arguments[0].dtype = DType::kF32;
  ExpectRefused(bad, "only i32");
  bad = parts;
  bad.arguments[0].shape = {1};
  ExpectRefused(bad, "rank 0 is needed");
  bad = Normal({2}, {2}, {0}, 1);
  bad.attributes[3].floats = {-1};
  ExpectRefused(bad, "must not be negative");
  bad = Normal({2}, {2}, {0}, 1);
  bad.arguments[0].dtype = DType::kF64;
  ExpectRefused(bad, "only f32");
  ExpectRefused(Uniform({2}, 1, 1), "must be less than");
  ExpectRefused(Uniform({2}, 0, INFINITY), "finite");
  ExpectRefused(Uniform({2}, 0, 1e300), "within f32");
}

}  // namespace
}  // namespace bowline::kernels::testing
