#ifndef BOWLINE_KERNELS_SIGNATURES_SAMPLING_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_SAMPLING_SIGNATURE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct SampleTokensShape {
  int64_t rows, vocabulary;
  int64_t likely;  // most likely tokens that results have room for
};

// sample_tokens: logits f32 [S, V]; temperature f32, top_k i32, top_p f32 [S]; seeds i32 [S, 2]; positions, wanted i32
// [S]; writes tokens i32 and logprobs f32 [S], likely tokens i32 and their logprobs f32 [S, L].
absl::StatusOr<SampleTokensShape> ParseSampleTokens(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_SAMPLING_SIGNATURE_H_
