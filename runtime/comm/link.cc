#include "runtime/comm/link.h"

#include <cmath>

namespace bowline {
namespace {

// A year in nanoseconds: far from an overflow.
constexpr double kLongest = 3.2e16;

}  // namespace

std::chrono::nanoseconds LinkTime(const LinkOptions& link, int steps, double bytes) {
  const double transfer = link.bandwidth > 0 ? bytes / link.bandwidth * 1e9 : 0;
  const double total = static_cast<double>(link.latency.count()) * steps + transfer;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(std::fmin(total, kLongest))));
}

std::chrono::nanoseconds TimeOnLink(const LinkOptions& link, const hal::Operation& operation, uint64_t total,
                                    int members) {
  const int others = members - 1;
  const double bytes = static_cast<double>(total) * static_cast<double>(kernels::SizeOf(operation.dtype));
  if (const collectives::Definition* collective = operation.collective()) {
    const double whole = bytes * collective->WholeParts(members);
    return LinkTime(link, collective->Steps(members), collective->BytesSent<double>(whole, members));
  }
  return operation.kind == hal::OperationKind::kBarrier ? LinkTime(link, 2 * others, 0) : LinkTime(link, 1, bytes);
}

}  // namespace bowline
