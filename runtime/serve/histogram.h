#ifndef BOWLINE_RUNTIME_SERVE_HISTOGRAM_H_
#define BOWLINE_RUNTIME_SERVE_HISTOGRAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace bowline::serve {

inline constexpr double kEndsOfSeconds[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                            0.5,   1,     2,     5,    10,   20,   60,  300};
inline constexpr double kEndsOfTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                           1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
inline constexpr double kEndsOfStepTokens[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// Counts values per bucket, and sums them.
struct Histogram {
  // `upper_ends` are the inclusive ends of the buckets, ascending; they outlive this. A last bucket has no end.
  explicit Histogram(absl::Span<const double> upper_ends) : ends(upper_ends), counts(upper_ends.size() + 1) {}

  void Add(double value) {
    ++counts[static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), value) - ends.begin())];
    sum += value;
  }

  absl::Span<const double> ends;
  std::vector<uint64_t> counts;
  double sum = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_HISTOGRAM_H_
