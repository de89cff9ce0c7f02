#include <algorithm>

#include "kernels/cpu/quantized/quantized_division.h"
#include "kernels/cpu/quantized/quantized_reference.h"
#include "kernels/registry/data_check.h"
#include "kernels/signatures/quantized_signature.h"
#include "test/Unit/Kernels/stored_testing.h"
#include "types/block_formats.h"

namespace bowline::kernels::testing {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr DType kFormats[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K};

// Where a block has halves, which tests choose so that no result is NaN; all other bits are random.
std::vector<int> HalvesOf(DType format) {
  if (format == DType::kQ4_1 || format == DType::kQ4_K) return {0, 2};
  return {format == DType::kQ6_K ? 208 : 0};
}

Bytes RandomBlocks(std::mt19937_64& random, DType format, int64_t blocks) {
  const int64_t block_bytes = InfoOf(format).block_bytes;
  Bytes bytes(blocks * block_bytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (int64_t block = 0; block < blocks; ++block) {
    for (const int at : HalvesOf(format)) {
      // Of either sign and all magnitudes below 1, subnormal ones too.
      const uint16_t half = Narrow<F16>(std::ldexp(RandomFloats(random, 1)[0], -static_cast<int>(random() % 20))).bits;
      bytes[block * block_bytes + at] = static_cast<uint8_t>(half);
      bytes[block * block_bytes + at + 1] = static_cast<uint8_t>(half >> 8);
    }
  }
  return bytes;
}

Attribute Format(DType format) { return {"format", {}, {}, std::string(NameOf(format))}; }

struct Product {
  DType format;
  int64_t m, n, blocks;
  DType x = DType::kF32, out = DType::kF32;

  int64_t K() const { return blocks * InfoOf(format).block_elements; }
  Signature Sign(int threads) const {
    return {"quantized_matmul",
            {Format(format)},
            {In({m, K()}, x), In({n, blocks, InfoOf(format).block_bytes}, DType::kU8), Out({m, n}, out)},
            threads};
  }
  std::string Text() const {
    return std::string(NameOf(format)) + " m " + std::to_string(m) + " n " + std::to_string(n) + " k " +
           std::to_string(K()) + " " + std::string(NameOf(x)) + " to " + std::string(NameOf(out));
  }
};

Stored Multiply(const Product& p, Stored x, Bytes weights, int threads = 1) {
  Stored out = Unwritten(p.out, p.m * p.n);
  RunKernel(p.Sign(threads), {x.data(), weights.data(), out.data()});
  return out;
}

// Whether rows of x are split to numbers of bf16.
bool Splits(const Product& p) { return ActiveIsa() >= Isa::kAmx && p.m > kSomeRows && p.x == DType::kF32; }

// Elements of x that are rounded to integers with one scale, or split together.
int64_t GroupOf(const Product& p) { return p.format == DType::kQ6_K && !Splits(p) ? 16 : 32; }

// Whether row i of x is multiplied as integers, or split.
bool IsRounded(const Product& p, const std::vector<double>& x, int64_t i) {
  if (ActiveIsa() < (p.m <= kManyRows ? Isa::kAvx2 : Isa::kAvx512Bf16)) return false;
  if (p.m > kFewRows && p.x == DType::kBF16) return false;
  for (int64_t begin = 0; begin < p.K(); begin += GroupOf(p)) {
    double largest = 0;
    for (int64_t k = begin; k < begin + GroupOf(p); ++k) {
      if (!(std::abs(x[i * p.K() + k]) < 0x1p64)) return false;
      largest = std::max(largest, std::abs(x[i * p.K() + k]));
    }
    if (largest != 0 && largest < 0x1p-100) return false;
  }
  return true;
}

// The most that an element differs by, if row i of x is multiplied as integers, or split.
double IntegerBound(const Product& p, const std::vector<double>& x, const std::vector<reference::Weight>& weights,
                    int64_t i, int64_t n) {
  const double roundings = (static_cast<double>(p.K()) / (Splits(p) ? 4 : 16) + (Splits(p) ? 32 : 8)) * 0x1p-24;
  double of_x = 0, of_sums = 0;
  for (int64_t begin = 0; begin < p.K(); begin += GroupOf(p)) {
    double largest = 0;
    for (int64_t k = begin; k < begin + GroupOf(p); ++k) {
      largest = std::max(largest, std::abs(x[i * p.K() + k]));
    }
    for (int64_t k = begin; k < begin + GroupOf(p); ++k) {
      const reference::Weight& w = weights[n * p.K() + k];
      if (Splits(p)) {
        const double product = std::abs(x[i * p.K() + k]) * w.Magnitude();
        of_x += 0x1.01p-15 * std::abs(x[i * p.K() + k] * w.Value()) + 0x1p-25 * largest * w.Magnitude();
        of_sums += product;
        continue;
      }
      of_x += largest / 65534 * std::abs(w.Value());
      of_sums += (std::abs(x[i * p.K() + k]) + largest / 65534) * w.Magnitude();
    }
  }
  return of_x + roundings / (1 - roundings) * of_sums;
}

// The bounds that quantized.h derives.
void ExpectAgreement(const Product& p, const Stored& actual, const Stored& x, const Bytes& weights) {
  const auto decoded = reference::DecodeWeights(p.format, weights);
  const auto expected = reference::QuantizedMatmul(p.m, p.n, p.K(), x.Doubles(), decoded);
  const auto magnitudes = reference::QuantizedMagnitudes(p.m, p.n, p.K(), x.Doubles(), decoded);
  const bool rounds_weights = p.m > kFewRows && p.x == DType::kBF16 && ActiveIsa() >= Isa::kAvx512Bf16;
  const double roundings = static_cast<double>(p.K() + 4 + (p.K() + 767) / 768) * 0x1p-24;
  const double relative = roundings / (1 - roundings) + (rounds_weights ? 0x1p-8 : 0);
  const double subnormal = static_cast<double>((Splits(p) ? 3 : 1) * p.K()) * 0x1p-126;
  const Floats values = actual.Values();
  const std::vector<double> of_x = x.Doubles();
  std::vector<bool> rounded(p.m);
  for (int64_t i = 0; i < p.m; ++i) rounded[i] = IsRounded(p, of_x, i);
  int64_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / p.n, column = static_cast<int64_t>(i) % p.n;
    const double bound =
        subnormal + (rounded[row] ? IntegerBound(p, of_x, decoded, row, column) : relative * magnitudes[i]);
    const double stored = StoringError(p.out, std::abs(expected[i]) + bound);
    if (!(std::abs(values[i] - expected[i]) <= bound + stored) && wrong++ == 0) {
      ADD_FAILURE() << "element " << i << " is " << values[i] << ", expected " << expected[i] << " within "
                    << bound + stored;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << expected.size();
}

using QuantizedTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, QuantizedTest, AllIsas(), IsaName);

TEST_P(QuantizedTest, ProductsAgreeAndAreTheSameForEveryNumberOfThreads) {
  std::mt19937_64 random(1);
  for (const DType format : kFormats) {
    const bool large = InfoOf(format).block_elements == 256;
    for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 17, 49, 64, 65, 530}) {
      if (m > 500 && format != DType::kQ4_1 && format != DType::kQ4_K) continue;  // the reference is slow
      for (int i = 0; i < 4; ++i) {
        Product p{format, m, 1 + static_cast<int64_t>(random() % (i == 3 ? 500 : 70)),
                  1 + static_cast<int64_t>(random() % (large ? 4 : 30))};
        p.x = i % 2 == 0 ? DType::kF32 : DType::kBF16;
        p.out = i == 1 ? DType::kBF16 : DType::kF32;
        SCOPED_TRACE(p.Text());
        const Stored x = RandomStored(random, p.x, p.m * p.K());
        const Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
        const Stored one = Multiply(p, x, weights);
        ExpectAgreement(p, one, x, weights);
        for (const int threads : {2, 3, 4}) EXPECT_TRUE(Multiply(p, x, weights, threads) == one) << threads;
      }
    }
  }
}

// Between few rows, between some, and between more, the result of a row does not depend on how many rows there are.
TEST_P(QuantizedTest, RowsDoNotDependOnOthers) {
  std::mt19937_64 random(2);
  for (const DType format : kFormats) {
    for (const auto& [most, least] : {std::pair<int64_t, int64_t>{kFewRows, 1},
                                      {kSomeRows, kFewRows + 1},
                                      {kManyRows, kSomeRows + 1},
                                      {140, kManyRows + 1}}) {
      for (const DType type : {DType::kF32, DType::kBF16}) {
        Product p{format, most, 37, 3, type, type};
        SCOPED_TRACE(p.Text());
        const Stored x = RandomStored(random, type, p.m * p.K());
        const Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
        const Floats all = Multiply(p, x, weights).Values(), rows = x.Values();
        for (p.m = least; p.m < most; p.m += 1 + p.m / 9) {
          const Stored first(type, Floats(rows.begin(), rows.begin() + p.m * p.K()));
          EXPECT_TRUE(SameBits(Multiply(p, first, weights).Values(), Floats(all.begin(), all.begin() + p.m * p.n)))
              << p.m;
        }
      }
    }
  }
}

Floats Gather(DType format, int64_t rows, int64_t blocks, Bytes table, std::vector<int32_t> ids, DType type,
              int threads = 1) {
  const int64_t columns = blocks * InfoOf(format).block_elements, count = static_cast<int64_t>(ids.size());
  Stored out = Unwritten(type, count * columns);
  RunKernel({"quantized_gather",
             {Format(format)},
             {In({rows, blocks, InfoOf(format).block_bytes}, DType::kU8), In({count}, DType::kI32),
              Out({count, columns}, type)},
             threads},
            {table.data(), ids.data(), out.data()});
  return out.Values();
}

bool SameNumbers(const Floats& a, const Floats& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::isnan(x) ? std::isnan(y) : std::memcmp(&x, &y, sizeof(x)) == 0;
  });
}

// All bits of blocks are random, scales that are NaN or infinite among them, and rows are of all lengths.
TEST_P(QuantizedTest, GatheringDecodesAsReadersOfFilesDo) {
  std::mt19937_64 random(3);
  for (const DType format : kFormats) {
    const ElementTypeInfo& info = InfoOf(format);
    int64_t special = 0;
    for (const int64_t blocks : {1, 2, 15, 16, 17, 31, 32, 40}) {
      constexpr int64_t kRows = 70;
      Bytes table(kRows * blocks * info.block_bytes);
      for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
      Floats expected(kRows * blocks * info.block_elements);
      ReadBlocks(format, table.data(), kRows * blocks, expected.data());
      const auto weights = reference::DecodeWeights(format, table);
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto exact = static_cast<float>(weights[i].Value());
        special += !std::isfinite(exact);
        ASSERT_TRUE(exact == expected[i] || (std::isnan(exact) && std::isnan(expected[i])))
            << NameOf(format) << ", element " << i << ": " << expected[i] << ", exactly " << exact;
      }
      std::vector<int32_t> ids(kRows);
      for (int32_t i = 0; i < kRows; ++i) ids[i] = i;
      for (const int threads : {1, 3}) {
        EXPECT_TRUE(SameNumbers(Gather(format, kRows, blocks, table, ids, DType::kF32, threads), expected))
            << NameOf(format) << ", " << blocks;
        EXPECT_TRUE(SameNumbers(Gather(format, kRows, blocks, table, ids, DType::kBF16, threads),
                                Stored(DType::kBF16, expected).Values()))
            << NameOf(format) << ", " << blocks;
      }
    }
    EXPECT_GT(special, 0) << NameOf(format);
  }
}

TEST(QuantizedGather, IdsOutOfRangeCountAsTheNearest) {
  std::mt19937_64 random(4);
  const Bytes table = RandomBlocks(random, DType::kQ4_1, 9 * 3);
  EXPECT_TRUE(SameNumbers(Gather(DType::kQ4_1, 9, 3, table, {-1, INT32_MIN, 9, INT32_MAX, 4}, DType::kF32),
                          Gather(DType::kQ4_1, 9, 3, table, {0, 0, 8, 8, 4}, DType::kF32)));
  const DataCheck* check = FindDataCheck("quantized_gather");
  ASSERT_NE(check, nullptr);
  const Signature signature = {
      "quantized_gather", {Format(DType::kQ4_1)}, {In({9, 3, 20}, DType::kU8), In({5}, DType::kI32), Out({5, 96})}, 1};
  EXPECT_EQ(RowsOfCheck(*check, signature), 9);
  EXPECT_EQ(SignatureOfCheck(*check, signature).arguments[0].shape, std::vector<int64_t>{5});
}

// NaN and infinite scales stay in their columns, and no other column has one.
TEST_P(QuantizedTest, SpecialScalesStayInTheirColumns) {
  std::mt19937_64 random(5);
  for (const DType format : kFormats) {
    for (const int64_t m : {int64_t{1}, int64_t{3}, int64_t{8}, int64_t{20}, kSomeRows + 1, kManyRows + 1}) {
      const Product p{format, m, 21, 19};
      const Stored x(DType::kF32, Floats(m * p.K(), 1.0f));
      Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
      for (const int64_t n : {0, 7, 20}) {
        const int64_t block = n * p.blocks + static_cast<int64_t>(random() % p.blocks);
        weights[block * InfoOf(format).block_bytes + HalvesOf(format)[0] + 1] = 0x7e;  // NaN
      }
      const Floats out = Multiply(p, x, weights, 2).Values();
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t n = i % static_cast<size_t>(p.n);
        EXPECT_EQ(std::isnan(out[i]), n == 0 || n == 7 || n == 20) << p.Text() << ", column " << n;
      }
    }
  }
}

// Rows with elements of all magnitudes: values that 16 bits and one scale hold, others, infinities and NaN.
TEST_P(QuantizedTest, RowsOfAllMagnitudes) {
  std::mt19937_64 random(6);
  for (const DType format : kFormats)
    for (const int64_t m : {kFewRows, kFewRows + 5, kSomeRows + 3, kManyRows + 1}) {
      Product p{format, m, 11, InfoOf(format).block_elements == 256 ? 2 : 9};
      const Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
      Floats x = RandomFloats(random, p.m * p.K());
      const auto row = [&](int64_t i) { return x.data() + i * p.K(); };
      std::fill(row(0), row(1), 0.0f);
      row(1)[70] = 0x1p60f;
      row(2)[3] = 0x1p80f;
      for (int64_t k = 0; k < p.K(); ++k) row(3)[k] *= 0x1p-95f;
      for (int64_t k = 0; k < p.K(); ++k) row(4)[k] *= 0x1p-110f;
      for (int64_t k = 0; k < 64; ++k) row(5)[k] *= 0x1p-135f;
      for (int64_t k = 0; k < p.K(); ++k) row(6)[k] = k % 64 == 7 ? -1.0f : 0x1p-30f;
      for (int64_t k = 0; k < p.K(); ++k) row(7)[k] = k % 2 == 0 ? 1.0f : -1.0f;
      const Stored all(DType::kF32, x);
      const Stored out = Multiply(p, all, weights, 2);
      ExpectAgreement(p, out, all, weights);
      const Floats values = out.Values();
      for (int64_t n = 0; n < p.n; ++n) EXPECT_EQ(values[n], 0.0f) << p.Text();

      // Infinities and NaNs reach the results of their row as with decoded weights in f32, and those of no other row.
      row(1)[5] = NAN;
      row(3)[40] = INFINITY;
      row(6)[63] = -INFINITY;
      row(6)[1] = INFINITY;
      const Floats special = Multiply(p, Stored(DType::kF32, x), weights, 2).Values();
      Floats decoded(p.n * p.K());
      ReadBlocks(format, weights.data(), p.n * p.blocks, decoded.data());
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t n = 0; n < p.n; ++n) {
          const float value = special[i * p.n + n];
          if (i == 1 || i == 3 || i == 6) {
            float expected = 0;
            for (int64_t k = 0; k < p.K(); ++k) expected += row(i)[k] * decoded[n * p.K() + k];
            EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : value == expected)
                << p.Text() << ", row " << i << ", " << value << ", expected " << expected;
          } else {
            EXPECT_EQ(value, values[i * p.n + n]) << p.Text() << ", row " << i;
          }
        }
      }
    }
}

// Plans for lesser processors have no room for rounded x, nor for tiles.
TEST(QuantizedScratch, WithoutRoomProductsAreThoseOfLesserProcessors) {
  std::mt19937_64 random(7);
  for (const DType format : kFormats) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      for (const int64_t m : {5, 20}) {
        if (type == DType::kF32 && m > kFewRows) continue;  // integers take less room than decoded weights
        const Product p{format, m, 30, 3, type, type};
        Stored x = RandomStored(random, type, p.m * p.K());
        Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
        Signature signature = p.Sign(2);
        const auto run = [&] {
          Stored out = Unwritten(p.out, p.m * p.n);
          RunKernel(signature, {x.data(), weights.data(), out.data()});
          return out;
        };
        const bool pairs = type == DType::kBF16 && m > kFewRows;
        LimitIsaForTesting(Isa::kAvx512Bf16);
        signature.scratch_limit =
            DivideQuantizedMatmul(*ParseQuantizedMatmul(signature), 2, ActiveIsa(), /*plain=*/true).ScratchBytes(2);
        if (!pairs) LimitIsaForTesting(Isa::kAvx512);
        const Stored expected = run();
        LimitIsaForTesting(kBestIsa);
        EXPECT_EQ((*CreateKernel(signature))->ScratchBytes(), signature.scratch_limit) << p.Text();
        EXPECT_TRUE(run() == expected) << p.Text();
      }
    }
  }
}

// The scratch that processors without AMX need has no room for split rows either.
TEST(QuantizedScratch, WithoutRoomForSplitRowsTheyAreIntegers) {
  std::mt19937_64 random(8);
  for (const DType format : kFormats) {
    const Product p{format, kSomeRows + 2, 30, 3};
    Stored x = RandomStored(random, p.x, p.m * p.K());
    Bytes weights = RandomBlocks(random, format, p.n * p.blocks);
    Signature signature = p.Sign(2);
    const auto run = [&] {
      Stored out = Unwritten(p.out, p.m * p.n);
      RunKernel(signature, {x.data(), weights.data(), out.data()});
      return out;
    };
    LimitIsaForTesting(Isa::kAvx512Bf16);
    signature.scratch_limit =
        DivideQuantizedMatmul(*ParseQuantizedMatmul(signature), 2, ActiveIsa(), /*plain=*/false).ScratchBytes(2);
    const Stored expected = run();
    LimitIsaForTesting(kBestIsa);
    EXPECT_EQ((*CreateKernel(signature))->ScratchBytes(), signature.scratch_limit) << p.Text();
    EXPECT_TRUE(run() == expected) << p.Text();
  }
}

TEST(QuantizedRefusals, EverythingUnsafe) {
  const Signature multiply = Product{DType::kQ4_K, 3, 5, 2}.Sign(1);
  const Signature gather = {"quantized_gather",
                            {Format(DType::kQ4_K)},
                            {In({5, 2, 144}, DType::kU8), In({3, 4}, DType::kI32), Out({3, 4, 512})},
                            1};
  for (const Signature& good : {multiply, gather}) {
    ASSERT_TRUE(CreateKernel(good).ok()) << CreateKernel(good).status();
    for (size_t i = 0; i < good.arguments.size(); ++i) {
      Signature bad = good;
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
    bad.attributes.push_back(Int("transposed", 1));
    ExpectRefused(bad, "has no attribute 'transposed'");
    bad = good;
    bad.threads = 0;
    ExpectRefused(bad, "threads is 0");
    bad = good;
    bad.arguments.pop_back();
    ExpectRefused(bad, "it takes");
    bad.arguments.clear();
    ExpectRefused(bad, "it takes");
    // Formats: none, no text, no type, a type that has no blocks, and blocks that are only named.
    bad = good;
    bad.attributes.clear();
    ExpectRefused(bad, "'format' is missing; it must be a format of blocks: q8_0, q4_0");
    bad.attributes = {Int("format", 12)};
    ExpectRefused(bad, "'format' must be a format of blocks");
    for (const std::string name : {"", "q9", "f32", "q5_k", "Q4_K"}) {
      bad.attributes = {{"format", {}, {}, name}};
      ExpectRefused(bad, "'format' is '" + name + "'; it must be a format of blocks");
    }
    bad.attributes = {Format(DType::kQ4_K), Format(DType::kQ4_K)};
    ExpectRefused(bad, "given twice");
    bad.attributes = {Format(DType::kQ6_K)};
    ExpectRefused(bad, "bytes of a block of the format] = [5, 2, 210]");
  }
  const auto expect_refused = [](Signature signature, size_t argument, size_t extent, const std::string& message) {
    ++signature.arguments[argument].shape[extent];
    ExpectRefused(signature, message);
  };
  expect_refused(multiply, 0, 0, "'out'");
  expect_refused(multiply, 0, 1, "'x'");
  expect_refused(multiply, 1, 0, "'out'");
  expect_refused(multiply, 1, 1, "'x'");
  expect_refused(multiply, 1, 2, "'weights'");
  expect_refused(multiply, 2, 0, "'out'");
  expect_refused(multiply, 2, 1, "'out'");
  expect_refused(gather, 0, 1, "'out'");
  expect_refused(gather, 0, 2, "'table'");
  for (const size_t extent : {0, 1}) expect_refused(gather, 1, extent, "'out'");
  for (const size_t extent : {0, 1, 2}) expect_refused(gather, 2, extent, "'out'");
  for (const size_t argument : {0, 1, 2}) {
    Signature bad = multiply;
    bad.arguments[argument].shape.pop_back();
    ExpectRefused(bad, "is needed");
  }
  Signature bad = multiply;
  bad.arguments[0].dtype = DType::kF16;
  ExpectRefused(bad, "does not compute in f16");
  bad = multiply;
  bad.arguments[2].dtype = DType::kBF16;
  ExpectRefused(bad, "'out' is bf16; only f32");
  bad = gather;
  bad.arguments[2].dtype = DType::kF16;
  ExpectRefused(bad, "does not compute in f16");
}

}  // namespace
}  // namespace bowline::kernels::testing
