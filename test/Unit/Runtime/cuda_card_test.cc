// Kernels of the registry on a card against the references in f64. Where there is no card all tests are skipped; where
// there should be one, BOWLINE_REQUIRE_CARD in the environment makes that a failure. The program needs no file.

#include <array>
#include <cstdlib>

#include "kernels/cpu/grouped/grouped_reference.h"
#include "kernels/reference/reference.h"
#include "kernels/registry/philox.h"
#include "test/Unit/Kernels/grouped_problem.h"
#include "test/Unit/Kernels/matmul_problem.h"
#include "test/Unit/Kernels/stored_testing.h"
#include "test/Unit/Runtime/card_attention.h"

namespace bowline::kernels::testing {
namespace {

using bowline::testing::CardRunner;
using reference::AttentionSize;
using reference::GroupedSize;

class CudaKernels : public bowline::testing::CardTest {
 protected:
  void Run(const Signature& signature, const std::vector<void*>& arguments) {
    SCOPED_TRACE(signature.kernel);
    card_->Run(signature, arguments);
  }
};

TEST_F(CudaKernels, Fill) {
  for (const int64_t count : {1, 3, 16, 257, 1003, (3 << 20) + 5}) {
    Floats x(count, NAN);
    Run({"fill", {Float("value", -1.5)}, {Out({count})}}, {x.data()});
    EXPECT_EQ(std::count(x.begin(), x.end(), -1.5f), count);
    std::vector<int32_t> i(count, 9);
    Run({"fill", {Float("value", -7)}, {Out({count}, DType::kI32)}}, {i.data()});
    EXPECT_EQ(std::count(i.begin(), i.end(), -7), count);
    Stored half = Unwritten(DType::kBF16, count);
    Run({"fill", {Float("value", 0.1)}, {Out({count}, DType::kBF16)}}, {half.data()});
    const Floats values = half.Values();
    EXPECT_EQ(std::count(values.begin(), values.end(), 0.10009765625f), count);
  }
  for (const double zero : {0.0, -0.0}) {
    Floats x(70, NAN);
    Run({"fill", {Float("value", zero)}, {Out({70})}}, {x.data()});
    for (const float value : x) EXPECT_TRUE(value == 0 && std::signbit(value) == std::signbit(zero));
  }
}

TEST_F(CudaKernels, RopeAngles) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i) {
    const int64_t count = 1 + static_cast<int64_t>(random() % 40), half = 1 + static_cast<int64_t>(random() % 70);
    const DType dtype = i % 3 == 0 ? DType::kBF16 : DType::kF32;
    std::vector<int32_t> positions(count);
    for (int32_t& p : positions) p = static_cast<int32_t>(random() % 200000);
    Stored cosines = Unwritten(dtype, count * half), sines = Unwritten(dtype, count * half);
    Run({"rope_angles",
         {Float("theta", 10000.0)},
         {In({count}, DType::kI32), Out({count, half}, dtype), Out({count, half}, dtype)}},
        {positions.data(), cosines.data(), sines.data()});
    const auto expected = reference::RopeAngles(positions, half, 10000.0);
    // Half a unit in the last place below 1, and f64's error.
    EXPECT_LT(ErrorBeyondRounding(dtype, cosines.Values(), expected.cos), 6.1e-8);
    EXPECT_LT(ErrorBeyondRounding(dtype, sines.Values(), expected.sin), 6.1e-8);
  }
}

struct EmbeddingSize {
  int64_t rows, tokens, columns;
};

EmbeddingSize RandomEmbedding(std::mt19937_64& random) {
  const std::vector<int64_t> columns = {1, 2, 7, 16, 33, 64, 129, 768};
  return {1 + static_cast<int64_t>(random() % 50), 1 + static_cast<int64_t>(random() % 700),
          columns[random() % columns.size()]};
}

std::vector<int32_t> RandomIds(std::mt19937_64& random, const EmbeddingSize& s) {
  std::vector<int32_t> ids(s.tokens);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % s.rows);
  return ids;
}

TEST_F(CudaKernels, GatherRows) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 60; ++i) {
    const EmbeddingSize s = RandomEmbedding(random);
    const DType dtype = i % 2 == 0 ? DType::kF32 : DType::kBF16;
    Stored table = RandomStored(random, dtype, s.rows * s.columns), out = Unwritten(dtype, s.tokens * s.columns);
    std::vector<int32_t> ids = RandomIds(random, s);
    Run({"gather_rows",
         {},
         {In({s.rows, s.columns}, dtype), In({s.tokens}, DType::kI32), Out({s.tokens, s.columns}, dtype)}},
        {table.data(), ids.data(), out.data()});
    EXPECT_EQ(out.Doubles(), reference::GatherRows(table.Doubles(), s.columns, ids));
    std::vector<int32_t> words(s.rows * s.columns), gathered(s.tokens * s.columns);
    for (int32_t& word : words) word = static_cast<int32_t>(random());
    Run({"gather_rows",
         {},
         {In({s.rows, s.columns}, DType::kI32), In({s.tokens}, DType::kI32), Out({s.tokens, s.columns}, DType::kI32)}},
        {words.data(), ids.data(), gathered.data()});
    for (int64_t e = 0; e < s.tokens * s.columns; ++e) {
      ASSERT_EQ(gathered[e], words[ids[e / s.columns] * s.columns + e % s.columns]) << e;
    }
  }
}

TEST_F(CudaKernels, ScatterAddRows) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 63; ++i) {
    // The last ones mostly have rows without tokens.
    const EmbeddingSize s =
        i < 60 ? RandomEmbedding(random) : EmbeddingSize{7001, 300, std::array{768, 767, 12}[i - 60]};
    const DType updates_type = i % 3 == 0 ? DType::kF32 : DType::kBF16;
    const DType out_type = i % 3 == 2 ? DType::kBF16 : DType::kF32;
    Stored updates = RandomStored(random, updates_type, s.tokens * s.columns);
    Stored out = Unwritten(out_type, s.rows * s.columns);
    std::vector<int32_t> ids = RandomIds(random, s);
    Run({"scatter_add_rows",
         {},
         {In({s.tokens, s.columns}, updates_type), In({s.tokens}, DType::kI32), Out({s.rows, s.columns}, out_type)}},
        {updates.data(), ids.data(), out.data()});
    const auto expected = reference::ScatterAddRows(updates.Doubles(), s.rows, s.columns, ids);
    // Numbers of [-1, 1], at most as many as there are tokens, each added with half a unit in the last place of the sum
    // so far: at most tokens^2 / 2 such units for one row, of which there is one in the worst case.
    std::vector<int64_t> counts(s.rows, 0);
    for (const int32_t id : ids) ++counts[id];
    const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    EXPECT_LE(ErrorBeyondRounding(out_type, out.Values(), expected), most * most / 2 * 0x1p-24 + 0x1p-24)
        << "problem " << i;
  }
}

TEST_F(CudaKernels, ScatterOfBf16SumsInF32) {
  Floats values(257, 0x1p-9f);
  values[0] = 1;
  Stored updates(DType::kBF16, values), out = Unwritten(DType::kBF16, 1);
  std::vector<int32_t> ids(257, 0);
  Run({"scatter_add_rows", {}, {In({257, 1}, DType::kBF16), In({257}, DType::kI32), Out({1, 1}, DType::kBF16)}},
      {updates.data(), ids.data(), out.data()});
  EXPECT_THAT(out.Values(), ::testing::ElementsAre(1.5f));
}

Signature Random(const char* kernel, std::vector<Attribute> scaling, std::vector<int64_t> shape,
                 std::vector<int64_t> global, std::vector<int64_t> offsets, DType dtype) {
  std::vector<Attribute> attributes = {Int("seed", 7), Int("key", 11)};
  attributes.insert(attributes.end(), scaling.begin(), scaling.end());
  attributes.push_back(Ints("global_shape", std::move(global)));
  attributes.push_back(Ints("offsets", std::move(offsets)));
  return {kernel, std::move(attributes), {Out(std::move(shape), dtype)}};
}

// The definition at the indices of a shard, in f64; zero beyond the end.
std::vector<double> ExpectedRandom(bool normal, double bias, double gain, const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& global, const std::vector<int64_t>& first) {
  std::vector<double> values;
  for (int64_t n = 0; n < Count(shape); ++n) {
    int64_t index = 0, stride = 1, rest = n;
    bool inside = true;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d], stride *= global[d]) {
      const int64_t at = first[d] + rest % shape[d];
      inside &= at < global[d];
      index += at * stride;
    }
    const auto block = normal ? NormalBlock(MixKey(7, 11), index / 4) : UniformBlock(MixKey(7, 11), index / 4);
    values.push_back(inside ? bias + gain * block[index % 4] : 0.0);
  }
  return values;
}

// Each is the definition's, rounded; or, for normal values, the neighbour where a rounding boundary is as close as the
// errors of f64 (2^-49). Returns how many are neighbours.
int64_t CountNeighbours(DType dtype, const Stored& actual, const std::vector<double>& expected) {
  const Floats values = actual.Values();
  int64_t neighbours = 0, wrong = 0;
  const auto rounded = [&](double value) { return Stored(dtype, {static_cast<float>(value)}).Values()[0]; };
  for (size_t i = 0; i < expected.size(); ++i) {
    if (values[i] == rounded(expected[i])) continue;
    ++neighbours;
    const bool near =
        values[i] == rounded(expected[i] * (1 + 0x1p-49)) || values[i] == rounded(expected[i] * (1 - 0x1p-49));
    if (!near && wrong++ == 0) ADD_FAILURE() << "element " << i << " is " << values[i] << ", expected " << expected[i];
  }
  EXPECT_EQ(wrong, 0);
  return neighbours;
}

TEST_F(CudaKernels, RandomNormal) {
  int64_t neighbours = 0;
  for (const int64_t count : {1, 5, 31, 1000, 1 << 21}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Stored x = Unwritten(dtype, count);
      Run(Random("random_normal", {Float("mean", 0.5), Float("stddev", 2.0)}, {count}, {count}, {0}, dtype),
          {x.data()});
      neighbours += CountNeighbours(dtype, x, ExpectedRandom(true, 0.5, 2.0, {count}, {count}, {0}));
    }
  }
  EXPECT_LE(neighbours, 10);
}

TEST_F(CudaKernels, RandomUniform) {
  for (const int64_t count : {1, 5, 31, 33, 1000, 100003}) {
    Stored x = Unwritten(DType::kF32, count);
    Run(Random("random_uniform", {Float("lo", -0.7), Float("hi", 1.9)}, {count}, {count}, {0}, DType::kF32),
        {x.data()});
    EXPECT_EQ(CountNeighbours(DType::kF32, x, ExpectedRandom(false, -0.7, 1.9 - -0.7, {count}, {count}, {0})), 0);
  }
}

// Shards at offsets, in parts that operands choose, and beyond the end.
TEST_F(CudaKernels, RandomShards) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 80; ++i) {
    const bool padded = i % 2 == 1;
    const DType dtype = i % 4 < 2 ? DType::kF32 : DType::kBF16;
    std::vector<int64_t> global, shape, offsets, first, sharded_dims;
    std::vector<int32_t> places;
    for (int64_t d = 0, rank = 1 + static_cast<int64_t>(random() % 3); d < rank; ++d) {
      global.push_back(1 + static_cast<int64_t>(random() % 19));
      offsets.push_back(0);
      if (padded && random() % 2 == 0) {
        sharded_dims.push_back(d);
        places.push_back(static_cast<int32_t>(random() % 4));
        shape.push_back(1 + static_cast<int64_t>(random() % 9));
        first.push_back(places.back() * shape.back());
      } else if (padded) {
        shape.push_back(global.back() + static_cast<int64_t>(random() % 3));
        first.push_back(0);
      } else {
        offsets.back() = static_cast<int64_t>(random() % global.back());
        shape.push_back(1 + static_cast<int64_t>(random() % (global.back() - offsets.back())));
        first.push_back(offsets.back());
      }
    }
    Signature signature =
        Random("random_normal", {Float("mean", 0.5), Float("stddev", 2.0)}, shape, global, offsets, dtype);
    std::vector<void*> arguments;
    if (padded) {
      signature.arguments.insert(signature.arguments.begin(), sharded_dims.size(), In({}, DType::kI32));
      signature.attributes.push_back(Ints("sharded_dims", sharded_dims));
      signature.attributes.push_back(Int("padded", 1));
      for (int32_t& place : places) arguments.push_back(&place);
    }
    Stored x = Unwritten(dtype, Count(shape));
    arguments.push_back(x.data());
    Run(signature, arguments);
    EXPECT_EQ(CountNeighbours(dtype, x, ExpectedRandom(true, 0.5, 2.0, shape, global, first)), 0) << "problem " << i;
  }
}

struct Types {
  DType operands, result;
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};

// Products of numbers of [-1, 1], summed in f32 in any order: n - 1 additions and the roundings of products are errors
// of at most n 2^-24 times the sum of their absolute values, which is at most n; ErrorBeyondRounding divides by 1 or
// more.
double SumBound(int64_t summands) {
  return static_cast<double>(summands + 3) * 0x1p-24 * static_cast<double>(summands) * 1.01;
}

TEST_F(CudaKernels, GroupedMatmul) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) {
    const GroupedSize s = RandomGroups(random);
    const auto [operands, result] = kTypes[i % 3];
    const bool transposed = random() % 2;
    std::vector<int32_t> offsets = RandomOffsets(random, s);
    Stored rows = RandomStored(random, operands, s.rows * s.k);
    Stored matrices = RandomStored(random, operands, s.groups * s.k * s.n), out = Unwritten(result, s.rows * s.n);
    const auto shape = transposed ? std::vector<int64_t>{s.groups, s.n, s.k} : std::vector<int64_t>{s.groups, s.k, s.n};
    Run({"grouped_matmul",
         {Int("transposed", transposed)},
         {In({s.rows, s.k}, operands), In(shape, operands), In({static_cast<int64_t>(offsets.size())}, DType::kI32),
          Out({s.rows, s.n}, result)}},
        {rows.data(), matrices.data(), offsets.data(), out.data()});
    const auto expected = reference::GroupedMatmul(s, transposed, rows.Doubles(), matrices.Doubles(), offsets);
    EXPECT_LE(ErrorBeyondRounding(result, out.Values(), expected), SumBound(s.k)) << "problem " << i;
  }
}

TEST_F(CudaKernels, GroupedOuter) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 60; ++i) {
    const GroupedSize s = RandomGroups(random);
    const auto [operands, result] = kTypes[i % 3];
    std::vector<int32_t> offsets = RandomOffsets(random, s);
    Stored lhs = RandomStored(random, operands, s.rows * s.k), rhs = RandomStored(random, operands, s.rows * s.n);
    Stored out = Unwritten(result, s.groups * s.k * s.n);
    Run({"grouped_outer",
         {},
         {In({s.rows, s.k}, operands), In({s.rows, s.n}, operands),
          In({static_cast<int64_t>(offsets.size())}, DType::kI32), Out({s.groups, s.k, s.n}, result)}},
        {lhs.data(), rhs.data(), offsets.data(), out.data()});
    const auto expected = reference::GroupedOuter(s, lhs.Doubles(), rhs.Doubles(), offsets);
    EXPECT_LE(ErrorBeyondRounding(result, out.Values(), expected), SumBound(s.rows)) << "problem " << i;
  }
}

// Offsets are data: the nearest that ascend within the rows take the place of wrong ones.
TEST_F(CudaKernels, WrongOffsetsCountAsTheNearestRightOnes) {
  std::mt19937_64 random(7);
  const GroupedSize s = {20, 6, 7, 4};
  Stored rows = RandomStored(random, DType::kF32, s.rows * s.k);
  Stored matrices = RandomStored(random, DType::kF32, s.groups * s.k * s.n);
  const std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>> cases = {
      {{-5, 3, 9, 12, 20}, {0, 3, 9, 12, 20}},
      {{0, 12, 4, 15, 20}, {0, 12, 12, 15, 20}},
      {{0, 5, 1 << 30, 7, 21}, {0, 5, 20, 20, 20}},
      {{INT32_MIN, INT32_MAX, 0, -1, 3}, {0, 20, 20, 20, 20}},
  };
  for (auto [wrong, right] : cases) {
    Stored first = Unwritten(DType::kF32, s.rows * s.n), second = first;
    const Signature signature = {
        "grouped_matmul",
        {Int("transposed", 0)},
        {In({s.rows, s.k}), In({s.groups, s.k, s.n}), In({5}, DType::kI32), Out({s.rows, s.n})}};
    Run(signature, {rows.data(), matrices.data(), wrong.data(), first.data()});
    Run(signature, {rows.data(), matrices.data(), right.data(), second.data()});
    EXPECT_TRUE(first == second);
  }
}

std::vector<double> Absolute(std::vector<double> x) {
  for (double& value : x) value = std::abs(value);
  return x;
}

// Element by element. f32: k products, added in any order, and C, are wrong by (k + 2) 2^-24 of the sum of absolute
// values at most. bf16: products are exact, but tensor cores may cut off instead of rounding, twice as much.
void ExpectAccurate(const Problem& p, Types types, const std::vector<double>& c, const std::vector<double>& expected,
                    const std::vector<double>& magnitude) {
  const double unit = types.operands == DType::kBF16 ? 0x1p-23 : 0x1p-24;
  const double relative = static_cast<double>(p.k + 2) * unit * 1.01;
  int64_t wrong = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    double bound = relative * magnitude[i] + static_cast<double>(p.k) * 0x1p-126;
    if (types.result == DType::kBF16) bound += (std::abs(expected[i]) + bound) * 0x1p-8;
    if (!(std::abs(c[i] - expected[i]) <= bound) && wrong++ == 0) {
      ADD_FAILURE() << "element " << i << " is " << c[i] << ", expected " << expected[i] << " within " << bound;
    }
  }
  EXPECT_EQ(wrong, 0);
}

void CheckProduct(CardRunner& card, std::mt19937_64& random, Problem p, Types types) {
  p.accumulate &= types.result == DType::kF32;
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[0] << ","
                                    << p.a[1] << "," << p.a[2] << " b " << p.b[0] << "," << p.b[1] << "," << p.b[2]
                                    << " c " << p.c[0] << "," << p.c[1] << "," << p.c[2] << " +" << p.accumulate << " "
                                    << NameOf(types.operands) << " " << NameOf(types.result));
  Signature signature = p.Sign(1);
  signature.arguments[0].dtype = signature.arguments[1].dtype = types.operands;
  signature.arguments[2].dtype = types.result;
  Stored a = RandomStored(random, types.operands, p.a_size), b = RandomStored(random, types.operands, p.b_size);
  // Gaps between the elements of C keep their values, which `expected` holds too. Without `accumulate` no NaN of C
  // stays.
  Stored c = RandomStored(random, types.result, p.c_size);
  std::vector<double> expected = c.Doubles(), magnitude = Absolute(expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, a.Doubles(), b.Doubles(), expected);
  reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, Absolute(a.Doubles()), Absolute(b.Doubles()),
                    magnitude);
  if (!p.accumulate && p.c_size == p.batch * p.m * p.n) c = Unwritten(types.result, p.c_size);
  card.Run(signature, {a.data(), b.data(), c.data()});
  ExpectAccurate(p, types, c.Doubles(), expected, magnitude);
}

TEST_F(CudaKernels, MatmulOfRandomStrides) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 150; ++i) CheckProduct(*card_, random, RandomProblem(random), kTypes[i % 3]);
}

TEST_F(CudaKernels, MatmulOfDenseMatrices) {
  std::mt19937_64 random(9);
  for (const Types types : kTypes) {
    for (const Problem& p : {Dense(1, 149, 1201, 791), Dense(1, 512, 384, 1024), Dense(3, 64, 128, 256),
                             Dense(1, 1, 1601, 1000), Dense(1, 401, 1, 1000), Dense(1, 33, 37, 4096)}) {
      CheckProduct(*card_, random, p, types);
      Problem transposed = p;
      transposed.a = {p.m * p.k, 1, p.m};
      CheckProduct(*card_, random, transposed, types);
      transposed.b = {p.k * p.n, 1, p.k};
      transposed.accumulate = true;
      CheckProduct(*card_, random, transposed, types);
    }
  }
}

TEST_F(CudaKernels, MatmulWithNothingContiguous) {
  std::mt19937_64 random(10);
  for (const Types types : kTypes) {
    CheckProduct(*card_, random, Strided(1, 29, 201, 191), types);
    CheckProduct(*card_, random, Strided(3, 9, 33, 40), types);
  }
}

TEST_F(CudaKernels, MatmulTuned) {
  const auto tuned = CardRunner::Create({{"tune", "1"}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  std::mt19937_64 random(11);
  for (const Types types : kTypes) {
    CheckProduct(**tuned, random, Dense(1, 256, 512, 384), types);
    CheckProduct(**tuned, random, Dense(4, 65, 31, 97), types);
  }
}

void CheckProductWithoutWorkspace(CardRunner& card, std::mt19937_64& random, const Problem& p) {
  Signature signature = p.Sign(1);
  signature.scratch_limit = 0;
  const auto kernel = card.device().CreateKernel(signature);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->ScratchBytes(), 0u);
  Stored a = RandomStored(random, DType::kF32, p.a_size), b = RandomStored(random, DType::kF32, p.b_size);
  Stored c = Unwritten(DType::kF32, p.c_size);
  std::vector<double> expected(p.c_size), magnitude(p.c_size);
  reference::Matmul(1, p.m, p.n, p.k, p.a, p.b, p.c, false, a.Doubles(), b.Doubles(), expected);
  reference::Matmul(1, p.m, p.n, p.k, p.a, p.b, p.c, false, Absolute(a.Doubles()), Absolute(b.Doubles()), magnitude);
  card.Run(signature, {a.data(), b.data(), c.data()});
  ExpectAccurate(p, kTypes[0], c.Doubles(), expected, magnitude);
}

TEST_F(CudaKernels, MatmulWithoutWorkspace) {
  std::mt19937_64 random(12);
  CheckProductWithoutWorkspace(*card_, random, Dense(1, 130, 70, 3000));
}

// A measurement for a product with workspace is not taken for a product without workspace.
TEST_F(CudaKernels, MatmulTunedWithoutWorkspace) {
  const auto tuned = CardRunner::Create({{"tune", "1"}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  std::mt19937_64 random(21);
  const Problem p = Dense(1, 130, 70, 3000);
  CheckProduct(**tuned, random, p, kTypes[0]);
  CheckProductWithoutWorkspace(**tuned, random, p);
}

TEST_F(CudaKernels, AttentionOfRandomShapes) {
  std::mt19937_64 random(13);
  const std::vector<int64_t> dims = {1, 3, 8, 16, 20, 31, 33, 64, 80, 128, 256};
  for (int i = 0; i < 80; ++i) {
    AttentionSize s{};
    s.batch = 1 + static_cast<int64_t>(random() % 3);
    s.queries = 1 + static_cast<int64_t>(random() % 150);
    s.keys = s.queries + (i % 3 == 0 ? static_cast<int64_t>(random() % 150) : 0);
    s.kv_heads = 1 + static_cast<int64_t>(random() % 3);
    s.heads = s.kv_heads * (1 + static_cast<int64_t>(random() % 3));
    s.head_dim = dims[random() % dims.size()];
    s.causal = random() % 2;
    if (!s.causal && i % 5 == 0) s.keys = 1 + static_cast<int64_t>(random() % s.queries);
    s.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    CheckAttention(*card_, random, s, i % 2 == 0 ? DType::kBF16 : DType::kF32);
  }
}

TEST_F(CudaKernels, AttentionWithWindows) {
  std::mt19937_64 random(14);
  const std::vector<int64_t> windows = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 130, 200};
  const std::vector<int64_t> dims = {1, 3, 16, 31, 33, 64, 80};
  for (int i = 0; i < 60; ++i) {
    AttentionSize s{};
    s.batch = 1 + static_cast<int64_t>(random() % 2);
    s.queries = 1 + static_cast<int64_t>(random() % 210);
    s.keys = s.queries + (i % 3 == 0 ? static_cast<int64_t>(random() % 150) : 0);
    s.kv_heads = i % 4 == 0 ? 1 : 1 + static_cast<int64_t>(random() % 2);
    s.heads = s.kv_heads * (1 + static_cast<int64_t>(random() % 2));
    s.head_dim = dims[random() % dims.size()];
    s.causal = true;
    s.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
    s.window = i % 10 == 0 ? s.keys - 1 + static_cast<int64_t>(random() % 3) : windows[random() % windows.size()];
    s.window = std::max<int64_t>(s.window, 1);
    CheckAttention(*card_, random, s, i % 2 == 0 ? DType::kBF16 : DType::kF32);
  }
}

// Few and small, for tools that make a launch a thousand times as slow.
TEST_F(CudaKernels, AttentionByMatrixInstructions) {
  std::mt19937_64 random(17);
  for (const int64_t head_dim : {64, 96, 128}) {
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    CheckAttention(*card_, random, {1, 130, 130, 2, 1, head_dim, true, scale}, DType::kBF16);
    CheckAttention(*card_, random, {1, 70, 150, 1, 1, head_dim, true, scale, 40}, DType::kBF16);
  }
}

TEST_F(CudaKernels, AttentionOfLongSequences) {
  std::mt19937_64 random(15);
  for (const bool causal : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CheckAttention(*card_, random, {1, 1024, 1024, 2, 1, 32, causal, 1 / std::sqrt(32.0)}, dtype);
    }
  }
}

TEST_F(CudaKernels, AttentionOfSharpDistributions) {
  // Scores in the hundreds: the running maximum must keep every exponential in range.
  std::mt19937_64 random(16);
  for (const double scale : {1.0, -1.0}) {
    const AttentionSize s = {1, 70, 300, 2, 2, 16, false, scale};
    const std::vector<int64_t> q_shape = {1, 70, 2, 16}, k_shape = {1, 300, 2, 16}, lse_shape = {1, 2, 70};
    Stored q = RandomStored(random, DType::kF32, Count(q_shape), 10),
           k = RandomStored(random, DType::kF32, Count(k_shape), 10);
    Stored v = RandomStored(random, DType::kF32, Count(k_shape));
    Stored out = Unwritten(DType::kF32, Count(q_shape)), lse = Unwritten(DType::kF32, Count(lse_shape));
    Run({"attention_forward",
         {Int("causal", 0), Float("scale", scale)},
         {In(q_shape), In(k_shape), In(k_shape), Out(q_shape), Out(lse_shape)}},
        {q.data(), k.data(), v.data(), out.data(), lse.data()});
    const auto expected = reference::Attention(s, q.Doubles(), k.Doubles(), v.Doubles());
    // A score of magnitude 500 carries an f32 rounding error of 3e-5, which becomes a relative error of each
    // probability.
    EXPECT_LE(ScaledError(out.Values(), expected.out), 1e-4);
    EXPECT_LE(ScaledError(lse.Values(), expected.lse), 1e-6);
  }
}

TEST_F(CudaKernels, UnknownKernelsAndWrongSignaturesAreRefused) {
  EXPECT_EQ(card_->device().CreateKernel({"no such kernel", {}, {}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(card_->device().CreateKernel({"fill", {}, {Out({3})}}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bowline::kernels::testing
