// Caches in rows of int8, which paged_test.cc has the other caches for.

#include <cfloat>

#include "test/Unit/Kernels/paged_problem.h"

namespace bowline::kernels::testing {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr DType kOwn[] = {DType::kF32, DType::kBF16, DType::kF16};

int64_t RowBytes(const PagedProblem& p) { return p.heads.head_dim + 4; }
int64_t CacheRows(const PagedProblem& p) { return p.blocks * p.batch.block_size * p.heads.heads; }

// By the definition of the format, in f64.
std::vector<double> ReadRow(const uint8_t* row, int64_t width) {
  float scale;
  std::memcpy(&scale, row, 4);
  std::vector<double> values;
  for (int64_t d = 0; d < width; ++d) {
    values.push_back(static_cast<double>(scale) * static_cast<int8_t>(row[4 + d]));
  }
  return values;
}

std::vector<double> ReadCache(const PagedProblem& p, const Bytes& cache) {
  std::vector<double> values;
  for (int64_t row = 0; row < CacheRows(p); ++row) {
    const std::vector<double> own = ReadRow(&cache[row * RowBytes(p)], p.heads.head_dim);
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

// Rows whose elements are at most `magnitude`; those that are no token of a sequence are NaN.
Bytes RandomInt8Cache(std::mt19937_64& random, const PagedProblem& p, float magnitude = 1.0f) {
  Bytes cache(CacheRows(p) * RowBytes(p));
  const std::vector<bool> used = p.Used();
  for (int64_t row = 0; row < CacheRows(p); ++row) {
    uint8_t* to = &cache[row * RowBytes(p)];
    const float part = static_cast<float>(random() % 1000) * 1e-3f;
    const float scale = used[row / p.heads.heads] ? magnitude * part / 127 : NAN;
    std::memcpy(to, &scale, 4);
    for (int64_t d = 0; d < p.heads.head_dim; ++d) {
      to[4 + d] = static_cast<uint8_t>(static_cast<int>(random() % 255) - 127);
    }
  }
  return cache;
}

Bytes RunWrite(PagedProblem p, DType own, Bytes cache, Stored values, int threads) {
  RunKernel(Write(p, DType::kU8, own, threads),
            {cache.data(), values.data(), p.batch.rows.data(), p.batch.lengths.data(), p.batch.blocks.data()});
  return cache;
}

Stored RunAttention(PagedProblem p, DType own, Stored query, Bytes keys, Bytes values, int threads) {
  Stored out = Unwritten(own, p.QueryElements());
  RunKernel(Attend(p, own, DType::kU8, threads), {query.data(), keys.data(), values.data(), p.batch.rows.data(),
                                                  p.batch.lengths.data(), p.batch.blocks.data(), out.data()});
  return out;
}

std::string Describe(const PagedProblem& p, DType own) {
  return "T " + std::to_string(p.batch.tokens) + " H " + std::to_string(p.heads.query_heads) + " K " +
         std::to_string(p.heads.heads) + " D " + std::to_string(p.heads.head_dim) + " S " +
         std::to_string(p.batch.block_size) + " M " + std::to_string(p.batch.table) + " window " +
         std::to_string(p.heads.window) + " " + std::string(NameOf(own)) + " rows " +
         ::testing::PrintToString(p.batch.rows) + " lengths " + ::testing::PrintToString(p.batch.lengths);
}

// The rows that a row `values` may become: the scale rounded once, and each element the nearest or, where the quotient
// was rounded, one that is as near but for 127 units in the last place of f32.
void ExpectRounded(const double* values, int64_t width, const uint8_t* row) {
  double largest = 0;
  for (int64_t d = 0; d < width; ++d) largest = std::max(largest, std::abs(values[d]));
  float scale;
  std::memcpy(&scale, row, 4);
  ASSERT_EQ(scale, static_cast<float>(largest / 127));
  for (int64_t d = 0; d < width; ++d) {
    const auto whole = static_cast<int8_t>(row[4 + d]);
    ASSERT_GE(whole, -127);
    if (scale == 0) {
      ASSERT_EQ(whole, 0);
    } else {
      ASSERT_LE(std::abs(whole - values[d] / scale), 0.5 + 127 * 0x1p-24) << "element " << d << " is " << values[d];
    }
  }
}

TEST(PagedInt8, WritingRoundsToHalfAScaleAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 90; ++i) {
    const PagedProblem p = RandomPaged(random, 200);
    const DType own = kOwn[i % 3];
    SCOPED_TRACE(Describe(p, own));
    const int64_t width = p.heads.head_dim, heads = p.heads.heads;
    const Bytes before = RandomInt8Cache(random, p);
    const Stored values = RandomStored(random, own, p.batch.tokens * p.Width(), i % 2 ? 1.0f : 1000.0f);
    const Bytes one = RunWrite(p, own, before, values, 1);
    // Where each row of the cache comes from, by the reference of caches that round nothing.
    std::vector<double> numbers(p.batch.tokens);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const std::vector<double> source =
        reference::CacheWrite(p.batch, 1, std::vector<double>(p.blocks * p.batch.block_size, -1.0), numbers);
    const std::vector<double> given = values.Doubles();
    for (int64_t row = 0; row < CacheRows(p); ++row) {
      const auto token = static_cast<int64_t>(source[row / heads]);
      const uint8_t* stored = &one[row * RowBytes(p)];
      if (token < 0) {
        ASSERT_EQ(std::memcmp(stored, &before[row * RowBytes(p)], RowBytes(p)), 0) << "row " << row << " was written";
      } else {
        ASSERT_NO_FATAL_FAILURE(ExpectRounded(&given[(token * heads + row % heads) * width], width, stored));
      }
    }
    for (int threads : {2, 3, 4}) EXPECT_EQ(RunWrite(p, own, before, values, threads), one) << threads;
  }
}

// One token, of one head.
PagedProblem OneRow(int64_t width) {
  PagedProblem p;
  p.batch = {.tokens = 1, .rows = {0, 1}, .lengths = {1}, .blocks = {1}, .table = 1, .block_size = 1};
  p.heads = {.query_heads = 1, .heads = 1, .head_dim = width, .scale = 1};
  p.blocks = 2;
  return p;
}

// Scale and whole numbers of one row of f32.
std::pair<float, std::vector<int>> Round(const Floats& row) {
  const PagedProblem p = OneRow(static_cast<int64_t>(row.size()));
  const Bytes cache = RunWrite(p, DType::kF32, Bytes(2 * RowBytes(p), 7), Stored(DType::kF32, row), 1);
  float scale;
  std::memcpy(&scale, &cache[RowBytes(p)], 4);
  std::vector<int> whole;
  for (size_t d = 0; d < row.size(); ++d) whole.push_back(static_cast<int8_t>(cache[RowBytes(p) + 4 + d]));
  return {scale, whole};
}

TEST(PagedInt8, RowsRoundAsTheFormatSays) {
  using Row = std::pair<float, std::vector<int>>;
  // Ties go to the even number; the largest is 127 of either sign.
  EXPECT_EQ(Round({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.4999f, -3.51f}),
            Row(1.0f, {127, 0, 2, 2, 0, -2, -2, 0, -4}));
  EXPECT_EQ(Round({-254, 1, 3, 200}), Row(2.0f, {-127, 0, 2, 100}));
  EXPECT_EQ(Round({0, -0.0f, 0}), Row(0.0f, {0, 0, 0}));
  // A scale that would be subnormal is zero.
  EXPECT_EQ(Round({126 * FLT_MIN, -FLT_MIN}), Row(0.0f, {0, 0}));
  EXPECT_EQ(Round({127 * FLT_MIN, -FLT_MIN}), Row(FLT_MIN, {127, -1}));
  EXPECT_EQ(Round({FLT_MAX, -FLT_MAX}).second, (std::vector<int>{127, -127}));
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const Floats& row : {Floats{1, bad, 2}, Floats{bad}, Floats{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bad}}) {
      EXPECT_TRUE(std::isnan(Round(row).first)) << bad;
    }
  }
}

using PagedInt8Test = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, PagedInt8Test, AllIsas(), IsaName);

// The bound of caches that are numbers already, and two roundings more in scores and in values: products with scales.
double Int8Bound(const reference::PagedHeads& heads, double most_seen, double magnitude) {
  const double s = std::abs(heads.scale) * static_cast<double>(heads.head_dim) * magnitude * magnitude;
  return PagedBound(heads, most_seen, magnitude) + 2 * 0x1p-24 * (2 * s + 2) * magnitude;
}

void ExpectAttention(const PagedProblem& p, DType own, const Stored& query, const Bytes& keys, const Bytes& values,
                     const Stored& actual) {
  const auto expected =
      reference::PagedAttention(p.batch, p.heads, query.Doubles(), ReadCache(p, keys), ReadCache(p, values));
  const double bound = Int8Bound(p.heads, static_cast<double>(p.batch.table * p.batch.block_size), 1);
  const Floats out = actual.Values();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::abs(out[i] - expected[i]), bound + StoringError(own, std::abs(expected[i]) + bound))
        << "element " << i << " is " << out[i] << ", expected " << expected[i];
  }
}

TEST_P(PagedInt8Test, AttentionAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 120; ++i) {
    PagedProblem p = RandomPaged(random, i % 4 == 0 ? 300 : 120);
    const int64_t positions = p.batch.table * p.batch.block_size;
    if (random() % 3 == 0) p.heads.window = 1 + static_cast<int64_t>(random() % (positions + 3));
    const DType own = kOwn[i % 3];
    SCOPED_TRACE(Describe(p, own));
    const Bytes keys = RandomInt8Cache(random, p), values = RandomInt8Cache(random, p);
    const Stored query = RandomStored(random, own, p.QueryElements()),
                 one = RunAttention(p, own, query, keys, values, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectAttention(p, own, query, keys, values, one));
    for (int threads : {2, 3, 4}) EXPECT_TRUE(RunAttention(p, own, query, keys, values, threads) == one) << threads;
  }
}

// Of one row each, so long that they are divided into ranges of positions.
TEST_P(PagedInt8Test, LongContextsAgree) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 9; ++i) {
    PagedProblem p = RandomPaged(random, 100);
    reference::PagedBatch& b = p.batch;
    b.table = (2000 + b.block_size - 1) / b.block_size;
    b.lengths = {i % 2 == 0 ? 512 : 513, 1 + static_cast<int32_t>(random() % 2000), 1024, 2000};
    b.rows = {0, 1, 2, 3, 4};
    b.tokens = 5;
    b.blocks.resize(4 * b.table);
    std::iota(b.blocks.begin(), b.blocks.end(), 1);
    std::shuffle(b.blocks.begin(), b.blocks.end(), random);
    p.blocks = 4 * b.table + 1;
    if (i % 3 == 1) p.heads.window = 1 + static_cast<int64_t>(random() % 1100);
    const DType own = kOwn[i % 3];
    SCOPED_TRACE(Describe(p, own));
    const Bytes keys = RandomInt8Cache(random, p), values = RandomInt8Cache(random, p);
    const Stored query = RandomStored(random, own, p.QueryElements());
    ASSERT_NO_FATAL_FAILURE(
        ExpectAttention(p, own, query, keys, values, RunAttention(p, own, query, keys, values, 1 + i % 3)));
  }
}

// From written values to attention's results. A written key is off by half a scale in each element, a score
// by as much of the sum of the query's magnitudes, and with scores that are off by e a mean of values up to 1 by
// exp(2 e) - 1 at most; values are off by half a scale too.
TEST_P(PagedInt8Test, WhatIsWrittenIsReadToHalfAScale) {
  std::mt19937_64 random(24);
  for (int i = 0; i < 60; ++i) {
    PagedProblem p = RandomPaged(random, 100);
    const DType own = kOwn[i % 3];
    SCOPED_TRACE(Describe(p, own));
    // All that sequences have is written in this step.
    reference::PagedBatch& b = p.batch;
    b.rows = {0};
    for (int32_t length : b.lengths) b.rows.push_back(b.rows.back() + length);
    b.tokens = b.rows.back() + 1;
    const Stored keys = RandomStored(random, own, b.tokens * p.Width()),
                 values = RandomStored(random, own, b.tokens * p.Width()),
                 query = RandomStored(random, own, p.QueryElements());
    const Bytes empty(CacheRows(p) * RowBytes(p), 0xff);
    const Stored out =
        RunAttention(p, own, query, RunWrite(p, own, empty, keys, 1), RunWrite(p, own, empty, values, 1), 2);
    const std::vector<double> none(p.CacheElements(), NAN);
    const auto expected = reference::PagedAttention(b, p.heads, query.Doubles(),
                                                    reference::CacheWrite(b, p.Width(), none, keys.Doubles()),
                                                    reference::CacheWrite(b, p.Width(), none, values.Doubles()));
    const double half = 0.5 / 127 * 1.0001, score = p.heads.scale * static_cast<double>(p.heads.head_dim) * half;
    const double bound = std::expm1(2 * score) + half + Int8Bound(p.heads, 330, 1);
    const Floats actual = out.Values();
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_LE(std::abs(actual[k] - expected[k]), bound + StoringError(own, std::abs(expected[k]) + bound)) << k;
    }
  }
}

// One element of one key, or value, that is no number: each query that sees it gets none, whichever kernel computes it,
// and those before it get the bits that they get without it.
TEST_P(PagedInt8Test, WhatIsNoNumberIsSeenByThoseThatSeeItsPosition) {
  std::mt19937_64 random(25);
  for (int i = 0; i < 48; ++i) {
    PagedProblem p = OneRow(i % 4 == 0 ? 16 : 1 + static_cast<int64_t>(random() % 70));
    const int64_t length = 1 + static_cast<int64_t>(random() % 700), rows = i % 2 == 0 ? 1 : length;
    p.batch = {.tokens = rows,
               .rows = {0, static_cast<int32_t>(rows)},
               .lengths = {static_cast<int32_t>(length)},
               .blocks = {},
               .table = (length + 15) / 16,
               .block_size = 16};
    p.blocks = p.batch.table + 1;
    p.batch.blocks.resize(p.batch.table);
    std::iota(p.batch.blocks.begin(), p.batch.blocks.end(), 1);
    p.heads.query_heads = 1 + static_cast<int64_t>(random() % 5);
    const float bad = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    const auto place = static_cast<int64_t>(random() % length);
    PagedProblem writing = p;
    writing.batch.tokens = length;
    writing.batch.rows = {0, static_cast<int32_t>(length)};
    const Floats given[2] = {RandomFloats(random, length * p.Width()), RandomFloats(random, length * p.Width())};
    const auto written = [&](int which, bool spoilt) {
      Floats values = given[which];
      if (spoilt) values[place * p.Width() + static_cast<int64_t>(random() % p.Width())] = bad;
      return RunWrite(writing, DType::kF32, Bytes(CacheRows(p) * RowBytes(p), 0xff), Stored(DType::kF32, values), 1);
    };
    const Stored query = RandomStored(random, DType::kF32, p.QueryElements());
    const auto run = [&](const Bytes& keys, const Bytes& values) {
      return RunAttention(p, DType::kF32, query, keys, values, 1).Values();
    };
    const Floats out = run(written(0, i % 8 < 4), written(1, i % 8 >= 4)),
                 without = run(written(0, false), written(1, false));
    for (size_t k = 0; k < out.size(); ++k) {
      const int64_t row = static_cast<int64_t>(k) / (p.heads.query_heads * p.heads.head_dim);
      if (length - rows + row < place) {
        ASSERT_EQ(out[k], without[k]) << "element " << k << ", whose row does not see position " << place;
        continue;
      }
      ASSERT_FALSE(std::isfinite(out[k]))
          << "element " << k << " of " << length << " positions, of which " << place << " has " << bad;
    }
  }
}

TEST(PagedInt8, RefusesWhatItCannotRead) {
  std::mt19937_64 random(26);
  PagedProblem p = RandomPaged(random, 100);
  p.heads.heads = 2;
  p.heads.query_heads = 4;
  p.heads.head_dim = 8;
  const Signature write = Write(p, DType::kU8, DType::kF32, 1), attend = Attend(p, DType::kF32, DType::kU8, 1);
  for (const Signature& good : {write, attend}) {
    ASSERT_TRUE(CreateKernel(good).ok());
    const size_t cache = good.kernel == "cache_write" ? 0 : 1;
    Signature bad = good;
    bad.attributes.back() = Format("int4");
    ExpectRefused(bad, "attribute 'format' is 'int4'; it must be 'int8', or left out");
    bad.attributes.back() = Int("format", 8);
    ExpectRefused(bad, "it must be 'int8', or left out");
    bad = good;
    bad.attributes.pop_back();  // bytes of no format
    ExpectRefused(bad, "is supported");
    bad = good;
    bad.arguments[cache].dtype = DType::kI8;
    ExpectRefused(bad, "is supported");
    bad = good;
    for (TensorSpec& argument : bad.arguments) {
      if (argument.dtype == DType::kU8) argument.shape[3] = 4;
    }
    ExpectRefused(bad, "rows of int8 have 4 bytes of a scale, and elements behind it, but 4 bytes");
    bad = good;
    ++bad.arguments[cache].shape[3];
    EXPECT_FALSE(CreateKernel(bad).ok());
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
