#include "runtime/comm/link.h"

#include <cmath>

namespace bowline {
namespace {

// A year in nanoseconds: far from what overflows.
constexpr double kLongest = 3.2e16;

}  // namespace

std::chrono::nanoseconds LinkTime(const LinkOptions& link, int steps, double bytes) {
  const double transfer = link.bandwidth > 0 ? bytes / link.bandwidth * 1e9 : 0;
  const double total = static_cast<double>(link.latency.count()) * steps + transfer;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(std::fmin(total, kLongest))));
}

}  // namespace bowline
