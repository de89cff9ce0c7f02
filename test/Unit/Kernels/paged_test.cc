#include <sys/mman.h>
#include <unistd.h>

#include "test/Unit/Kernels/paged_problem.h"

namespace bowline::kernels::testing {
namespace {

struct Types {
  DType own, cache;  // of queries and of values to be written, and of the cache
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32},
                            {DType::kBF16, DType::kBF16},
                            {DType::kF32, DType::kBF16},
                            {DType::kF16, DType::kF16},
                            {DType::kF32, DType::kF16}};

using Ints32 = std::vector<int32_t>;

Ints32 RunPositions(PagedProblem p) {
  Ints32 positions(p.batch.tokens, -7);
  RunKernel(Positions(p), {p.batch.rows.data(), p.batch.lengths.data(), positions.data()});
  return positions;
}

Stored RunWrite(PagedProblem p, const Types& types, Stored cache, Stored values, int threads) {
  RunKernel(Write(p, types.cache, types.own, threads),
            {cache.data(), values.data(), p.batch.rows.data(), p.batch.lengths.data(), p.batch.blocks.data()});
  return cache;
}

Stored RunAttention(PagedProblem p, const Types& types, Stored query, Stored keys, Stored values, int threads) {
  Stored out = Unwritten(types.own, p.QueryElements());
  RunKernel(Attend(p, types.own, types.cache, threads), {query.data(), keys.data(), values.data(), p.batch.rows.data(),
                                                         p.batch.lengths.data(), p.batch.blocks.data(), out.data()});
  return out;
}

std::string Describe(const PagedProblem& p, const Types& types) {
  std::string text = "T " + std::to_string(p.batch.tokens) + " H " + std::to_string(p.heads.query_heads) + " K " +
                     std::to_string(p.heads.heads) + " D " + std::to_string(p.heads.head_dim) + " S " +
                     std::to_string(p.batch.block_size) + " M " + std::to_string(p.batch.table) + " window " +
                     std::to_string(p.heads.window) + " types " + std::string(NameOf(types.own)) + " " +
                     std::string(NameOf(types.cache));
  return text + " rows " + ::testing::PrintToString(p.batch.rows) + " lengths " +
         ::testing::PrintToString(p.batch.lengths);
}

// NaN is equal to NaN.
void ExpectAgreement(DType dtype, const Stored& actual, const std::vector<double>& expected, double bound) {
  const Floats values = actual.Values();
  int64_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(values[i] - expected[i]);
    const bool same = std::isnan(values[i]) && std::isnan(expected[i]);
    if (!same && !(error <= bound + StoringError(dtype, std::abs(expected[i]) + bound)) && wrong++ == 0) {
      ADD_FAILURE() << "element " << i << " is " << values[i] << ", expected " << expected[i] << " within " << bound;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << expected.size();
}

TEST(SequencePositions, AgreeWithTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const PagedProblem p = RandomPaged(random, 200);
    EXPECT_EQ(RunPositions(p), reference::SequencePositions(p.batch)) << Describe(p, kTypes[0]);
  }
}

using PagedTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, PagedTest, AllIsas(), IsaName);

TEST_P(PagedTest, WritingAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const PagedProblem p = RandomPaged(random, 200);
    const Types types = kTypes[i % 5];
    SCOPED_TRACE(Describe(p, types));
    const Stored before = RandomCache(random, types.cache, p),
                 values = RandomStored(random, types.own, p.batch.tokens * p.Width());
    const Stored one = RunWrite(p, types, before, values, 1);
    const auto expected = reference::CacheWrite(p.batch, p.Width(), before.Doubles(), values.Doubles());
    // Exactly the values, rounded once.
    EXPECT_TRUE(one == Stored(types.cache, Floats(expected.begin(), expected.end())));
    for (int threads : {2, 3, 4}) EXPECT_TRUE(RunWrite(p, types, before, values, threads) == one) << threads;
  }
}

TEST_P(PagedTest, AttentionAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 120; ++i) {
    PagedProblem p = RandomPaged(random, i % 4 == 0 ? 300 : 120);
    const int64_t positions = p.batch.table * p.batch.block_size;
    if (random() % 3 == 0) p.heads.window = 1 + static_cast<int64_t>(random() % (positions + 3));
    const Types types = kTypes[i % 5];
    SCOPED_TRACE(Describe(p, types));
    const Stored keys = RandomCache(random, types.cache, p), values = RandomCache(random, types.cache, p),
                 query = RandomStored(random, types.own, p.QueryElements());
    const auto expected =
        reference::PagedAttention(p.batch, p.heads, query.Doubles(), keys.Doubles(), values.Doubles());
    ForgetBlocksBeforeWindows(p);
    const Stored one = RunAttention(p, types, query, keys, values, 1);
    ExpectAgreement(types.own, one, expected, PagedBound(p.heads, positions, 1));
    for (int threads : {2, 3, 4}) {
      EXPECT_TRUE(RunAttention(p, types, query, keys, values, threads) == one) << threads;
    }
  }
}

// Of one row each, so long that they are divided into ranges of positions, which windows begin and end inside of.
TEST_P(PagedTest, LongContextsAgreeAndAreTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 15; ++i) {
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
    p.heads.head_dim = std::min<int64_t>(p.heads.head_dim, 40);
    if (i % 3 == 1) p.heads.window = 1 + static_cast<int64_t>(random() % 1100);
    const Types types = kTypes[i % 5];
    SCOPED_TRACE(Describe(p, types));
    const Stored keys = RandomCache(random, types.cache, p), values = RandomCache(random, types.cache, p),
                 query = RandomStored(random, types.own, p.QueryElements());
    const auto expected =
        reference::PagedAttention(p.batch, p.heads, query.Doubles(), keys.Doubles(), values.Doubles());
    ForgetBlocksBeforeWindows(p);
    const Stored one = RunAttention(p, types, query, keys, values, 1);
    ExpectAgreement(types.own, one, expected, PagedBound(p.heads, 2000, 1));
    for (int threads : {2, 3, 4}) {
      EXPECT_TRUE(RunAttention(p, types, query, keys, values, threads) == one) << threads;
    }
  }
}

// Scores in the hundreds: only maxima that are subtracted keep exponentials in range.
TEST_P(PagedTest, SharpDistributions) {
  std::mt19937_64 random(4);
  for (double scale : {1.0, -1.0}) {
    for (int i = 0; i < 10; ++i) {
      PagedProblem p = RandomPaged(random, 300);
      p.heads.head_dim = 16;
      p.heads.scale = scale;
      const Types types = kTypes[i % 5];
      SCOPED_TRACE(Describe(p, types));
      const Stored keys = RandomCache(random, types.cache, p, 10), values = RandomCache(random, types.cache, p),
                   query = RandomStored(random, types.own, p.QueryElements(), 10);
      const auto expected =
          reference::PagedAttention(p.batch, p.heads, query.Doubles(), keys.Doubles(), values.Doubles());
      ExpectAgreement(types.own, RunAttention(p, types, query, keys, values, 2), expected,
                      PagedBound(p.heads, 330, 10) / 10);
    }
  }
}

TEST_P(PagedTest, AWindowOfAllPositionsChangesNoBit) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10; ++i) {
    PagedProblem p = RandomPaged(random, 200);
    const Types types = kTypes[i % 5];
    const Stored keys = RandomCache(random, types.cache, p), values = RandomCache(random, types.cache, p),
                 query = RandomStored(random, types.own, p.QueryElements());
    const Stored whole = RunAttention(p, types, query, keys, values, 2);
    for (const int64_t window : {p.batch.table * p.batch.block_size, int64_t{1} << 40, INT64_MAX}) {
      p.heads.window = window;
      EXPECT_TRUE(RunAttention(p, types, query, keys, values, 2) == whole) << window;
    }
    Signature signature = Attend(p, types.own, types.cache, 1);
    signature.attributes[1] = Int("window", 0);
    EXPECT_TRUE(CreateKernel(signature).ok());
  }
}

// Sequence and position of each row, -1 for rows of none, with wrong numbers replaced as paged_sequences.h says.
struct Row {
  int64_t sequence = -1, position = 0;
};
std::vector<Row> RowsOf(const reference::PagedBatch& batch) {
  std::vector<Row> rows(batch.tokens);
  int64_t begin = std::clamp<int64_t>(batch.rows[0], 0, batch.tokens);
  for (size_t r = 0; r < batch.lengths.size(); ++r) {
    const int64_t end = std::clamp<int64_t>(batch.rows[r + 1], begin, batch.tokens);
    for (int64_t t = begin; t < end; ++t) rows[t] = {static_cast<int64_t>(r), batch.lengths[r] - (end - t)};
    begin = end;
  }
  return rows;
}

// Some token of a sequence that has rows; of no sequence where none has.
Row SomeToken(std::mt19937_64& random, const PagedProblem& p) {
  std::vector<Row> tokens;
  for (int64_t r = 0; r < p.Sequences(); ++r) {
    if (p.batch.rows[r] == p.batch.rows[r + 1]) continue;
    for (int64_t position = 0; position < p.batch.lengths[r]; ++position) tokens.push_back({r, position});
  }
  return tokens.empty() ? Row() : tokens[random() % tokens.size()];
}

// Rows of other sequences, those before the token and, with a window, those far behind it have the same bits whatever
// the key and the value of a token are, and those that see it have no number where these are none.
TEST_P(PagedTest, WhatIsNoNumberReachesOnlyRowsThatSeeIt) {
  std::mt19937_64 random(7);
  int64_t spared = 0;
  for (int i = 0; i < 120; ++i) {
    PagedProblem p = RandomPaged(random, 300);
    if (i % 3 == 0) p.heads.window = 1 + static_cast<int64_t>(random() % 40);
    const Types types = kTypes[i % 5];
    SCOPED_TRACE(Describe(p, types));
    const Row token = SomeToken(random, p);
    if (token.sequence < 0) continue;
    const Stored keys = RandomCache(random, types.cache, p), values = RandomCache(random, types.cache, p),
                 query = RandomStored(random, types.own, p.QueryElements());
    const int64_t block = p.batch.blocks[token.sequence * p.batch.table + token.position / p.batch.block_size];
    const int64_t place = block * p.batch.block_size + token.position % p.batch.block_size;
    const auto spoil = [&](const Stored& cache, bool whether) {
      Floats elements = cache.Values();
      const float bad = i % 2 == 0 ? NAN : i % 4 == 1 ? INFINITY : -INFINITY;
      if (whether) std::fill_n(elements.begin() + place * p.Width(), p.Width(), bad);
      return Stored(types.cache, elements);
    };
    const bool key = i % 7 < 3;
    const Floats want = RunAttention(p, types, query, keys, values, 2).Values(),
                 got = RunAttention(p, types, query, spoil(keys, key), spoil(values, !key), 2).Values();
    for (int64_t t = 0; t < p.batch.tokens; ++t) {
      const Row row = RowsOf(p.batch)[t];
      const bool sees = row.sequence == token.sequence && row.position >= token.position &&
                        (p.heads.window == 0 || row.position < token.position + p.heads.window);
      spared += sees ? 0 : 1;
      const int64_t width = p.heads.query_heads * p.heads.head_dim;
      for (int64_t k = t * width; k < (t + 1) * width; ++k) {
        if (!sees) {
          ASSERT_EQ(got[k], want[k]) << "element " << k << " of row " << t;
        } else if (!key || i % 2 == 0) {  // a score of minus infinity weighs nothing
          ASSERT_FALSE(std::isfinite(got[k])) << "element " << k << " of row " << t;
        }
      }
    }
  }
  EXPECT_GT(spared, 1000);
}

// A query that is no number spoils its own row alone.
TEST_P(PagedTest, AQueryThatIsNoNumberSpoilsItsRowAlone) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 60; ++i) {
    PagedProblem p = RandomPaged(random, 200);
    if (i % 3 == 0) p.heads.window = 1 + static_cast<int64_t>(random() % 40);
    const Types types = kTypes[i % 5];
    SCOPED_TRACE(Describe(p, types));
    const Stored keys = RandomCache(random, types.cache, p), values = RandomCache(random, types.cache, p),
                 query = RandomStored(random, types.own, p.QueryElements());
    const int64_t width = p.heads.query_heads * p.heads.head_dim,
                  bad = static_cast<int64_t>(random() % static_cast<uint64_t>(p.batch.tokens));
    Floats spoilt = query.Values();
    std::fill_n(spoilt.begin() + bad * width, width, i % 2 == 0 ? NAN : INFINITY);
    const Floats want = RunAttention(p, types, query, keys, values, 2).Values(),
                 got = RunAttention(p, types, Stored(types.own, spoilt), keys, values, 2).Values();
    for (size_t k = 0; k < got.size(); ++k) {
      if (static_cast<int64_t>(k) / width != bad) ASSERT_EQ(got[k], want[k]) << "element " << k;
    }
  }
}

// Memory of which nothing lies before or behind: an access there ends the process.
class Fenced {
 public:
  // The bytes begin at a page's beginning, or end at a page's end.
  Fenced(const void* bytes, size_t count, bool at_end)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), size_((count + page_ - 1) / page_ * page_ + 2 * page_) {
    memory_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + page_, size_ - 2 * page_, PROT_READ | PROT_WRITE), 0);
    data_ = at_end ? memory_ + size_ - page_ - count : memory_ + page_;
    std::memcpy(data_, bytes, count);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(memory_, size_); }

  void* data() { return data_; }

 private:
  size_t page_, size_;
  char *memory_, *data_;
};

// Changes some of the numbers to ones that are wrong, mostly.
void Spoil(std::mt19937_64& random, PagedProblem& p) {
  const std::vector<int32_t> hostile = {-1,
                                        INT32_MIN,
                                        INT32_MAX,
                                        INT32_MIN + 1,
                                        static_cast<int32_t>(p.blocks),
                                        static_cast<int32_t>(p.batch.tokens + 1),
                                        static_cast<int32_t>(p.batch.table * p.batch.block_size + 1),
                                        1 << 30,
                                        0};
  for (Ints32* numbers : {&p.batch.rows, &p.batch.lengths, &p.batch.blocks}) {
    for (int32_t& number : *numbers) {
      if (random() % 3 == 0)
        number = random() % 4 ? hostile[random() % hostile.size()] : static_cast<int32_t>(random());
    }
    if (random() % 5 == 0) std::reverse(numbers->begin(), numbers->end());
  }
}

// Each row as a sequence of its own, whose numbers are right.
PagedProblem Tamed(const PagedProblem& p) {
  PagedProblem tame = p;
  reference::PagedBatch& b = tame.batch;
  b.rows = {0};
  b.lengths.clear();
  b.blocks.clear();
  const int64_t last = b.table * b.block_size - 1;
  for (const Row& row : RowsOf(p.batch)) {
    b.rows.push_back(b.rows.back() + 1);
    b.lengths.push_back(row.sequence < 0 ? 0 : static_cast<int32_t>(std::clamp<int64_t>(row.position, 0, last) + 1));
    for (int64_t i = 0; i < b.table; ++i) {
      const int32_t block = row.sequence < 0 ? 0 : p.batch.blocks[row.sequence * b.table + i];
      b.blocks.push_back(std::clamp<int32_t>(block, 0, static_cast<int32_t>(p.blocks - 1)));
    }
  }
  return tame;
}

// Runs on arguments that end, or begin, where memory does.
void RunFenced(const Signature& signature, const std::vector<std::pair<void*, size_t>>& arguments, bool at_end) {
  std::vector<std::unique_ptr<Fenced>> fenced;
  std::vector<void*> addresses;
  for (const auto& [data, bytes] : arguments) {
    fenced.push_back(std::make_unique<Fenced>(data, bytes, at_end));
    addresses.push_back(fenced.back()->data());
  }
  RunKernel(signature, addresses);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (signature.arguments[i].access == Access::kRead) {
      EXPECT_EQ(std::memcmp(arguments[i].first, addresses[i], arguments[i].second), 0) << "wrote to argument " << i;
    }
    std::memcpy(arguments[i].first, addresses[i], arguments[i].second);
  }
}

TEST_P(PagedTest, WrongNumbersCountAsTheHeaderSaysAndNothingLeavesTheArguments) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 200; ++i) {
    PagedProblem p = RandomPaged(random, 120);
    if (random() % 3 == 0) p.heads.window = 1 + static_cast<int64_t>(random() % 50);
    const Types types = kTypes[i % 5];
    Spoil(random, p);
    SCOPED_TRACE(Describe(p, types));
    const bool at_end = i % 2 == 0;
    const auto bytes = [](Ints32& numbers) {
      return std::pair<void*, size_t>(numbers.data(), numbers.size() * sizeof(int32_t));
    };
    const auto of = [](Stored& stored, DType dtype, int64_t count) {
      return std::pair<void*, size_t>(stored.data(), static_cast<size_t>(count) * SizeOf(dtype));
    };
    reference::PagedBatch& b = p.batch;

    Ints32 positions(b.tokens, -7), wanted;
    for (const Row& row : RowsOf(b)) {
      wanted.push_back(row.sequence < 0 ? 0 : static_cast<int32_t>(std::max<int64_t>(0, row.position)));
    }
    RunFenced(Positions(p), {bytes(b.rows), bytes(b.lengths), bytes(positions)}, at_end);
    EXPECT_EQ(positions, wanted);

    // One thread: rows of two tables may go to one place, where the last one stays.
    Stored cache = RandomStored(random, types.cache, p.CacheElements()),
           values = RandomStored(random, types.own, b.tokens * p.Width());
    std::vector<double> expected = cache.Doubles();
    const std::vector<double> rounded = Stored(types.cache, values.Values()).Doubles();
    const std::vector<Row> rows = RowsOf(b);
    for (int64_t t = 0; t < b.tokens; ++t) {
      const auto [sequence, position] = rows[t];
      if (sequence < 0 || position < 0 || position >= b.table * b.block_size) continue;
      const int64_t block = b.blocks[sequence * b.table + position / b.block_size];
      if (block < 1 || block >= p.blocks) continue;
      const int64_t slot = block * b.block_size + position % b.block_size;
      std::copy_n(rounded.begin() + t * p.Width(), p.Width(), expected.begin() + slot * p.Width());
    }
    RunFenced(Write(p, types.cache, types.own, 1),
              {of(cache, types.cache, p.CacheElements()), of(values, types.own, b.tokens * p.Width()), bytes(b.rows),
               bytes(b.lengths), bytes(b.blocks)},
              at_end);
    EXPECT_EQ(cache.Doubles(), expected);

    Stored query = RandomStored(random, types.own, p.QueryElements()),
           keys = RandomStored(random, types.cache, p.CacheElements()),
           other = RandomStored(random, types.cache, p.CacheElements()), out = Unwritten(types.own, p.QueryElements());
    const PagedProblem tame = Tamed(p);
    const auto attention =
        reference::PagedAttention(tame.batch, tame.heads, query.Doubles(), keys.Doubles(), other.Doubles());
    RunFenced(Attend(p, types.own, types.cache, 1 + i % 4),
              {of(query, types.own, p.QueryElements()), of(keys, types.cache, p.CacheElements()),
               of(other, types.cache, p.CacheElements()), bytes(b.rows), bytes(b.lengths), bytes(b.blocks),
               of(out, types.own, p.QueryElements())},
              at_end);
    ExpectAgreement(types.own, out, attention, PagedBound(p.heads, b.table * b.block_size, 1));
  }
}

TEST(PagedRefusals, EverythingUnsafe) {
  std::mt19937_64 random(7);
  PagedProblem p = RandomPaged(random, 100);
  p.heads.heads = 2;
  p.heads.query_heads = 4;
  p.heads.head_dim = 8;
  p.heads.window = 3;
  const Signature positions = Positions(p), write = Write(p, DType::kF32, DType::kF32, 1),
                  attend = Attend(p, DType::kF32, DType::kF32, 1);
  for (const Signature& good : {positions, write, attend}) {
    ASSERT_TRUE(CreateKernel(good).ok());
    for (size_t i = 0; i < good.arguments.size(); ++i) {
      Signature bad = good;
      bad.arguments[i].shape.pop_back();
      ExpectRefused(bad, "is needed");
      bad = good;
      bad.arguments[i].shape[0] = 0;
      ExpectRefused(bad, "every extent must be at least 1");
      bad = good;
      bad.arguments[i].dtype = DType::kI64;
      ExpectRefused(bad, "is supported");
      bad = good;
      bad.arguments[i].access = good.arguments[i].access == Access::kRead ? Access::kWrite : Access::kRead;
      ExpectRefused(bad, "is declared");
    }
    Signature bad = good;
    bad.attributes.push_back(Int("causal", 1));
    ExpectRefused(bad, "has no attribute 'causal'");
    bad = good;
    bad.threads = 0;
    ExpectRefused(bad, "threads is 0");
    bad = good;
    bad.arguments.pop_back();
    ExpectRefused(bad, "it takes");
  }
  // Each extent that another one decides; those of keys and values together.
  const auto expect_refused = [](Signature signature, size_t argument, size_t extent, const std::string& message) {
    ++signature.arguments[argument].shape[extent];
    ExpectRefused(signature, message);
  };
  expect_refused(positions, 0, 0, "'lengths'");
  expect_refused(positions, 1, 0, "'lengths'");
  expect_refused(write, 0, 2, "'values'");
  expect_refused(write, 0, 3, "'values'");
  expect_refused(write, 1, 1, "'values'");
  expect_refused(write, 1, 2, "'values'");
  expect_refused(write, 2, 0, "'lengths'");
  expect_refused(write, 3, 0, "'lengths'");
  expect_refused(write, 4, 0, "'blocks'");
  expect_refused(attend, 0, 0, "'out'");
  expect_refused(attend, 0, 1, "'out'");
  expect_refused(attend, 0, 2, "'query'");
  for (size_t extent : {0, 1, 2}) expect_refused(attend, 1, extent, "'values'");
  expect_refused(attend, 1, 3, "'query'");
  for (size_t extent : {0, 1, 2, 3}) expect_refused(attend, 2, extent, "'values'");
  expect_refused(attend, 3, 0, "'lengths'");
  expect_refused(attend, 4, 0, "'lengths'");
  expect_refused(attend, 5, 0, "'blocks'");
  for (size_t extent : {0, 1, 2}) expect_refused(attend, 6, extent, "'out'");

  Signature bad = positions;
  bad.arguments[0].shape[0] = 1;
  ExpectRefused(bad, "'rows' must have 2 elements or more");
  bad = attend;
  bad.arguments[0].shape[1] = bad.arguments[6].shape[1] = 5;
  ExpectRefused(bad, "must be a multiple");
  // Types: one that is narrower than the written values, or another one of 16 bits.
  ExpectRefused(Write(p, DType::kF32, DType::kBF16, 1), "'values' is bf16; only f32");
  ExpectRefused(Write(p, DType::kF16, DType::kBF16, 1), "'values' is bf16; only f32");
  ExpectRefused(Attend(p, DType::kBF16, DType::kF32, 1), "'query' is bf16; only f32");
  ExpectRefused(Attend(p, DType::kF16, DType::kBF16, 1), "'query' is f16; only f32");
  bad = attend;
  bad.arguments[2].dtype = DType::kBF16;
  ExpectRefused(bad, "'values' is bf16; only f32");
  bad = attend;
  bad.arguments[6].dtype = DType::kBF16;
  ExpectRefused(bad, "'out' is bf16; only f32");
  // Numbers that i32 does not hold.
  constexpr int64_t kBeyond = int64_t{1} << 31;
  bad = positions;
  bad.arguments[2].shape[0] = kBeyond;
  ExpectRefused(bad, "more than 2^31 - 1 rows");
  bad = write;
  bad.arguments[1].shape[0] = kBeyond;
  ExpectRefused(bad, "more than 2^31 - 1 rows");
  bad = write;
  bad.arguments[0].shape[0] = kBeyond;
  ExpectRefused(bad, "more than 2^31 - 1 blocks");
  bad = write;
  bad.arguments[4].shape[1] = kBeyond;
  ExpectRefused(bad, "positions");
  // Attributes.
  bad = attend;
  bad.attributes = {Float("scale", NAN)};
  ExpectRefused(bad, "must be finite");
  bad.attributes = {Int("window", 3)};
  ExpectRefused(bad, "'scale' is missing");
  bad.attributes = {Float("scale", 1), Int("window", -1)};
  ExpectRefused(bad, "'window' must be at least 1, or 0 for none");
  bad.attributes = {Float("scale", 1), Float("window", 3)};
  ExpectRefused(bad, "'window'");
  bad.attributes = {Float("scale", 1), Float("scale", 1)};
  ExpectRefused(bad, "given twice");
}

}  // namespace
}  // namespace bowline::kernels::testing
