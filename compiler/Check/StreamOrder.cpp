//===- StreamOrder.cpp - what is over when a command begins ---------------===//

#include "compiler/Check/StreamOrder.h"

#include "runtime/plan/plan_view.h"

#include <algorithm>

namespace bowline {

static void join(absl::Span<uint32_t> into, absl::Span<const uint32_t> from) {
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

StreamOrder::StreamOrder(const fbs::Program &program, IssueMode mode)
    : streams_(SizeOf(program.streams())), mode_(mode), clocks_(streams_ * streams_), host_(streams_),
      events_(program.events()) {}

void StreamOrder::begin(uint16_t stream) {
  if (mode_ == IssueMode::InlineCompute)
    join(mutableClock(stream), host_);
}

void StreamOrder::end(uint16_t stream) {
  if (mode_ == IssueMode::InlineCompute && stream == 0)
    join(absl::MakeSpan(host_), clock(0));
}

StreamOrder::Stamp StreamOrder::issue(uint16_t stream, bool counts) {
  begin(stream);
  uint32_t &own = mutableClock(stream)[stream];
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
  join(mutableClock(stream), events_[event]);
  end(stream);
  return true;
}

} // namespace bowline
