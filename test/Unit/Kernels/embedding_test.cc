#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/kernel_testing.h"

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

Signature Gather(const Size& s, int threads) {
  return {
      "gather_rows", {}, {In({s.rows, s.columns}), In({s.tokens}, DType::kI32), Out({s.tokens, s.columns})}, threads};
}
Signature Scatter(const Size& s, int threads) {
  return {"scatter_add_rows",
          {},
          {In({s.tokens, s.columns}), In({s.tokens}, DType::kI32), Out({s.rows, s.columns})},
          threads};
}

TEST(Embedding, GatherIsExact) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const Size s = RandomSize(random);
    Floats table = RandomFloats(random, s.rows * s.columns), out(s.tokens * s.columns, NAN);
    std::vector<int32_t> ids = RandomIds(random, s);
    RunKernel(Gather(s, 1 + i % 3), {table.data(), ids.data(), out.data()});
    EXPECT_EQ(ToDouble(out), reference::GatherRows(ToDouble(table), s.columns, ids));
  }
}

TEST(Embedding, ScatterAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const Size s = RandomSize(random);
    Floats updates = RandomFloats(random, s.tokens * s.columns), expected_bits(s.rows * s.columns, NAN);
    std::vector<int32_t> ids = RandomIds(random, s);
    RunKernel(Scatter(s, 1), {updates.data(), ids.data(), expected_bits.data()});
    EXPECT_LT(ScaledError(expected_bits, reference::ScatterAddRows(ToDouble(updates), s.rows, s.columns, ids)), 1e-6);
    for (int threads : {2, 3, 5}) {
      Floats out(s.rows * s.columns, NAN);
      RunKernel(Scatter(s, threads), {updates.data(), ids.data(), out.data()});
      EXPECT_TRUE(SameBits(out, expected_bits)) << threads << " threads";
    }
  }
}

TEST(Embedding, HigherRanks) {
  Floats table = {0, 1, 2, 3, 10, 11, 12, 13}, out(2 * 1 * 2 * 2);
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
    ExpectRefused(bad, "it has none");
  }
  ExpectRefused({"gather_rows", {}, {In({}), In({1}, DType::kI32), Out({1})}, 1}, "at least one dimension");
}

}  // namespace
}  // namespace bowline::kernels::testing
