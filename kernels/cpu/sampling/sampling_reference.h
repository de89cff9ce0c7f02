#ifndef BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_REFERENCE_H_

// Reference implementations of the methods of LogitsRow, as loops in f64 over whole rows, for tests.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/sampling/logits_row.h"

namespace bowline::kernels::reference {

int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw);
int64_t SampleToken(absl::Span<const float> logits, double temperature, const TokenLimits& limits, uint64_t seed,
                    uint64_t draw);
std::vector<int64_t> MostLikelyTokens(absl::Span<const float> logits, int64_t count);
double LogProbability(absl::Span<const float> logits, int64_t token);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_REFERENCE_H_
