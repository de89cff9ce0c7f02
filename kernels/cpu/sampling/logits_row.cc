#include "kernels/cpu/sampling/logits_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/registry/philox.h"

namespace bowline::kernels {
namespace {

int64_t BlockCount(int64_t logits) { return (logits + kExponentialBlock - 1) / kExponentialBlock; }

bool IsBefore(const LogitsRow::Candidate& a, const LogitsRow::Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

}  // namespace

LogitsRow::LogitsRow(absl::Span<const float> logits, void* workspace)
    : table_(BOWLINE_SELECT_ISA(kExponentials)),
      logits_(logits),
      extent_(table_.extent(logits.data(), static_cast<int64_t>(logits.size()))),
      block_sums_(static_cast<double*>(workspace)),
      candidates_(reinterpret_cast<Candidate*>(block_sums_ + BlockCount(static_cast<int64_t>(logits.size())))) {}

// Finite, so that it is zero times the largest logit's distance to itself.
double LogitsRow::Scale(double temperature) const { return 1 / std::max(temperature, 1e-300); }

double LogitsRow::SumAll(double scale) {
  const auto count = static_cast<int64_t>(logits_.size());
  table_.sum_blocks(logits_.data(), count, extent_.largest, scale, block_sums_);
  double sum = 0;
  for (int64_t block = 0; block < BlockCount(count); ++block) sum += block_sums_[block];
  return sum;
}

int64_t LogitsRow::SampleFromAll(double temperature, double uniform) {
  const auto count = static_cast<int64_t>(logits_.size());
  const double scale = Scale(temperature), target = uniform * SumAll(scale);
  // The same additions in the same order end above the target.
  int64_t block = 0;
  double reached = 0;
  while (block + 1 < BlockCount(count) && reached + block_sums_[block] <= target) reached += block_sums_[block++];
  const int64_t begin = block * kExponentialBlock, size = std::min(kExponentialBlock, count - begin);
  double weights[kExponentialBlock];
  table_.block(logits_.data() + begin, size, extent_.largest, scale, weights);
  // The order of additions is another one than that of the block's sum, so that they may end a little below.
  int64_t last = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (weights[i] == 0) continue;
    last = i;
    reached += weights[i];
    if (reached > target) break;
  }
  return begin + last;
}

absl::Span<LogitsRow::Candidate> LogitsRow::SelectFirst(int64_t wanted) {
  const auto count = static_cast<int64_t>(logits_.size());
  const int64_t kept = std::min(wanted, count), room = std::min(count, 4 * kept + 256);
  int64_t size = 0;
  float least = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; (i = table_.find_at_least(logits_.data(), i, count, least)) < count; ++i) {
    candidates_[size++] = {logits_[static_cast<size_t>(i)], static_cast<int32_t>(i)};
    if (size < room || kept == count) continue;
    std::nth_element(candidates_, candidates_ + kept - 1, candidates_ + size, &IsBefore);
    size = kept;
    // One that is equal to the last of these comes behind it.
    least = std::nextafter(candidates_[kept - 1].logit, std::numeric_limits<float>::infinity());
  }
  std::nth_element(candidates_, candidates_ + kept - 1, candidates_ + size, &IsBefore);
  std::sort(candidates_, candidates_ + kept, &IsBefore);
  return {candidates_, static_cast<size_t>(kept)};
}

absl::Span<LogitsRow::Candidate> LogitsRow::SelectFrom(float least) {
  const auto count = static_cast<int64_t>(logits_.size());
  size_t size = 0;
  for (int64_t i = 0; (i = table_.find_at_least(logits_.data(), i, count, least)) < count; ++i) {
    candidates_[size++] = {logits_[static_cast<size_t>(i)], static_cast<int32_t>(i)};
  }
  return {candidates_, size};
}

double LogitsRow::Weight(const Candidate& candidate, double temperature) const {
  return std::exp((static_cast<double>(candidate.logit) - extent_.largest) * Scale(temperature));
}

int64_t LogitsRow::CountReaching(absl::Span<Candidate> candidates, double temperature, double target) const {
  double reached = 0;
  size_t sorted = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i == sorted) {
      // Few tokens have most of the probability, as a rule.
      sorted = std::min(candidates.size(), 4 * sorted + 64);
      const auto end = candidates.begin() + static_cast<ptrdiff_t>(sorted);
      std::nth_element(candidates.begin() + static_cast<ptrdiff_t>(i), end - 1, candidates.end(), &IsBefore);
      std::sort(candidates.begin() + static_cast<ptrdiff_t>(i), end, &IsBefore);
    }
    reached += Weight(candidates[i], temperature);
    if (reached >= target) return static_cast<int64_t>(i) + 1;
  }
  return 0;
}

float LogitsRow::LeastWithin(double temperature, double rest) const {
  // All other tokens together have at most half of the probability that is left out.
  const double share = 0.5 * rest / static_cast<double>(logits_.size());
  if (!(share > 0)) return -std::numeric_limits<float>::infinity();
  const double least = extent_.largest + std::log(share) / Scale(temperature);
  // Rounded to f32, and no lower than a number of it.
  return least > -3e38 ? static_cast<float>(least) : -std::numeric_limits<float>::infinity();
}

absl::Span<LogitsRow::Candidate> LogitsRow::Within(double temperature, const TokenLimits& limits) {
  if (limits.top_k > 0) {
    const absl::Span<Candidate> first = SelectFirst(limits.top_k);
    if (limits.top_p >= 1) return first;
    double sum = 0;
    for (const Candidate& candidate : first) sum += Weight(candidate, temperature);
    const int64_t within = CountReaching(first, temperature, limits.top_p * sum);
    return within == 0 ? first : first.subspan(0, static_cast<size_t>(within));
  }
  const double sum = SumAll(Scale(temperature)), target = limits.top_p * sum;
  for (const float least :
       {LeastWithin(temperature, (1 - limits.top_p) * sum), -std::numeric_limits<float>::infinity()}) {
    const absl::Span<Candidate> likely = SelectFrom(least);
    const int64_t within = CountReaching(likely, temperature, target);
    if (within > 0) return likely.subspan(0, static_cast<size_t>(within));
  }
  return {candidates_, logits_.size()};
}

int64_t LogitsRow::Sample(double temperature, const TokenLimits& limits, uint64_t seed, uint64_t draw) {
  // Greedy, also for a temperature that is NaN.
  if (!(temperature > 0)) {
    return table_.find_at_least(logits_.data(), 0, static_cast<int64_t>(logits_.size()), extent_.largest);
  }
  const double uniform = SamplingUniform(seed, draw);
  if (limits.top_k == 0 && limits.top_p >= 1) return SampleFromAll(temperature, uniform);
  const absl::Span<Candidate> within = Within(temperature, limits);
  std::sort(within.begin(), within.end(), [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  double sum = 0;
  for (const Candidate& candidate : within) sum += Weight(candidate, temperature);
  double reached = 0;
  for (const Candidate& candidate : within) {
    reached += Weight(candidate, temperature);
    if (reached > uniform * sum) return candidate.token;
  }
  // This is not reached: the same additions in the same order end in `sum`, which is above uniform * sum.
  return within.back().token;
}

double LogitsRow::LogProbability(int64_t token) {
  const double sum = SumAll(1);
  return static_cast<double>(logits_[static_cast<size_t>(token)]) - extent_.largest - std::log(sum);
}

absl::Span<const LogitsRow::Candidate> LogitsRow::MostLikely(int64_t count) {
  if (count <= 0) return {};
  const absl::Span<const Candidate> first = SelectFirst(count);
  const auto* const end =
      std::partition_point(first.begin(), first.end(), [](const Candidate& c) { return c.logit > kAbsentLogit; });
  return first.subspan(0, static_cast<size_t>(end - first.begin()));
}

}  // namespace bowline::kernels
