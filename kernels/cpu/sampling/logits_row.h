#ifndef BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/cpu/sampling/exponentials.h"

namespace bowline::kernels {

// The tokens among which one is picked, by the order of falling logits, where equal ones are in the order of indices:
// of the first `top_k`, or of all if that is 0, the fewest first ones whose probabilities, softmax(logits /
// temperature) among these, reach `top_p` together (Holtzman et al., 2020).
struct TokenLimits {
  int64_t top_k = 0;
  double top_p = 1;  // up to 1; 0 leaves one token
};

// Logits of this or less belong to no token: padding has them.
inline constexpr float kAbsentLogit = -1e30F;

// Bytes of workspace for a row of `count` logits; a multiple of 64.
size_t LogitsWorkspaceBytes(int64_t count);

// One row of logits, of which tokens are picked: the definition for all code doing so on a processor, kernel or not.
// All is computed in f64, and a pure function of its arguments: the random number is that of `draw` under the seed
// (SamplingUniform in kernels/registry/philox.h), so that draws may be repeated, skipped or reordered.
class LogitsRow {
 public:
  // At least one logit, and at most 2^31 - 1. `workspace` is aligned to 8 bytes and outlives this, as logits do.
  LogitsRow(absl::Span<const float> logits, void* workspace);

  // Whether all logits are finite; nothing else may be asked of others.
  bool is_finite() const { return extent_.finite; }

  // The largest logit, the first of equals, where the temperature is 0; otherwise index i with the probability
  // softmax(logits / temperature)[i] among those that limits leave.
  int64_t Sample(double temperature, const TokenLimits& limits, uint64_t seed, uint64_t draw);

  // log(softmax(logits)[token]).
  double LogProbability(int64_t token);

  struct Candidate {
    float logit;
    int32_t token;
  };
  // The `count` largest of tokens, falling, or all if there are fewer; equal ones are in the order of indices. Valid
  // until the next call.
  absl::Span<const Candidate> MostLikely(int64_t count);

 private:
  double Scale(double temperature) const;
  // The sum of exp((logit - largest) * scale) over all; the sums of blocks are in block_sums_.
  double SumAll(double scale);
  int64_t SampleFromAll(double temperature, double uniform);
  // The candidates that limits leave.
  absl::Span<Candidate> Within(double temperature, const TokenLimits& limits);
  // The first `count`, falling.
  absl::Span<Candidate> SelectFirst(int64_t count);
  // Those of logits from `least` on, in any order.
  absl::Span<Candidate> SelectFrom(float least);
  double Weight(const Candidate& candidate, double temperature) const;
  // A logit such that the weights of all below do not sum up to `rest`.
  float LeastWithin(double temperature, double rest) const;
  // How many of the first candidates reach `target` together, of which as many are sorted; 0 where all of them do not.
  int64_t CountReaching(absl::Span<Candidate> candidates, double temperature, double target) const;

  const ExponentialsTable& table_;
  const absl::Span<const float> logits_;
  const LogitsExtent extent_;
  double* const block_sums_;
  Candidate* const candidates_;  // as many as there are logits
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_
