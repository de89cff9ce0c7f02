#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace bowline {

// Picks an index of `logits`, which are not empty and finite: the largest, the first of equals, when temperature is 0;
// otherwise index i with the probability softmax(logits / temperature)[i], computed in f64.
//
// A pure function: the random number is word pair (0, 1) of Philox block `draw` under the seed (kernels/registry/
// philox.h), 53 bits of it, so that draws may be repeated, skipped or reordered.
int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw);

// The tokens among which one is picked, by the order of falling logits, where equal ones are in the order of indices:
// of the first `top_k`, or of all if that is 0, the fewest first ones whose probabilities, softmax(logits /
// temperature) among these, reach `top_p` together (Holtzman et al., 2020).
struct TokenLimits {
  int64_t top_k = 0;
  double top_p = 1;  // up to 1; 0 leaves one token
};

// The same with limits: index i has the probability softmax(logits / temperature)[i] among those that are left.
int64_t SampleToken(absl::Span<const float> logits, double temperature, const TokenLimits& limits, uint64_t seed,
                    uint64_t draw);

// The `count` largest of `logits`, or all if there are fewer, falling; equal ones are in the order of indices.
std::vector<int64_t> MostLikelyTokens(absl::Span<const float> logits, int64_t count);

// Returns log(softmax(logits)[token]), computed in f64.
double LogProbability(absl::Span<const float> logits, int64_t token);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
