#ifndef BOWLINE_KERNELS_REGISTRY_PHILOX_H_
#define BOWLINE_KERNELS_REGISTRY_PHILOX_H_

// Bowline's random numbers, as a pure function of (seed, key, global element index). This header is their definition:
// the CPU kernels, other backends and the reference interpreter all include or reproduce it. It depends on nothing.
//
// Generator: Philox4x32-10 of J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011. One block yields four 32-bit words; element e of a tensor uses word e mod 4 of the block with counter e / 4,
// so that an element's value depends on its GLOBAL index alone and not on how the tensor is sharded.

#include <array>
#include <cmath>
#include <cstdint>

namespace bowline {

using PhiloxBlock = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxBlock Philox4x32(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// The finalizer of SplitMix64 (G. Steele, D. Lea and C. Flood, OOPSLA 2014): a bijection of 64-bit words in which every
// input bit affects every output bit.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// `seed` is the user's, `key` names the stream (which parameter, which op, which step). For one seed, different keys
// always give different Philox keys, and the other way round.
inline PhiloxKey MixKey(uint64_t seed, uint64_t key) {
  const uint64_t mixed = MixBits(MixBits(seed + 0x9E3779B97F4A7C15u) ^ (key + 0xD1B54A32D192ED03u));
  return {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)};
}

inline PhiloxBlock RandomBlock(PhiloxKey key, uint64_t block) {
  return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, key);
}

// The four values of elements 4 * block .. 4 * block + 3.

// Uniform values in [0, 1) from the upper 24 bits of each word, so that every value is a float.
inline std::array<double, 4> UniformBlock(PhiloxKey key, uint64_t block) {
  const PhiloxBlock words = RandomBlock(key, block);
  std::array<double, 4> values;
  for (int i = 0; i < 4; ++i) values[i] = (words[i] >> 8) * 0x1p-24;
  return values;
}

// Standard normal by Box and Muller (1958) from words (0, 1) and (2, 3), in double. The radius uses (w + 1/2) 2^-32,
// which is never 0, so that |z| <= 6.77.
inline std::array<double, 4> NormalBlock(PhiloxKey key, uint64_t block) {
  const PhiloxBlock words = RandomBlock(key, block);
  std::array<double, 4> values;
  for (int i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log((words[i] + 0.5) * 0x1p-32));
    const double angle = 6.283185307179586476925 * (words[i + 1] * 0x1p-32);
    values[i] = radius * std::cos(angle);
    values[i + 1] = radius * std::sin(angle);
  }
  return values;
}

// The number in [0, 1) by which a token is chosen: 53 bits of words (0, 1) of block `draw`, in a stream that is apart
// from those of parameters and shuffles with the same seed.
inline double SamplingUniform(uint64_t seed, uint64_t draw) {
  constexpr uint64_t kStream = 0x73616D706C65;  // "sample"
  const PhiloxBlock words = RandomBlock(MixKey(seed, kStream), draw);
  const uint64_t bits = (uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace bowline

#endif  // BOWLINE_KERNELS_REGISTRY_PHILOX_H_
