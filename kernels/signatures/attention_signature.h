#ifndef BOWLINE_KERNELS_SIGNATURES_ATTENTION_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_ATTENTION_SIGNATURE_H_

// `attention_forward` and `attention_backward`, checked: each query sees a key.

#include "kernels/registry/registry.h"
#include "kernels/signatures/attention_shape.h"

namespace bowline::kernels {

absl::StatusOr<AttentionShape> ParseAttentionForward(const Signature& signature);
absl::StatusOr<AttentionShape> ParseAttentionBackward(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_ATTENTION_SIGNATURE_H_
