#include "kernels/cpu/sampling/sampling_scratch.h"

#include <algorithm>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/cpu/sampling/logits_row.h"
#include "kernels/signatures/sampling_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

size_t LogitsWorkspaceBytes(int64_t count) {
  const int64_t blocks = (count + kExponentialBlock - 1) / kExponentialBlock;
  const auto bytes =
      static_cast<size_t>(blocks) * sizeof(double) + static_cast<size_t>(count) * sizeof(LogitsRow::Candidate);
  return (bytes + 63) / 64 * 64;
}

size_t SampleTokensScratchBytes(const SampleTokensShape& shape, int threads) {
  return LogitsWorkspaceBytes(shape.vocabulary) *
         static_cast<size_t>(std::clamp<int64_t>(shape.rows, 1, std::max(threads, 1)));
}

absl::StatusOr<size_t> SampleTokensScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const SampleTokensShape shape, ParseSampleTokens(signature));
  return SampleTokensScratchBytes(shape, signature.threads);
}

}  // namespace bowline::kernels
