#include "runtime/train/token_sampling.h"

#include <algorithm>
#include <cmath>

#include "kernels/registry/philox.h"

namespace bowline {
namespace {

// Keeps these numbers apart from those of parameters and shuffles with the same seed.
constexpr uint64_t kSamplingStream = 0x73616D706C65;  // "sample"

// Returns a number in [0, 1).
double Uniform(uint64_t seed, uint64_t draw) {
  const PhiloxBlock words = RandomBlock(MixKey(seed, kSamplingStream), draw);
  const uint64_t bits = (uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return largest - logits.begin();
  // Relative to the largest, so that nothing overflows and the sum is at least 1.
  const auto weight = [&](float logit) { return std::exp((static_cast<double>(logit) - *largest) / temperature); };
  double sum = 0;
  for (float logit : logits) sum += weight(logit);
  const double target = Uniform(seed, draw) * sum;
  double reached = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    reached += weight(logits[i]);
    if (reached > target) return static_cast<int64_t>(i);
  }
  // This is not reached: the same additions in the same order end in `sum`, which is above `target`.
  return largest - logits.begin();
}

}  // namespace bowline
