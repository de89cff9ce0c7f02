//===- StreamOrder.h - commands that ended before another -------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_STREAMORDER_H
#define BOWLINE_CHECKER_STREAMORDER_H

#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// Says how far the issue of commands itself orders them.
enum class IssueMode {
  /// The issue of a command waits for nothing: streams and events alone order commands, as on GPUs.
  Asynchronous,
  /// A command is issued after all earlier ones of the first stream are over, as on CPUs.
  InlineCompute,
};

/// The happens-before order among the commands of one program, in the order of issue. Each stream has a clock: how many
/// commands of each stream are over when its next one begins. A wait is for the last signal issued before it, so that
/// every order goes from an earlier issue to a later one. O(width) per signal and wait, O(1) for any other command.
class StreamOrder {
public:
  StreamOrder(const fbs::Program &program, IssueMode mode) : StreamOrder(program, mode, SizeOf(program.streams()), 0) {}
  /// For one of several programs that communicate: clocks count the commands of the `width` streams of all of them, of
  /// which this program's begin at `first`.
  StreamOrder(const fbs::Program &program, IssueMode mode, size_t width, size_t first);

  /// A command by its stream and its place among the counted commands there, from 1.
  struct Stamp {
    uint32_t place = 0;
    uint16_t stream = 0;
  };

  /// Issues a command that is no signal or wait. `counts` says whether it gets a place.
  Stamp issue(uint16_t stream, bool counts = true);
  void signal(uint16_t stream, uint32_t event);
  /// Makes `stream` wait for the last signal of `event`. Returns false if the event was not signalled before.
  bool wait(uint16_t stream, uint32_t event);
  /// Makes the next command of `stream` wait for those that `clock` counts; it may cover only the first streams.
  void join(uint16_t stream, absl::Span<const uint32_t> clock);

  /// Returns whether `earlier`, which was issued before, is over when the next command of `stream` begins.
  bool precedes(Stamp earlier, uint16_t stream) const {
    return earlier.stream == stream || clock(stream)[first_ + earlier.stream] >= earlier.place;
  }
  /// Returns how many counted commands of each stream are over when the next command of `stream` begins.
  absl::Span<const uint32_t> clock(uint16_t stream) const { return {clocks_.data() + stream * width_, width_}; }

private:
  absl::Span<uint32_t> mutableClock(uint16_t stream) { return {clocks_.data() + stream * width_, width_}; }
  /// Called at the issue of each command on `stream`, before and after it takes effect.
  void begin(uint16_t stream);
  void end(uint16_t stream);

  size_t width_, first_;
  IssueMode mode_;
  std::vector<uint32_t> clocks_;              // one clock of width_ numbers per stream
  std::vector<uint32_t> host_;                // with InlineCompute, the clock of the next issue
  std::vector<std::vector<uint32_t>> events_; // the clock at the last signal of each event; empty if none
};

} // namespace bowline

#endif // BOWLINE_CHECKER_STREAMORDER_H
