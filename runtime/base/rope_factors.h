#ifndef BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_
#define BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_

// Recovers the scaling of rotary positions from the factors that GGUF files have in its place.

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/types/span.h"

namespace bowline {

// The `rope_scaling` of config.json that divides each frequency of `theta` by its factor. An empty object if all
// factors are 1; absent if no supported scaling has these factors. The factors of Llama 3.1 tell the factor of long
// waves and the original number of positions; its other two parameters are 1 and 4 in every published model.
std::optional<nlohmann::json> RopeScalingOfFactors(absl::Span<const float> factors, double theta);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_
