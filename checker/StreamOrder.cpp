//===- StreamOrder.cpp - commands that ended before another ---------------===//

#include "checker/StreamOrder.h"

#include <algorithm>

namespace bowline {

static void joinInto(absl::Span<uint32_t> into, absl::Span<const uint32_t> from) {
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

StreamOrder::StreamOrder(const fbs::Program &program, IssueMode mode, size_t width, size_t first)
    : width_(width), first_(first), mode_(mode), clocks_(SizeOf(program.streams()) * width), host_(width),
      events_(program.events()) {}

void StreamOrder::begin(uint16_t stream) {
  if (mode_ == IssueMode::InlineCompute)
    joinInto(mutableClock(stream), host_);
}

void StreamOrder::end(uint16_t stream) {
  if (mode_ == IssueMode::InlineCompute && stream == 0)
    joinInto(absl::MakeSpan(host_), clock(0));
}

StreamOrder::Stamp StreamOrder::issue(uint16_t stream, bool counts) {
  begin(stream);
  uint32_t &own = mutableClock(stream)[first_ + stream];
  own += counts;
  end(stream);
  return {own, stream};
}

void StreamOrder::signal(uint16_t stream, uint32_t event) {
  begin(stream);
  events_[event].assign(clock(stream).begin(), clock(stream).end());
  end(stream);
}

bool StreamOrder::wait(uint16_t stream, uint32_t event) {
  begin(stream);
  if (events_[event].empty())
    return false;
  joinInto(mutableClock(stream), events_[event]);
  end(stream);
  return true;
}

void StreamOrder::join(uint16_t stream, absl::Span<const uint32_t> clock) { joinInto(mutableClock(stream), clock); }

} // namespace bowline
