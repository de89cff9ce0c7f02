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

// The bounds that quantized.h derives.
void ExpectAgreement(const Product& p, const Stored& actual, const Stored& x, const Bytes& weights) {
  const auto decoded = reference::DecodeWeights(p.format, weights);
  const auto expected = reference::QuantizedMatmul(p.m, p.n, p.K(), x.Doubles(), decoded);
  const auto magnitudes = reference::QuantizedMagnitudes(p.m, p.n, p.K(), x.Doubles(), decoded);
  const bool rounds_weights = p.m > kFewRows && p.x == DType::kBF16 && ActiveIsa() >= Isa::kAvx512Bf16;
  const double roundings = static_cast<double>(p.K() + 4 + (p.K() + 767) / 768) * 0x1p-24;
  const double relative = roundings / (1 - roundings) + (rounds_weights ? 0x1p-8 : 0);
  const double subnormal = static_cast<double>(p.K()) * 0x1p-126;
  const Floats values = actual.Values();
  int64_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double bound = relative * magnitudes[i] + subnormal;
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
    for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 17, 64, 65}) {
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

}  // namespace
}  // namespace bowline::kernels::testing
