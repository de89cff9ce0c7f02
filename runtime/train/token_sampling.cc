#include "runtime/train/token_sampling.h"

#include <vector>

#include "kernels/cpu/sampling/logits_row.h"

namespace bowline {

int64_t SampleToken(absl::Span<const float> logits, double temperature, uint64_t seed, uint64_t draw) {
  std::vector<double> workspace(kernels::LogitsWorkspaceBytes(static_cast<int64_t>(logits.size())) / sizeof(double));
  return kernels::LogitsRow(logits, workspace.data()).Sample(temperature, {}, seed, draw);
}

}  // namespace bowline
