#include "kernels/signatures/sampling_signature.h"

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

absl::StatusOr<SampleTokensShape> ParseSampleTokens(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"logits", Access::kRead, DType::kF32, 2},
                                                 {"temperature", Access::kRead, DType::kF32, 1},
                                                 {"top_k", Access::kRead, DType::kI32, 1},
                                                 {"top_p", Access::kRead, DType::kF32, 1},
                                                 {"seeds", Access::kRead, DType::kI32, 2},
                                                 {"positions", Access::kRead, DType::kI32, 1},
                                                 {"wanted", Access::kRead, DType::kI32, 1},
                                                 {"tokens", Access::kWrite, DType::kI32, 1},
                                                 {"logprobs", Access::kWrite, DType::kF32, 1},
                                                 {"likely", Access::kWrite, DType::kI32, 2},
                                                 {"likely_logprobs", Access::kWrite, DType::kF32, 2}},
                                                {}));
  const std::vector<int64_t>&logits = signature.arguments[0].shape, &likely = signature.arguments[9].shape;
  const SampleTokensShape shape = {logits[0], logits[1], likely[1]};
  constexpr std::string_view kEach = "an element for each row of 'logits'";
  using Named = std::pair<size_t, std::string_view>;
  for (const auto& [argument, name] : std::initializer_list<Named>{{1, "temperature"},
                                                                   {2, "top_k"},
                                                                   {3, "top_p"},
                                                                   {5, "positions"},
                                                                   {6, "wanted"},
                                                                   {7, "tokens"},
                                                                   {8, "logprobs"}}) {
    BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, argument, name, {shape.rows}, kEach));
  }
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 4, "seeds", {shape.rows, 2}, "two words for each row of 'logits'"));
  for (const auto& [argument, name] : std::initializer_list<Named>{{9, "likely"}, {10, "likely_logprobs"}}) {
    BOWLINE_KERNEL_RETURN_IF_ERROR(
        CheckShape(signature, argument, name, {shape.rows, shape.likely}, "[rows of 'logits', columns of 'likely']"));
  }
  if (shape.vocabulary > INT32_MAX) return Refuse(signature, "more than 2^31 - 1 logits in a row");
  return shape;
}

KernelTraits SampleTokensTraits() { return {}; }

}  // namespace bowline::kernels
