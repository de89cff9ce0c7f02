#include "kernels/cpu/quantized/quantized_reference.h"

#include <cmath>
#include <cstdlib>

namespace bowline::kernels::reference {
namespace {

// IEEE binary16.
double Half(const uint8_t* bytes) {
  const int bits = bytes[0] + 256 * bytes[1], exponent = bits / 1024 % 32, mantissa = bits % 1024;
  const double sign = bits >= 32768 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

int Signed(uint8_t byte) { return byte < 128 ? byte : byte - 256; }

// Element `i` of the block, 0 to 31 or 0 to 255.
Weight Element(ElementType format, const uint8_t* block, int i) {
  switch (format) {
    case ElementType::kQ8_0:
      return {Half(block), static_cast<double>(Signed(block[2 + i])), 0};
    case ElementType::kQ4_0: {
      const int byte = block[2 + i % 16];
      return {Half(block), (i < 16 ? byte % 16 : byte / 16) - 8.0, 0};
    }
    case ElementType::kQ4_1: {
      const int byte = block[4 + i % 16];
      return {Half(block), static_cast<double>(i < 16 ? byte % 16 : byte / 16), Half(block + 2)};
    }
    case ElementType::kQ4_K: {
      // The bits of 8 scales and 8 minima, in 12 bytes: the first four of each in 6 bits of a byte; of the others 4
      // bits in the last four bytes, and 2 bits above those of the first four.
      const int group = i / 32, other = group % 4;
      const uint8_t* packed = block + 4;
      const int scale = group < 4 ? packed[other] % 64 : packed[8 + other] % 16 + packed[other] / 64 * 16;
      const int minimum = group < 4 ? packed[4 + other] % 64 : packed[8 + other] / 16 + packed[4 + other] / 64 * 16;
      const int byte = block[16 + i / 64 * 32 + i % 32];
      return {Half(block) * scale, static_cast<double>(i % 64 < 32 ? byte % 16 : byte / 16),
              -Half(block + 2) * minimum};
    }
    case ElementType::kQ6_K: {
      const int half = i / 128, part = i % 128 / 32, low = block[64 * half + i % 64],
                high = block[128 + 32 * half + i % 32];
      const int four = part < 2 ? low % 16 : low / 16;
      const int two = high / (1 << 2 * part) % 4;
      return {Half(block + 208) * Signed(block[192 + i / 16]), four + 16 * two - 32.0, 0};
    }
    default:
      std::abort();
  }
}

}  // namespace

double Weight::Magnitude() const { return std::abs(scale * q) + std::abs(offset); }

std::vector<Weight> DecodeWeights(ElementType format, const std::vector<uint8_t>& blocks) {
  const ElementTypeInfo& info = InfoOf(format);
  std::vector<Weight> weights;
  for (size_t block = 0; block < blocks.size() / info.block_bytes; ++block) {
    for (int i = 0; i < info.block_elements; ++i) {
      weights.push_back(Element(format, &blocks[block * info.block_bytes], i));
    }
  }
  return weights;
}

std::vector<double> QuantizedMatmul(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                    const std::vector<Weight>& weights) {
  std::vector<double> out(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) out[i * n + j] += x[i * k + l] * weights[j * k + l].Value();
    }
  }
  return out;
}

std::vector<double> QuantizedMagnitudes(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                        const std::vector<Weight>& weights) {
  std::vector<double> out(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) out[i * n + j] += std::abs(x[i * k + l]) * weights[j * k + l].Magnitude();
    }
  }
  return out;
}

}  // namespace bowline::kernels::reference
