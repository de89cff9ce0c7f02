#ifndef BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_
#define BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_

// Scaling of rotary positions from the numbers that GGUF files have in its place.

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/types/span.h"

namespace bowline {

// The `rope_scaling` of config.json whose frequencies are those of `theta`, each divided by its factor: an empty object
// where all factors are 1, nothing where no supported scaling has these factors. Llama 3.1 keeps the factor of long
// waves and the original number of positions in them; its other two parameters are 1 and 4 in every published model.
std::optional<nlohmann::json> RopeScalingOfFactors(absl::Span<const float> factors, double theta);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_ROPE_FACTORS_H_
