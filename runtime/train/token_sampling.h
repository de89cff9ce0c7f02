#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace bowline {

// Picks an index of `logits`, which are not empty and finite, as the kernel sample_tokens does
// (kernels/cpu/sampling/logits_row.h): the largest, the first of equals, when temperature is 0; otherwise index i with
// the probability softmax(logits / temperature)[i].
int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SAMPLING_H_
