#include "targets/costs/link.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace bowline::targets {
namespace {

using Unit = std::pair<absl::string_view, double>;
// Longer units first where one ends with another.
constexpr Unit kBandwidths[] = {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"KB/s", 1e3}, {"B/s", 1}};
constexpr Unit kLatencies[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
// A year in nanoseconds: far from an overflow.
constexpr double kLongest = 3.2e16;

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("link '", text, "': ", why,
                   "; write bandwidth=NUMBER with B/s, KB/s, MB/s, GB/s or TB/s, and latency=NUMBER with ns, us, ms or "
                   "s, such as bandwidth=10GB/s,latency=5us"));
}

// NaN unless `value` is a number with one of the units.
double ParseQuantity(absl::string_view value, absl::Span<const Unit> units) {
  for (const auto& [unit, factor] : units) {
    if (value.size() <= unit.size() || value.substr(value.size() - unit.size()) != unit) continue;
    double number = 0;
    if (absl::SimpleAtod(value.substr(0, value.size() - unit.size()), &number)) return number * factor;
  }
  return std::nan("");
}

}  // namespace

absl::StatusOr<LinkOptions> ParseLink(absl::string_view text) {
  LinkOptions link;
  bool has_bandwidth = false, has_latency = false;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    const std::pair<absl::string_view, absl::string_view> entry = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (entry.first == "bandwidth") {
      if (std::exchange(has_bandwidth, true)) return Refuse(text, "bandwidth is there twice");
      link.bandwidth = ParseQuantity(entry.second, kBandwidths);
      if (!(link.bandwidth > 0) || !std::isfinite(link.bandwidth)) {
        return Refuse(text, absl::StrCat("'", entry.second, "' is not a bandwidth above zero"));
      }
    } else if (entry.first == "latency") {
      if (std::exchange(has_latency, true)) return Refuse(text, "latency is there twice");
      const double latency = ParseQuantity(entry.second, kLatencies);
      if (!(latency >= 0 && latency < kLongest)) {
        return Refuse(text, absl::StrCat("'", entry.second, "' is not a latency"));
      }
      link.latency = std::chrono::nanoseconds(std::llround(latency));
    } else {
      return Refuse(text, absl::StrCat("there is no '", entry.first, "'"));
    }
  }
  return link;
}

const LinkOptions& SlowestOf(const LinkOptions& a, const LinkOptions& b) {
  constexpr double kBytes = 1e6;
  return a.Seconds(kBytes) < b.Seconds(kBytes) ? b : a;
}

absl::StatusOr<LinkTable> ParseLinks(absl::Span<const std::string> texts, absl::Span<const std::string> axes) {
  LinkTable links;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    const std::string axis = parts.size() == 2 ? parts.front() : "";
    const absl::StatusOr<LinkOptions> link = ParseLink(parts.back());
    if (!link.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--link ", text, ": ", link.status().message()));
    }
    bool known = parts.size() == 1;
    for (const std::string& other : axes) known |= axis == other;
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("--link ", text, ": the mesh has no axis '", axis, "'; ",
                       axes.empty() ? "it has one rank" : absl::StrCat("its axes are ", absl::StrJoin(axes, ", "))));
    }
    if (!links.emplace(axis, *link).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--link ", text, ": the link ", axis.empty() ? "along all axes" : absl::StrCat("along '", axis, "'"),
          " is given twice; leave out one of them"));
    }
  }
  return links;
}

}  // namespace bowline::targets
