#ifndef BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/cpu/sampling/exponentials.h"

namespace bowline::kernels {

// Limits on the tokens among which one is drawn. Tokens are sorted by falling logit, then by rising index. The first
// `top_k` remain, or all if it is 0. Of these, the shortest prefix remains whose probabilities, softmax(logits /
// temperature) over the first `top_k`, sum to `top_p` or more (Holtzman et al., 2020).
struct TokenLimits {
  int64_t top_k = 0;
  double top_p = 1;  // up to 1; 0 leaves one token
};

// A logit of at most this value belongs to no token; padding of the vocabulary has such logits.
inline constexpr float kAbsentLogit = -1e30F;

// Bytes of workspace for a row of `count` logits; a multiple of 64.
size_t LogitsWorkspaceBytes(int64_t count);

// Picks tokens from one row of logits. All code that samples on the CPU, in kernels or outside, uses this class. It
// computes in f64. Results are pure functions of the arguments: `seed` and `draw` determine the random number
// (SamplingUniform in kernels/registry/philox.h), so that draws may be repeated, skipped or reordered.
class LogitsRow {
 public:
  // At least one logit, and at most 2^31 - 1. `workspace` is aligned to 8 bytes and outlives this, as logits do.
  LogitsRow(absl::Span<const float> logits, void* workspace);

  // Returns whether all logits are finite. If not, no other method may be called.
  bool is_finite() const { return extent_.finite; }

  // With temperature 0, the first index of the largest logit. Otherwise draws an index among those that `limits` leave,
  // with probabilities proportional to softmax(logits / temperature).
  int64_t Sample(double temperature, const TokenLimits& limits, uint64_t seed, uint64_t draw);

  // log(softmax(logits)[token]).
  double LogProbability(int64_t token);

  struct Candidate {
    float logit;
    int32_t token;
  };
  // The `count` tokens with the largest logits, or all if there are fewer, sorted by falling logit, then by rising
  // index. The span is valid until the next call.
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
  // The candidates whose logits are at least `least`, in any order.
  absl::Span<Candidate> SelectFrom(float least);
  double Weight(const Candidate& candidate, double temperature) const;
  // A logit such that the weights of all below do not sum up to `rest`.
  float LeastWithin(double temperature, double rest) const;
  // Returns the number of first candidates whose weights reach `target`, and sorts as many; 0 if all of them do not.
  int64_t CountReaching(absl::Span<Candidate> candidates, double temperature, double target) const;

  const ExponentialsTable& table_;
  const absl::Span<const float> logits_;
  const LogitsExtent extent_;
  double* const block_sums_;
  Candidate* const candidates_;  // as many as there are logits
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_LOGITS_ROW_H_
