#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

struct Size {
  int64_t rows, tokens, columns;
};

Size RandomSize(std::mt19937_64& random) {
  const std::vector<int64_t> columns = {1, 2, 7, 16, 33, 64, 129};
  return {1 + static_cast<int64_t>(random() % 50), 1 + static_cast<int64_t>(random() % 200),
          columns[random() % columns.size()]};
}

std::vector<int32_t> RandomIds(std::mt19937_64& random, const Size& s) {
  std::vector<int32_t> ids(s.tokens);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % s.rows);
  return ids;
}

Signature Gather(const Size& s, int threads, DType dtype = DType::kF32) {
  return {"gather_rows",
          {},
          {In({s.rows, s.columns}, dtype), In({s.tokens}, DType::kI32), Out({s.tokens, s.columns}, dtype)},
          threads};
}
Signature Scatter(const Size& s, int threads, DType updates = DType::kF32, DType out = DType::kF32) {
  return {"scatter_add_rows",
          {},
          {In({s.tokens, s.columns}, updates), In({s.tokens}, DType::kI32), Out({s.rows, s.columns}, out)},
          threads};
}

TEST(Embedding, GatherIsExact) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const Size s = RandomSize(random);
    const DType dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16;
    Stored table = RandomStored(random, dtype, s.rows * s.columns), out = Unwritten(dtype, s.tokens * s.columns);
    std::vector<int32_t> ids = RandomIds(random, s);
    RunKernel(Gather(s, 1 + i % 3, dtype), {table.data(), ids.data(), out.data()});
    EXPECT_EQ(out.Doubles(), reference::GatherRows(table.Doubles(), s.columns, ids));
  }
}

// Numbers of rows are data: the nearest row takes the place of one that is not there.
TEST(Embedding, NumbersOutOfRangeCountAsTheNearest) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 40; ++i) {
    const Size s = RandomSize(random);
    std::vector<int32_t> wrong(s.tokens), right;
    for (int32_t& id : wrong) id = static_cast<int32_t>(i % 2 == 0 ? random() : random() % (3 * s.rows) - s.rows);
    for (const int32_t id : wrong) right.push_back(static_cast<int32_t>(std::clamp<int64_t>(id, 0, s.rows - 1)));
    Floats table = RandomFloats(random, s.rows * s.columns), updates = RandomFloats(random, s.tokens * s.columns);
    Floats first(s.tokens * s.columns, NAN), second = first, sums(s.rows * s.columns, NAN), others = sums;
    RunKernel(Gather(s, 2), {table.data(), wrong.data(), first.data()});
    RunKernel(Gather(s, 2), {table.data(), right.data(), second.data()});
    EXPECT_TRUE(SameBits(first, second));
    RunKernel(Scatter(s, 2), {updates.data(), wrong.data(), sums.data()});
    RunKernel(Scatter(s, 2), {updates.data(), right.data(), others.data()});
    EXPECT_TRUE(SameBits(sums, others));
  }
}

// The check says which is the first that is no row, and nothing where words say something already.
TEST(CheckIds, FindsTheFirstThatIsNoRow) {
  std::mt19937_64 random(10);
  for (int i = 0; i < 200; ++i) {
    const Size s = RandomSize(random);
    std::vector<int32_t> ids = RandomIds(random, s), fault = {0, 0}, expected = {0, 0};
    const int32_t wrong[] = {-1, static_cast<int32_t>(s.rows), INT32_MIN, INT32_MAX};
    for (uint64_t n = random() % 3; n > 0; --n) ids[random() % s.tokens] = wrong[random() % 4];
    for (size_t n = ids.size(); n-- > 0;) {
      if (ids[n] < 0 || ids[n] >= s.rows) expected = {static_cast<int32_t>(n) + 1, ids[n]};
    }
    const Signature signature = {
        "check_ids", {Int("rows", s.rows)}, {In({s.tokens}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}};
    RunKernel(signature, {ids.data(), fault.data()});
    EXPECT_EQ(fault, expected) << ::testing::PrintToString(ids);
    fault = {5, 6};
    RunKernel(signature, {ids.data(), fault.data()});
    EXPECT_EQ(fault, (std::vector<int32_t>{5, 6}));
  }
}

// The same with a count of valid rows, of which only the last element counts.
Signature WithCount(Signature signature, int64_t elements) {
  signature.attributes.push_back(Int("leaves_rows_out", 1));
  signature.arguments.insert(signature.arguments.end() - 1, In({elements}, DType::kI32));
  return signature;
}

// Behind the count there may be anything: no row of the table, no number, and in the result it stays.
TEST(Embedding, RowsBehindTheCountAreLeftAlone) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 120; ++i) {
    const Size s = RandomSize(random);
    const int threads = 1 + i % 3;
    const int64_t elements = 1 + i % 4;
    std::vector<int32_t> count(elements, 1 << 30), ids = RandomIds(random, s);
    count.back() = i % 10 == 0 ? -7 : i % 10 == 1 ? INT32_MAX : static_cast<int32_t>(random() % (s.tokens + 1));
    const int64_t valid = std::clamp<int64_t>(count.back(), 0, s.tokens), there = valid * s.columns;
    Floats table = RandomFloats(random, s.rows * s.columns), updates = RandomFloats(random, s.tokens * s.columns);
    for (int64_t token = valid; token < s.tokens; ++token) ids[token] = static_cast<int32_t>(random());
    std::fill(updates.begin() + there, updates.end(), NAN);
    const std::vector<int32_t> own(ids.begin(), ids.begin() + valid);

    Floats out(s.tokens * s.columns, 17);
    RunKernel(WithCount(Gather(s, threads), elements), {table.data(), ids.data(), count.data(), out.data()});
    EXPECT_EQ(ToDouble({out.begin(), out.begin() + there}), reference::GatherRows(ToDouble(table), s.columns, own));
    EXPECT_EQ(std::count(out.begin() + there, out.end(), 17.0f), s.tokens * s.columns - there);

    Floats sums(s.rows * s.columns, NAN);
    RunKernel(WithCount(Scatter(s, threads), elements), {updates.data(), ids.data(), count.data(), sums.data()});
    EXPECT_LT(ErrorBeyondRounding(DType::kF32, sums,
                                  reference::ScatterAddRows(ToDouble({updates.begin(), updates.begin() + there}),
                                                            s.rows, s.columns, own)),
              1e-6);
  }
}

// Rows that are counted are the first dimension of the numbers.
TEST(Embedding, ACountedRowMayHaveSeveralTokens) {
  Floats table = {0, 1, 10, 11}, out(12, -1);
  std::vector<int32_t> ids = {1, 0, 1, 1, 99, 99}, count = {2};
  RunKernel({"gather_rows",
             {Int("leaves_rows_out", 1)},
             {In({2, 2}), In({3, 2}, DType::kI32), In({1}, DType::kI32), Out({3, 2, 2})},
             1},
            {table.data(), ids.data(), count.data(), out.data()});
  EXPECT_THAT(out, ::testing::ElementsAre(10, 11, 0, 1, 10, 11, 10, 11, -1, -1, -1, -1));
}

TEST(Embedding, SignaturesWithACountAreChecked) {
  const Signature gather = WithCount(Gather({5, 6, 7}, 1), 3);
  Signature other = gather;
  other.attributes[0].ints = {2};
  EXPECT_THAT(std::string(CreateKernel(other).status().message()), ::testing::HasSubstr("'leaves_rows_out' must be 1"));
  other = gather;
  other.arguments.erase(other.arguments.begin() + 2);
  EXPECT_THAT(std::string(CreateKernel(other).status().message()), ::testing::HasSubstr("table, ids, count, out"));
  other = gather;
  other.arguments[2].shape = {1, 3};
  EXPECT_THAT(std::string(CreateKernel(other).status().message()), ::testing::HasSubstr("argument 'count' has rank 2"));
  other = {
      "gather_rows", {Int("leaves_rows_out", 1)}, {In({5, 7}), In({}, DType::kI32), In({1}, DType::kI32), Out({7})}, 1};
  EXPECT_THAT(std::string(CreateKernel(other).status().message()),
              ::testing::HasSubstr("'ids' must have at least one"));
}

TEST(Embedding, GatherOfIntegers) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 40; ++i) {
    const Size s = RandomSize(random);
    std::vector<int32_t> table(s.rows * s.columns), out(s.tokens * s.columns), ids = RandomIds(random, s);
    for (int32_t& element : table) element = static_cast<int32_t>(random());
    RunKernel(Gather(s, 1 + i % 3, DType::kI32), {table.data(), ids.data(), out.data()});
    for (int64_t e = 0; e < s.tokens * s.columns; ++e) {
      ASSERT_EQ(out[e], table[ids[e / s.columns] * s.columns + e % s.columns]);
    }
  }
}

void CheckScatter(std::mt19937_64& random, const Size& s, DType updates_type, DType out_type) {
  Stored updates = RandomStored(random, updates_type, s.tokens * s.columns);
  Stored one = Unwritten(out_type, s.rows * s.columns);
  std::vector<int32_t> ids = RandomIds(random, s);
  RunKernel(Scatter(s, 1, updates_type, out_type), {updates.data(), ids.data(), one.data()});
  const auto expected = reference::ScatterAddRows(updates.Doubles(), s.rows, s.columns, ids);
  EXPECT_LT(ErrorBeyondRounding(out_type, one.Values(), expected), 1e-6);
  for (int threads : {2, 3, 5}) {
    Stored out = Unwritten(out_type, s.rows * s.columns);
    RunKernel(Scatter(s, threads, updates_type, out_type), {updates.data(), ids.data(), out.data()});
    EXPECT_TRUE(out == one) << threads << " threads";
  }
}

TEST(Embedding, ScatterAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const Size s = RandomSize(random);
    CheckScatter(random, s, DType::kF32, DType::kF32);
    CheckScatter(random, s, DType::kBF16, DType::kF32);
    CheckScatter(random, s, DType::kBF16, DType::kBF16);
  }
}

// Mostly rows without tokens.
TEST(Embedding, ScatterIntoLargeTables) {
  std::mt19937_64 random(3);
  for (int64_t columns : {768, 767, 12}) {
    const Size s = {(20 << 20) / 4 / columns, 300, columns};
    CheckScatter(random, s, DType::kF32, DType::kF32);
    CheckScatter(random, {2 * s.rows, 300, columns}, DType::kBF16, DType::kBF16);
  }
}

// Adding 2^-9 to 1 changes nothing in bf16: the sum must be kept in f32.
TEST(Embedding, ScatterOfBf16SumsInF32) {
  Floats values(257, 0x1p-9f);
  values[0] = 1;
  Stored updates(DType::kBF16, values), out = Unwritten(DType::kBF16, 1);
  std::vector<int32_t> ids(257, 0);
  RunKernel(Scatter({1, 257, 1}, 1, DType::kBF16, DType::kBF16), {updates.data(), ids.data(), out.data()});
  EXPECT_THAT(out.Values(), ::testing::ElementsAre(1.5f));
}

TEST(Embedding, HigherRanks) {
  Floats table = {0, 1, 2, 3, 10, 11, 12, 13}, out(8);
  std::vector<int32_t> ids = {1, 0};
  RunKernel({"gather_rows", {}, {In({2, 2, 2}), In({2, 1}, DType::kI32), Out({2, 1, 2, 2})}, 1},
            {table.data(), ids.data(), out.data()});
  EXPECT_THAT(out, ::testing::ElementsAre(10, 11, 12, 13, 0, 1, 2, 3));
}

TEST(EmbeddingRefusals, EverythingUnsafe) {
  const Size s = {5, 7, 3};
  for (const Signature& good : {Gather(s, 1), Scatter(s, 1)}) {
    ASSERT_TRUE(CreateKernel(good).ok());
    Signature bad = good;
    bad.arguments[0].shape[1] = 4;
    ExpectRefused(bad, "it must be the shape of 'ids'");
    bad = good;
    bad.arguments[1].shape = {8};
    ExpectRefused(bad, "it must be the shape of 'ids'");
    bad = good;
    bad.arguments[1].dtype = DType::kI64;
    ExpectRefused(bad, "'ids' is i64; only i32");
    bad = good;
    bad.arguments[2].access = Access::kRead;
    ExpectRefused(bad, "is declared read");
    bad = good;
    bad.attributes = {Int("axis", 0)};
    ExpectRefused(bad, "it has in_range");
  }
  Signature mixed = Gather(s, 1, DType::kBF16);
  mixed.arguments[2].dtype = DType::kF32;
  ExpectRefused(mixed, "'out' is f32; only bf16");
  ExpectRefused(Scatter(s, 1, DType::kF32, DType::kBF16), "'out' is bf16; only f32");
  ExpectRefused(Scatter(s, 1, DType::kF64, DType::kF32), "'updates' is f64");
  ExpectRefused({"gather_rows", {}, {In({}), In({1}, DType::kI32), Out({1})}, 1}, "at least one dimension");
}

}  // namespace
}  // namespace bowline::kernels::testing
