#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace bowline {

// Picks an index of `logits`, which are not empty and finite: the largest, the first of equals, when temperature is 0;
// otherwise index i with the probability softmax(logits / temperature)[i], computed in f64.
//
// A pure function: the random number is word pair (0, 1) of Philox block `draw` under the seed (kernels/registry/
// philox.h), 53 bits of it, so that draws may be repeated, skipped or reordered.
int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
