#include "runtime/base/rope_factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace bowline {
namespace {

constexpr double kTurn = 6.283185307179586, kLow = 1, kHigh = 4;

// A file's factors are computed in f32, of frequencies in f32.
constexpr double kRelative = 1e-5;

bool IsNear(double a, double b) { return std::abs(a - b) <= kRelative * b; }

// How much of a frequency is kept, from the factor that divides it: 0 for the largest, 1 for none.
double KeptOf(double factor, double largest) { return (1 / factor - 1 / largest) / (1 - 1 / largest); }

}  // namespace

std::optional<nlohmann::json> RopeScalingOfFactors(absl::Span<const float> factors, double theta) {
  if (factors.empty() || !std::isfinite(theta) || theta <= 0) return std::nullopt;
  if (!std::all_of(factors.begin(), factors.end(), [](float f) { return std::isfinite(f) && f >= 1; })) {
    return std::nullopt;
  }
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  const double largest = *most;
  if (largest == 1) return nlohmann::json::object();
  if (*least == *most) return nlohmann::json{{"rope_type", "linear"}, {"factor", largest}};

  const auto frequency = [&](size_t i) {
    return std::pow(theta, -static_cast<double>(i) / static_cast<double>(factors.size()));
  };
  // The factor in the middle tells the number of positions best.
  size_t middle = 0;
  double distance = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (const double d = std::abs(KeptOf(factors[i], largest) - 0.5); d < distance) {
      distance = d;
      middle = i;
    }
  }
  // With none in between, many numbers of positions give the same factors.
  const double kept = KeptOf(factors[middle], largest);
  if (distance >= 0.5) return std::nullopt;
  const double original = std::round(kTurn * (kLow + kept * (kHigh - kLow)) / frequency(middle));
  if (!(original >= 1 && original <= 0x1p30)) return std::nullopt;
  for (size_t i = 0; i < factors.size(); ++i) {
    const double turns = original * frequency(i) / kTurn;
    const double here = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
    if (!IsNear(factors[i], 1 / (here + (1 - here) / largest))) return std::nullopt;
  }
  return nlohmann::json{{"rope_type", "llama3"},
                        {"factor", largest},
                        {"low_freq_factor", kLow},
                        {"high_freq_factor", kHigh},
                        {"original_max_position_embeddings", static_cast<int64_t>(original)}};
}

}  // namespace bowline
