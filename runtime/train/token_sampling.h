#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace bowline {

// Picks an index of `logits`, which must be finite and not empty. For temperature 0 it is the first of the largest
// logits. Otherwise index i has probability softmax(logits / temperature)[i], and `seed` and `draw` determine the
// choice. The kernel sample_tokens (kernels/cpu/sampling/logits_row.h) picks the same index.
int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
