#include "kernels/cpu/grouped/grouped_reference.h"
#include "kernels/registry/data_check.h"
#include "test/Unit/Kernels/grouped_problem.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

using reference::GroupedSize;

Signature Dot(const GroupedSize& s, size_t offsets, bool transposed, int threads, DType operands = DType::kF32,
              DType out = DType::kF32) {
  return {
      "grouped_matmul",
      {Int("transposed", transposed)},
      {In({s.rows, s.k}, operands),
       In(transposed ? std::vector<int64_t>{s.groups, s.n, s.k} : std::vector<int64_t>{s.groups, s.k, s.n}, operands),
       In({static_cast<int64_t>(offsets)}, DType::kI32), Out({s.rows, s.n}, out)},
      threads};
}
Signature Outer(const GroupedSize& s, size_t offsets, int threads, DType operands = DType::kF32,
                DType out = DType::kF32) {
  return {"grouped_outer",
          {},
          {In({s.rows, s.k}, operands), In({s.rows, s.n}, operands), In({static_cast<int64_t>(offsets)}, DType::kI32),
           Out({s.groups, s.k, s.n}, out)},
          threads};
}

// Products of numbers of [-1, 1], summed in f32: gemm.h bounds the error by about (k + 2) 2^-24 times the sum of their
// absolute values, which is at most k; ErrorBeyondRounding divides by 1 or more.
double BoundOf(int64_t summands) {
  return static_cast<double>(summands + summands / 768 + 3) * 0x1p-24 * static_cast<double>(summands) * 1.01;
}

struct Types {
  DType operands, out;
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32},
                            {DType::kBF16, DType::kF32},
                            {DType::kBF16, DType::kBF16},
                            {DType::kF16, DType::kF32},
                            {DType::kF16, DType::kF16}};

using GroupedTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, GroupedTest, AllIsas(), IsaName);

TEST_P(GroupedTest, DotAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const GroupedSize s = RandomGroups(random);
    const Types types = kTypes[i % 3];
    const bool transposed = random() % 2;
    std::vector<int32_t> offsets = RandomOffsets(random, s);
    Stored rows = RandomStored(random, types.operands, s.rows * s.k);
    Stored matrices = RandomStored(random, types.operands, s.groups * s.k * s.n);
    Stored one = Unwritten(types.out, s.rows * s.n);
    RunKernel(Dot(s, offsets.size(), transposed, 1, types.operands, types.out),
              {rows.data(), matrices.data(), offsets.data(), one.data()});
    const auto expected = reference::GroupedMatmul(s, transposed, rows.Doubles(), matrices.Doubles(), offsets);
    EXPECT_LE(ErrorBeyondRounding(types.out, one.Values(), expected), BoundOf(s.k)) << "problem " << i;
    for (int threads : {2, 3, 5}) {
      Stored out = Unwritten(types.out, s.rows * s.n);
      RunKernel(Dot(s, offsets.size(), transposed, threads, types.operands, types.out),
                {rows.data(), matrices.data(), offsets.data(), out.data()});
      EXPECT_TRUE(out == one) << threads << " threads, problem " << i;
    }
  }
}

TEST_P(GroupedTest, OuterAgreesAndIsTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 60; ++i) {
    const GroupedSize s = RandomGroups(random);
    const Types types = kTypes[i % 3];
    std::vector<int32_t> offsets = RandomOffsets(random, s);
    Stored lhs = RandomStored(random, types.operands, s.rows * s.k);
    Stored rhs = RandomStored(random, types.operands, s.rows * s.n);
    Stored one = Unwritten(types.out, s.groups * s.k * s.n);
    RunKernel(Outer(s, offsets.size(), 1, types.operands, types.out),
              {lhs.data(), rhs.data(), offsets.data(), one.data()});
    const auto expected = reference::GroupedOuter(s, lhs.Doubles(), rhs.Doubles(), offsets);
    EXPECT_LE(ErrorBeyondRounding(types.out, one.Values(), expected), BoundOf(s.rows)) << "problem " << i;
    for (int threads : {2, 3, 5}) {
      Stored out = Unwritten(types.out, s.groups * s.k * s.n);
      RunKernel(Outer(s, offsets.size(), threads, types.operands, types.out),
                {lhs.data(), rhs.data(), offsets.data(), out.data()});
      EXPECT_TRUE(out == one) << threads << " threads, problem " << i;
    }
  }
}

// Of rows behind the last offset there is nothing, where nobody reads them; of those in front of the first there are
// zeros.
TEST_P(GroupedTest, RowsBehindTheLastGroupAreLeftAlone) {
  std::mt19937_64 random(31);
  for (int i = 0; i < 30; ++i) {
    const GroupedSize s = RandomGroups(random);
    const Types types = kTypes[i % 3];
    const bool transposed = random() % 2;
    const int threads = 1 + i % 3;
    std::vector<int32_t> offsets = RandomOffsets(random, s);
    const int64_t there = offsets.back() * s.n;
    Stored rows = RandomStored(random, types.operands, s.rows * s.k),
           matrices = RandomStored(random, types.operands, s.groups * s.k * s.n),
           whole = Unwritten(types.out, s.rows * s.n), out(types.out, Floats(s.rows * s.n, 17));
    Signature signature = Dot(s, offsets.size(), transposed, threads, types.operands, types.out);
    RunKernel(signature, {rows.data(), matrices.data(), offsets.data(), whole.data()});
    signature.attributes.push_back(Int("leaves_rows_out", 1));
    RunKernel(signature, {rows.data(), matrices.data(), offsets.data(), out.data()});
    Floats expected = whole.Values();
    std::fill(expected.begin() + there, expected.end(), 17.0f);
    EXPECT_TRUE(SameBits(out.Values(), expected)) << "problem " << i;
  }
}

// Offsets are data: the nearest that ascend within the rows take the place of wrong ones.
TEST(Grouped, WrongOffsetsCountAsTheNearestRightOnes) {
  std::mt19937_64 random(3);
  const GroupedSize s = {20, 6, 7, 4};
  Floats rows = RandomFloats(random, s.rows * s.k), matrices = RandomFloats(random, s.groups * s.k * s.n);
  const std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>> cases = {
      {{-5, 3, 9, 12, 20}, {0, 3, 9, 12, 20}},
      {{0, 12, 4, 15, 20}, {0, 12, 12, 15, 20}},
      {{0, 5, 1 << 30, 7, 21}, {0, 5, 20, 20, 20}},
      {{INT32_MIN, INT32_MAX, 0, -1, 3}, {0, 20, 20, 20, 20}},
  };
  for (auto [wrong, right] : cases) {
    Floats first(s.rows * s.n, NAN), second(s.rows * s.n, NAN);
    RunKernel(Dot(s, 5, false, 2), {rows.data(), matrices.data(), wrong.data(), first.data()});
    RunKernel(Dot(s, 5, false, 2), {rows.data(), matrices.data(), right.data(), second.data()});
    EXPECT_TRUE(SameBits(first, second));
    Floats sums(s.groups * s.k * s.n, NAN), others(s.groups * s.k * s.n, NAN), rhs = RandomFloats(random, s.rows * s.n);
    RunKernel(Outer(s, 5, 2), {rows.data(), rhs.data(), wrong.data(), sums.data()});
    RunKernel(Outer(s, 5, 2), {rows.data(), rhs.data(), right.data(), others.data()});
    EXPECT_TRUE(SameBits(sums, others));
  }
}

// The check says which offset is the first wrong one, and nothing where a word says something already.
TEST(CheckOffsets, FindsTheFirstThatDoesNotAscendWithinTheRows) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 400; ++i) {
    const int32_t rows = static_cast<int32_t>(1 + random() % 50);
    std::vector<int32_t> offsets = RandomBoundaries(random, rows, i), fault = {0, 0};
    const Signature signature = CheckOffsets(offsets.size(), rows);
    RunKernel(signature, {offsets.data(), fault.data()});
    const int32_t first = FirstWrongOffset(offsets, rows);
    const std::vector<int32_t> expected = {first + 1, first < 0 ? 0 : offsets[first]};
    EXPECT_EQ(fault, expected) << ::testing::PrintToString(offsets);
    fault = {1000, 7};
    RunKernel(signature, {offsets.data(), fault.data()});
    EXPECT_EQ(fault, (std::vector<int32_t>{1000, 7}));
  }
  EXPECT_THAT(std::string(CreateKernel(CheckOffsets(3, 0)).status().message()), ::testing::HasSubstr("'rows' is 0"));
  EXPECT_THAT(DescribeFault("check_offsets", 3, -7), ::testing::HasSubstr("offset 2 of rows in groups is -7"));
}

TEST(Grouped, RefusesWhatDoesNotFit) {
  const GroupedSize s = {8, 4, 6, 3};
  ExpectRefused(Dot(s, 5, false, 1), "'offsets' must have 2 elements or more, and at most one more");
  ExpectRefused(Dot(s, 1, false, 1), "'offsets' must have 2 elements or more");
  Signature signature = Dot(s, 4, false, 1);
  signature.arguments[1].shape[1] = 5;
  ExpectRefused(signature, "'matrices'");
  signature = Dot(s, 4, false, 1);
  signature.arguments[3].shape[0] = 9;
  ExpectRefused(signature, "'out'");
  signature = Dot(s, 4, false, 1);
  signature.attributes = {Int("transposed", 2)};
  ExpectRefused(signature, "attribute 'transposed' must be 0 or 1");
  signature.attributes = {};
  ExpectRefused(signature, "attribute 'transposed' is missing");
  signature = Dot(s, 4, false, 1);
  signature.arguments[3].dtype = DType::kBF16;
  ExpectRefused(signature, "'out'");
  ExpectRefused(Outer(s, 5, 1), "'offsets' must have 2 elements or more, and at most one more");
  signature = Outer(s, 4, 1);
  signature.arguments[1].shape[0] = 7;
  ExpectRefused(signature, "'rhs'");
  signature = Outer(s, 4, 1);
  signature.arguments[3].shape[2] = 5;
  ExpectRefused(signature, "'out'");
}

}  // namespace
}  // namespace bowline::kernels::testing
