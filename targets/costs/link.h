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

// A link between neighbours on a ring of a communicator's members, in each direction. Zeros mean infinitely fast.
struct LinkOptions {
  double bandwidth = 0;  // bytes/s
  std::chrono::nanoseconds latency{0};

  bool emulated() const { return bandwidth > 0 || latency.count() > 0; }
  // The time that a message takes.
  double Seconds(double bytes) const {
    return static_cast<double>(latency.count()) * 1e-9 + (bandwidth > 0 ? bytes / bandwidth : 0);
  }
};

// The one of two links on which a message of a megabyte takes longer.
const LinkOptions& SlowestOf(const LinkOptions& a, const LinkOptions& b);

// The link of each axis of the mesh; that of "" is for all other axes. A communicator along several axes has the
// slowest of theirs.
using LinkTable = std::map<std::string, LinkOptions, std::less<>>;

// "bandwidth=10GB/s,latency=5us": either or both. Bandwidth in B/s, KB/s, MB/s, GB/s or TB/s (powers of 1000), latency
// in ns, us, ms or s. Returns kInvalidArgument naming the allowed forms.
absl::StatusOr<LinkOptions> ParseLink(absl::string_view text);

// "[AXIS:]LINK" each, one at most for an axis and one for all others. Returns kInvalidArgument with the text and
// what is wrong, naming `axes`, those of the mesh, where an axis is none of them.
absl::StatusOr<LinkTable> ParseLinks(absl::Span<const std::string> texts, absl::Span<const std::string> axes);

}  // namespace bowline::targets

#endif  // BOWLINE_TARGETS_COSTS_LINK_H_
