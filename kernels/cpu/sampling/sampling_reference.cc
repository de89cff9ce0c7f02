#include "kernels/cpu/sampling/sampling_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/registry/philox.h"

namespace bowline::kernels::reference {
namespace {

// Picks one of `indices`, which ascend.
size_t Pick(absl::Span<const float> logits, absl::Span<const int32_t> indices, float largest, double temperature,
            double uniform) {
  const auto weight = [&](int32_t i) { return std::exp((static_cast<double>(logits[i]) - largest) / temperature); };
  double sum = 0;
  for (const int32_t i : indices) sum += weight(i);
  double reached = 0;
  for (const int32_t i : indices) {
    reached += weight(i);
    if (reached > uniform * sum) return static_cast<size_t>(i);
  }
  // This is not reached: the same additions in the same order end in `sum`, which is above uniform * sum.
  return static_cast<size_t>(indices.back());
}

// The indices that limits leave, ascending.
std::vector<int32_t> IndicesWithin(absl::Span<const float> logits, double temperature, const TokenLimits& limits) {
  std::vector<int32_t> heap(logits.size());
  std::iota(heap.begin(), heap.end(), 0);
  const auto is_later = [&](int32_t a, int32_t b) {
    return logits[a] < logits[b] || (logits[a] == logits[b] && a > b);
  };
  std::make_heap(heap.begin(), heap.end(), is_later);
  const float largest = logits[heap.front()];
  const auto weight = [&](int32_t i) { return std::exp((static_cast<double>(logits[i]) - largest) / temperature); };
  const size_t most = limits.top_k > 0 ? std::min(heap.size(), static_cast<size_t>(limits.top_k)) : heap.size();
  std::vector<int32_t> first;
  double sum = 0;
  if (limits.top_k == 0) {
    for (const int32_t i : heap) sum += weight(i);
  }
  const auto take = [&] {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    first.push_back(heap.back());
    heap.pop_back();
  };
  double reached = 0;
  // One at least: a tiny top_p becomes 0 in f32.
  while (first.size() < most && (first.empty() || limits.top_k > 0 || reached < limits.top_p * sum)) {
    take();
    if (limits.top_k == 0) reached += weight(first.back());
  }
  if (limits.top_k > 0 && limits.top_p < 1) {
    for (const int32_t i : first) sum += weight(i);
    size_t count = 0;
    while (count < first.size() && reached < limits.top_p * sum) reached += weight(first[count++]);
    first.resize(std::max<size_t>(count, 1));
  }
  std::sort(first.begin(), first.end());
  return first;
}

}  // namespace

int64_t SampleToken(absl::Span<const float> logits, double temperature, const TokenLimits& limits, uint64_t seed,
                    uint64_t draw) {
  if (temperature == 0 || (limits.top_k == 0 && limits.top_p >= 1)) {
    return SampleToken(logits, temperature, seed, draw);
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  const std::vector<int32_t> indices = IndicesWithin(logits, temperature, limits);
  return static_cast<int64_t>(Pick(logits, indices, largest, temperature, SamplingUniform(seed, draw)));
}

std::vector<int64_t> MostLikelyTokens(absl::Span<const float> logits, int64_t count) {
  const size_t kept = std::min(logits.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  if (kept == 0) return {};
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(kept), tokens.end(),
                    [&](int64_t a, int64_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  tokens.resize(kept);
  return tokens;
}

double LogProbability(absl::Span<const float> logits, int64_t token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[static_cast<size_t>(token)]) - largest - std::log(sum);
}

int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return largest - logits.begin();
  // Relative to the largest, so that nothing overflows and the sum is at least 1.
  const auto weight = [&](float logit) { return std::exp((static_cast<double>(logit) - *largest) / temperature); };
  double sum = 0;
  for (float logit : logits) sum += weight(logit);
  const double target = SamplingUniform(seed, draw) * sum;
  double reached = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    reached += weight(logits[i]);
    if (reached > target) return static_cast<int64_t>(i);
  }
  // This is not reached: the same additions in the same order end in `sum`, which is above `target`.
  return largest - logits.begin();
}

}  // namespace bowline::kernels::reference
