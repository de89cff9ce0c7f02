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

/// Says whether the order of issue itself makes commands wait.
enum class IssueMode {
  /// Issue never waits: only streams and events order commands, as on GPUs.
  Asynchronous,
  /// A command is issued only when all earlier commands of the first stream have ended, as on CPUs.
  InlineCompute,
};

/// The happens-before order of one program's commands, issued one after the other. The clock of a stream says how many
/// commands of each stream have ended when its next command begins. A wait is for the event's last signal issued
/// before, so that every order goes from earlier to later issue. O(width) per signal and wait, O(1) per other command.
class StreamOrder {
public:
  StreamOrder(const fbs::Program &program, IssueMode mode) : StreamOrder(program, mode, SizeOf(program.streams()), 0) {}
  /// For one of several programs that communicate: clocks have `width` numbers, one for each stream of all these
  /// programs; those of this program begin at `first`.
  StreamOrder(const fbs::Program &program, IssueMode mode, size_t width, size_t first);

  /// Identifies a command by its stream and by its place, from 1, among the counted commands of that stream.
  struct Stamp {
    uint32_t place = 0;
    uint16_t stream = 0;
  };

  /// Issues a command other than a signal or wait. Only if `counts` does the command get a place of its own.
  Stamp issue(uint16_t stream, bool counts = true);
  void signal(uint16_t stream, uint32_t event);
  /// Makes `stream` wait for the last signal of `event`. Returns false if the event was not signalled before.
  bool wait(uint16_t stream, uint32_t event);
  /// Makes the next command of `stream` wait for the commands that `clock` counts. `clock` may omit the last streams.
  void join(uint16_t stream, absl::Span<const uint32_t> clock);

  /// Returns whether `earlier`, which was issued before, has ended when the next command of `stream` begins.
  bool precedes(Stamp earlier, uint16_t stream) const {
    return earlier.stream == stream || clock(stream)[first_ + earlier.stream] >= earlier.place;
  }
  /// Returns, for each stream, how many of its counted commands have ended when the next command of `stream` begins.
  absl::Span<const uint32_t> clock(uint16_t stream) const { return {clocks_.data() + stream * width_, width_}; }

private:
  absl::Span<uint32_t> mutableClock(uint16_t stream) { return {clocks_.data() + stream * width_, width_}; }
  /// begin() is called before each command on `stream` takes effect, and end() after it.
  void begin(uint16_t stream);
  void end(uint16_t stream);

  size_t width_, first_;
  IssueMode mode_;
  std::vector<uint32_t> clocks_;              // one clock of width_ numbers per stream
  std::vector<uint32_t> host_;                // with InlineCompute: the clock at the next issue
  std::vector<std::vector<uint32_t>> events_; // by event: the clock at its last signal; empty if none
};

} // namespace bowline

#endif // BOWLINE_CHECKER_STREAMORDER_H
