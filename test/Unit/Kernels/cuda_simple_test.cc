// Device functions but for attention, on the emulator, against the references and the CPU kernels.

#include <numeric>

#include "kernels/cpu/grouped/grouped_reference.h"
#include "kernels/reference/reference.h"
#include "kernels/registry/philox.h"
#include "test/Unit/Kernels/cuda_emulation.h"
#include "test/Unit/Kernels/grouped_problem.h"

namespace bowline::kernels::testing {
namespace {

int64_t Pick(std::mt19937_64& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

std::vector<int32_t> RandomIds(std::mt19937_64& random, int64_t count, int64_t rows) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(Pick(random, 0, rows - 1));
  return ids;
}

TEST(CudaFill, EveryTypeAndLength) {
  for (int64_t count : {1, 2, 3, 7, 8, 9, 255, 256, 257, 5001}) {
    std::vector<int32_t> integers(count);
    Emulate({"fill", {Float("value", -7)}, {Out({count}, DType::kI32)}}, {integers.data()});
    EXPECT_EQ(integers, std::vector<int32_t>(count, -7));
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Stored out = Unwritten(dtype, count);
      Emulate({"fill", {Float("value", 0.1)}, {Out({count}, dtype)}}, {out.data()});
      EXPECT_TRUE(out == Stored(dtype, Floats(count, 0.1f))) << count;
    }
  }
}

TEST(CudaGatherRows, EveryWidthOfAnAccess) {
  std::mt19937_64 random(1);
  for (int64_t columns : {1, 2, 3, 5, 8, 24, 130, 2056}) {
    const int64_t rows = 11, tokens = Pick(random, 1, 40);
    std::vector<int32_t> ids = RandomIds(random, tokens, rows);
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      Stored table = RandomStored(random, dtype, rows * columns), out = Unwritten(dtype, tokens * columns);
      Emulate(
          {"gather_rows", {}, {In({rows, columns}, dtype), In({tokens}, DType::kI32), Out({tokens, columns}, dtype)}},
          {table.data(), ids.data(), out.data()});
      EXPECT_EQ(out.Doubles(), reference::GatherRows(table.Doubles(), columns, ids));
    }
  }
}

TEST(CudaScatterAddRows, TheSameBitsAsTheProcessor) {
  std::mt19937_64 random(2);
  constexpr std::pair<DType, DType> kTypes[] = {
      {DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};
  for (int64_t columns : {1, 6, 8, 40, 1032}) {
    for (auto [update, result] : kTypes) {
      const int64_t rows = Pick(random, 1, 30), tokens = Pick(random, 1, 700);
      std::vector<int32_t> ids = RandomIds(random, tokens, (rows + 1) / 2);
      Stored updates = RandomStored(random, update, tokens * columns), out = Unwritten(result, rows * columns),
             expected = out;
      const Signature signature = {
          "scatter_add_rows",
          {},
          {In({tokens, columns}, update), In({tokens}, DType::kI32), Out({rows, columns}, result)}};
      Emulate(signature, {updates.data(), ids.data(), out.data()});
      RunKernel(signature, {updates.data(), ids.data(), expected.data()});
      EXPECT_TRUE(out == expected) << columns << " columns, " << rows << " rows, " << tokens << " tokens";
    }
  }
}

TEST(CudaEmbedding, NumbersOutOfRangeCountAsTheNearestRow) {
  std::mt19937_64 random(11);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const int64_t rows = 13, columns = 24, tokens = 300;
    std::vector<int32_t> ids(tokens);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 2 == 0 ? random() : random() % 40 - 13);
    Stored table = RandomStored(random, dtype, rows * columns), out = Unwritten(dtype, tokens * columns), copied = out,
           updates = RandomStored(random, dtype, tokens * columns), sums = Unwritten(dtype, rows * columns),
           expected = sums;
    const Signature gather = {
        "gather_rows", {}, {In({rows, columns}, dtype), In({tokens}, DType::kI32), Out({tokens, columns}, dtype)}};
    Emulate(gather, {table.data(), ids.data(), out.data()});
    RunKernel(gather, {table.data(), ids.data(), copied.data()});
    EXPECT_TRUE(out == copied);
    const Signature scatter = {
        "scatter_add_rows", {}, {In({tokens, columns}, dtype), In({tokens}, DType::kI32), Out({rows, columns}, dtype)}};
    Emulate(scatter, {updates.data(), ids.data(), sums.data()});
    RunKernel(scatter, {updates.data(), ids.data(), expected.data()});
    EXPECT_TRUE(sums == expected);
  }
}

// The emulator's memory holds NaN where nothing was written.
void ExpectRowsBefore(int64_t elements, const Stored& actual, const Stored& expected) {
  Floats values = actual.Values(), wanted = expected.Values();
  EXPECT_TRUE(std::all_of(values.begin() + elements, values.end(), [](float x) { return std::isnan(x); }));
  values.resize(elements);
  wanted.resize(elements);
  EXPECT_TRUE(SameBits(values, wanted));
}

// As on the processor: rows behind the count are neither read nor written.
TEST(CudaEmbedding, RowsBehindTheCountAreLeftAlone) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 24; ++i) {
    const DType dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16;
    const int64_t rows = Pick(random, 1, 30), tokens = Pick(random, 1, 600),
                  columns = std::vector<int64_t>{1, 3, 8, 24, 40}[i % 5], elements = 1 + i % 3;
    std::vector<int32_t> ids = RandomIds(random, tokens, rows), count(elements, INT32_MAX);
    count.back() = i < 2 ? -3 : i < 4 ? INT32_MAX : static_cast<int32_t>(Pick(random, 0, tokens));
    const int64_t valid = std::clamp<int64_t>(count.back(), 0, tokens);
    Floats values = RandomFloats(random, tokens * columns);
    std::fill(values.begin() + valid * columns, values.end(), NAN);
    Stored table = RandomStored(random, dtype, rows * columns), updates(dtype, values),
           out = Unwritten(dtype, tokens * columns), copied = out, sums = Unwritten(dtype, rows * columns),
           expected = sums;
    const Signature gather = {"gather_rows",
                              {Int("leaves_rows_out", 1)},
                              {In({rows, columns}, dtype), In({tokens}, DType::kI32), In({elements}, DType::kI32),
                               Out({tokens, columns}, dtype)}};
    Emulate(gather, {table.data(), ids.data(), count.data(), out.data()});
    RunKernel(gather, {table.data(), ids.data(), count.data(), copied.data()});
    ExpectRowsBefore(valid * columns, out, copied);
    const Signature scatter = {"scatter_add_rows",
                               {Int("leaves_rows_out", 1)},
                               {In({tokens, columns}, dtype), In({tokens}, DType::kI32), In({elements}, DType::kI32),
                                Out({rows, columns}, dtype)}};
    Emulate(scatter, {updates.data(), ids.data(), count.data(), sums.data()});
    RunKernel(scatter, {updates.data(), ids.data(), count.data(), expected.data()});
    EXPECT_TRUE(sums == expected) << i;
  }
}

TEST(CudaCheckIds, FindsTheFirstThatIsNoRow) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 40; ++i) {
    const int64_t rows = Pick(random, 1, 20), tokens = Pick(random, 1, 900);
    std::vector<int32_t> ids = RandomIds(random, tokens, rows), fault = {0, 0}, expected = {0, 0};
    const int32_t wrong[] = {-1, static_cast<int32_t>(rows), INT32_MIN, INT32_MAX};
    for (uint64_t n = random() % 3; n > 0; --n) ids[random() % ids.size()] = wrong[random() % 4];
    for (size_t n = ids.size(); n-- > 0;) {
      if (ids[n] < 0 || ids[n] >= rows) expected = {static_cast<int32_t>(n) + 1, ids[n]};
    }
    if (i % 10 == 9) fault = expected = {7, 0};
    Emulate({"check_ids", {Int("rows", rows)}, {In({tokens}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}},
            {ids.data(), fault.data()});
    EXPECT_EQ(fault, expected);
  }
}

// Neighbouring f32 have neighbouring integers.
int64_t UnitsApart(float a, float b) {
  const auto ordered = [](float x) {
    int32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return int64_t{bits < 0 ? INT32_MIN - bits : bits};
  };
  return std::abs(ordered(a) - ordered(b));
}

struct Shard {
  std::vector<int64_t> shape, global_shape, offsets, sharded_dims;
  bool padded = false;
  std::vector<int32_t> places = {};  // of sharded_dims
};

std::vector<void*> ShardArguments(Shard& shard, Stored& out) {
  std::vector<void*> arguments;
  for (int32_t& place : shard.places) arguments.push_back(&place);
  arguments.push_back(out.data());
  return arguments;
}

const Shard kShards[] = {
    {{257}, {257}, {0}, {}},
    {{3, 5, 7}, {3, 5, 7}, {0, 0, 0}, {}},
    {{4, 6}, {9, 13}, {2, 5}, {}},
    {{2, 3, 4}, {8, 3, 12}, {0, 0, 0}, {0, 2}, false, {3, 1}},
    {{3, 10, 5}, {7, 10, 23}, {0, 0, 0}, {0, 2}, true, {2, 4}},
    {{3, 10, 5}, {7, 10, 23}, {0, 0, 0}, {0, 2}, true, {1, 5}},
    {{1, 3, 1, 4, 2, 3}, {2, 3, 5, 8, 2, 6}, {1, 0, 2, 4, 0, 0}, {5}, false, {1}},
    {{}, {}, {}, {}},
};

TEST(CudaRandom, NumbersOfTheDefinition) {
  for (const Shard& given : kShards) {
    for (const char* kernel : {"random_normal", "random_uniform"}) {
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        const bool normal = std::string(kernel) == "random_normal";
        if (!normal && (dtype == DType::kBF16 || given.padded)) continue;
        Shard shard = given;
        Signature signature = {kernel,
                               {Int("seed", 5), Int("key", -77), Float(normal ? "mean" : "lo", -0.25),
                                Float(normal ? "stddev" : "hi", 1.5), Ints("global_shape", shard.global_shape),
                                Ints("offsets", shard.offsets), Ints("sharded_dims", shard.sharded_dims)},
                               {}};
        if (shard.padded) signature.attributes.push_back(Int("padded", 1));
        for (size_t i = 0; i < shard.places.size(); ++i) signature.arguments.push_back(In({}, DType::kI32));
        signature.arguments.push_back(Out(shard.shape, dtype));
        const int64_t count = Count(shard.shape);
        Stored out = Unwritten(dtype, count), expected = out;
        Emulate(signature, ShardArguments(shard, out));
        RunKernel(signature, ShardArguments(shard, expected));
        const Floats actual = out.Values(), right = expected.Values();
        for (int64_t i = 0; i < count; ++i) {
          // Both round values that differ by 2^-49 of themselves at most; bf16 rounds that once more.
          EXPECT_LE(UnitsApart(actual[i], right[i]), dtype == DType::kF32 && normal ? 1 : 0) << kernel << " " << i;
        }
      }
    }
  }
}

TEST(CudaRandom, ValuesStayBelowTheLimit) {
  // Rounds to 1 for the largest values, which the definition excludes.
  Stored out = Unwritten(DType::kF32, 1 << 16), expected = out;
  const Signature signature = {"random_uniform",
                               {Int("seed", 1), Int("key", 2), Float("lo", 0.99999), Float("hi", 1.0),
                                Ints("global_shape", {1 << 16}), Ints("offsets", {0})},
                               {Out({1 << 16})}};
  EmulateOnce(signature, {out.data()}, 3);
  RunKernel(signature, {expected.data()});
  EXPECT_TRUE(out == expected);
}

TEST(CudaRopeAngles, AreTheReferences) {
  const std::vector<int32_t> positions = {0, 1, 2, 3, 17, 1000, 131071, INT32_MAX, -5, INT32_MIN};
  for (int64_t half : {1, 5, 32, 48}) {
    for (double theta : {10000.0, 500000.0, 0.5}) {
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        const int64_t count = static_cast<int64_t>(positions.size());
        std::vector<int32_t> given = positions;
        Stored cosines = Unwritten(dtype, count * half), sines = cosines;
        Emulate({"rope_angles",
                 {Float("theta", theta)},
                 {In({count}, DType::kI32), Out({count, half}, dtype), Out({count, half}, dtype)}},
                {given.data(), cosines.data(), sines.data()});
        const reference::Angles expected = reference::RopeAngles(positions, half, theta);
        // Frequencies are within two units in the last place, and an angle of 2^31 / theta^(...) that many times wrong.
        EXPECT_LE(ErrorBeyondRounding(dtype, cosines.Values(), expected.cos), 4e-6);
        EXPECT_LE(ErrorBeyondRounding(dtype, sines.Values(), expected.sin), 4e-6);
      }
    }
  }
}

TEST(CudaRopeAngles, AreScaledAsTheReferences) {
  std::vector<int32_t> positions = {0, 1, 2, 3, 17, 1000, 131071};
  constexpr int64_t kCount = 7, kHalf = 64;
  for (const reference::RopeScaling& scaling : {reference::RopeScaling{4}, {8, 8192, 1, 4}, {32, 8192, 1, 4}}) {
    Signature signature = {"rope_angles",
                           {Float("theta", 500000.0), Float("factor", scaling.factor)},
                           {In({kCount}, DType::kI32), Out({kCount, kHalf}), Out({kCount, kHalf})}};
    if (scaling.original != 0) {
      signature.attributes.push_back(Int("original_positions", static_cast<int64_t>(scaling.original)));
      signature.attributes.push_back(Float("low_turns", scaling.low));
      signature.attributes.push_back(Float("high_turns", scaling.high));
    }
    Stored cosines = Unwritten(DType::kF32, kCount * kHalf), sines = cosines;
    Emulate(signature, {positions.data(), cosines.data(), sines.data()});
    const reference::Angles expected = reference::RopeAngles(positions, kHalf, 500000.0, scaling);
    EXPECT_LE(ErrorBeyondRounding(DType::kF32, cosines.Values(), expected.cos), 1e-7);
    EXPECT_LE(ErrorBeyondRounding(DType::kF32, sines.Values(), expected.sin), 1e-7);
  }
}

// Offsets of `groups` groups that ascend within [0, rows], some of them equal.
std::vector<int32_t> RandomOffsets(std::mt19937_64& random, int64_t groups, int64_t rows) {
  std::vector<int32_t> offsets(groups + 1);
  for (int32_t& offset : offsets) offset = static_cast<int32_t>(Pick(random, 0, rows));
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

constexpr std::pair<DType, DType> kProductTypes[] = {
    {DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};

// Of odd shapes, and of shapes whose rows are multiples of 16 bytes.
reference::GroupedSize RandomGroupedSize(std::mt19937_64& random, bool multiples) {
  if (multiples) return {Pick(random, 1, 400), 8 * Pick(random, 1, 20), 8 * Pick(random, 1, 25), Pick(random, 1, 6)};
  return {Pick(random, 1, 300), Pick(random, 1, 90), Pick(random, 1, 150), Pick(random, 1, 6)};
}

TEST(CudaGroupedMatmul, AgreesWithTheReference) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 24; ++i) {
    const reference::GroupedSize s = RandomGroupedSize(random, i >= 12);
    const bool transposed = i % 2 == 1;
    const auto [operands, result] = kProductTypes[i % 3];
    const int64_t matrices = s.groups + Pick(random, 0, 1);
    std::vector<int32_t> offsets = RandomOffsets(random, s.groups, s.rows);
    Stored rows = RandomStored(random, operands, s.rows * s.k),
           b = RandomStored(random, operands, matrices * s.k * s.n), out = Unwritten(result, s.rows * s.n);
    Emulate({"grouped_matmul",
             {Int("transposed", transposed)},
             {In({s.rows, s.k}, operands), In({matrices, transposed ? s.n : s.k, transposed ? s.k : s.n}, operands),
              In({s.groups + 1}, DType::kI32), Out({s.rows, s.n}, result)}},
            {rows.data(), b.data(), offsets.data(), out.data()});
    EXPECT_LE(ErrorBeyondRounding(result, out.Values(),
                                  reference::GroupedMatmul(s, transposed, rows.Doubles(), b.Doubles(), offsets)),
              1e-5);
  }
}

TEST(CudaGroupedMatmul, RowsBehindTheLastGroupAreLeftAlone) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 12; ++i) {
    const reference::GroupedSize s = RandomGroupedSize(random, i >= 6);
    const bool transposed = i % 2 == 1;
    const auto [operands, result] = kProductTypes[i % 3];
    std::vector<int32_t> offsets = RandomOffsets(random, s.groups, s.rows);
    const int64_t there = offsets.back() * s.n;
    Stored rows = RandomStored(random, operands, s.rows * s.k),
           b = RandomStored(random, operands, s.groups * s.k * s.n), whole = Unwritten(result, s.rows * s.n),
           out = Unwritten(result, s.rows * s.n);
    Signature signature = {
        "grouped_matmul",
        {Int("transposed", transposed)},
        {In({s.rows, s.k}, operands), In({s.groups, transposed ? s.n : s.k, transposed ? s.k : s.n}, operands),
         In({s.groups + 1}, DType::kI32), Out({s.rows, s.n}, result)}};
    Emulate(signature, {rows.data(), b.data(), offsets.data(), whole.data()});
    signature.attributes.push_back(Int("leaves_rows_out", 1));
    Emulate(signature, {rows.data(), b.data(), offsets.data(), out.data()});
    ExpectRowsBefore(there, out, whole);
  }
}

TEST(CudaGroupedOuter, AgreesWithTheReference) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 24; ++i) {
    const reference::GroupedSize s = RandomGroupedSize(random, i >= 12);
    const auto [operands, result] = kProductTypes[i % 3];
    const int64_t matrices = s.groups + Pick(random, 0, 2);
    std::vector<int32_t> offsets = RandomOffsets(random, s.groups, s.rows);
    Stored lhs = RandomStored(random, operands, s.rows * s.k), rhs = RandomStored(random, operands, s.rows * s.n),
           out = Unwritten(result, matrices * s.k * s.n);
    Emulate({"grouped_outer",
             {},
             {In({s.rows, s.k}, operands), In({s.rows, s.n}, operands), In({s.groups + 1}, DType::kI32),
              Out({matrices, s.k, s.n}, result)}},
            {lhs.data(), rhs.data(), offsets.data(), out.data()});
    std::vector<double> expected = reference::GroupedOuter(s, lhs.Doubles(), rhs.Doubles(), offsets);
    expected.resize(matrices * s.k * s.n, 0.0);
    EXPECT_LE(ErrorBeyondRounding(result, out.Values(), expected), 1e-5);
  }
}

TEST(CudaCheckOffsets, FindsTheFirstThatDoesNotAscendWithinTheRows) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 60; ++i) {
    const int32_t rows = static_cast<int32_t>(Pick(random, 1, 50));
    std::vector<int32_t> offsets = RandomBoundaries(random, rows, i), fault = {i % 10 == 9 ? 7 : 0, 0};
    const int32_t first = FirstWrongOffset(offsets, rows);
    const std::vector<int32_t> expected =
        fault[0] != 0 ? fault : std::vector<int32_t>{first + 1, first < 0 ? 0 : offsets[first]};
    Emulate(CheckOffsets(offsets.size(), rows), {offsets.data(), fault.data()});
    EXPECT_EQ(fault, expected) << ::testing::PrintToString(offsets);
  }
}

// Offsets that do not ascend within the rows count as the nearest that do, as on the processor.
TEST(CudaGrouped, AnyOffsets) {
  std::mt19937_64 random(5);
  for (const std::vector<int32_t>& given : {std::vector<int32_t>{-5, 40, 20, 1000},
                                            {70, 3, INT32_MAX, 9},
                                            {INT32_MAX, INT32_MIN, 0, 5},
                                            {INT32_MIN, -1, -1, -1}}) {
    std::vector<int32_t> offsets = given;
    const int64_t rows = 90, k = 8, n = 24, groups = 3;
    Stored a = RandomStored(random, DType::kF32, rows * k), b = RandomStored(random, DType::kF32, groups * k * n),
           c = RandomStored(random, DType::kF32, rows * n), out = Unwritten(DType::kF32, rows * n), expected = out,
           outer = Unwritten(DType::kF32, groups * k * n), expected_outer = outer;
    const Signature matmul = {"grouped_matmul",
                              {Int("transposed", 0)},
                              {In({rows, k}), In({groups, k, n}), In({groups + 1}, DType::kI32), Out({rows, n})}};
    Emulate(matmul, {a.data(), b.data(), offsets.data(), out.data()});
    RunKernel(matmul, {a.data(), b.data(), offsets.data(), expected.data()});
    EXPECT_LE(ScaledError(out.Values(), expected.Doubles()), 1e-5);
    const Signature outer_product = {
        "grouped_outer", {}, {In({rows, k}), In({rows, n}), In({groups + 1}, DType::kI32), Out({groups, k, n})}};
    Emulate(outer_product, {a.data(), c.data(), offsets.data(), outer.data()});
    RunKernel(outer_product, {a.data(), c.data(), offsets.data(), expected_outer.data()});
    EXPECT_LE(ScaledError(outer.Values(), expected_outer.Doubles()), 1e-5);
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
