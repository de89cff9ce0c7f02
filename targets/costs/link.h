#ifndef BOWLINE_TARGETS_COSTS_LINK_H_
#define BOWLINE_TARGETS_COSTS_LINK_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline::targets {

// A link between neighbours in a communicator's ring, with this speed in each direction. Zero: infinitely fast.
struct LinkOptions {
  double bandwidth = 0;  // bytes per second
  std::chrono::nanoseconds latency{0};

  bool emulated() const { return bandwidth > 0 || latency.count() > 0; }
  // Returns the seconds that a message of so many bytes takes.
  double Seconds(double bytes) const {
    return static_cast<double>(latency.count()) * 1e-9 + (bandwidth > 0 ? bytes / bandwidth : 0);
  }
};

// Returns the link on which a message of one megabyte (10^6 bytes) takes longer.
const LinkOptions& SlowestOf(const LinkOptions& a, const LinkOptions& b);

// The link of each mesh axis, by its name. The key "" has the link of all axes without a key of their own. A
// communicator along several axes uses the slowest of their links.
using LinkTable = std::map<std::string, LinkOptions, std::less<>>;

// Parses "bandwidth=10GB/s,latency=5us", or either of the two alone. Units are B/s, KB/s, MB/s, GB/s or TB/s (powers of
// 1000), and ns, us, ms or s. Returns kInvalidArgument, naming the allowed forms, for other texts.
absl::StatusOr<LinkOptions> ParseLink(absl::string_view text);

// Parses texts of the form "[AXIS:]LINK". Each axis may have one link; a text without AXIS is for all other axes.
// Returns kInvalidArgument for an invalid or repeated link, or an axis that is none of `axes`, those of the mesh.
absl::StatusOr<LinkTable> ParseLinks(absl::Span<const std::string> texts, absl::Span<const std::string> axes);

}  // namespace bowline::targets

#endif  // BOWLINE_TARGETS_COSTS_LINK_H_
