//===- DeadlockCheck.h - an order that suits all ranks ----------*- C++ -*-===//
//
// Private to checker.
//
// A communication ends when all its members have come to it: nothing is buffered. The commands of its members are one
// node of a graph. Within a rank every order goes from an earlier issue to a later one: that of a stream, that of an
// event (a wait is for a signal issued before), that of a CPU's first stream (issue waits for it), that of a queue that
// is full (issue waits for earlier commands), and that of a device which starts communications as they are
// issued. So if one order of all nodes suits the order in which each rank issues its own, then ranks that follow it
// never wait in a circle, whatever the machine. This is the proof; the numbers of the nodes in that order are the
// certificate.
//
// Rank symmetry: it is enough to look at one rank of each role. Map each operation of each group of ranks to the
// operation of roles that it is an instance of. Ranks of one role issue the same commands, so earlier and later
// issues of a rank map to earlier and later issues of its role: a cycle of ranks maps to a closed walk of roles,
// which has a cycle. Conversely the ranks that share all coordinates but the one along the role axis are one of each
// role, and every communicator that spans roles has a group with all of them: a cycle of roles is a cycle of theirs.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_DEADLOCKCHECK_H
#define BOWLINE_CHECKER_DEADLOCKCHECK_H

#include "checker/Communications.h"

#include <optional>

namespace bowline {

/// Says which orders between its commands a rank keeps, from the fewest to all. A plan that hangs with
/// fewer orders also hangs with more.
enum class Machine {
  /// Only streams and events order commands.
  AnyMachine,
  /// The issue of a command also waits for earlier commands of the first stream.
  InlineCompute,
  /// Communications also start in the order of issue.
  IssueOrder,
};

/// A cycle of waits: in the role of each step, `before` must be over before `after` begins. The next step's `before` is
/// the operation of this step's `after`, in another role.
struct WaitCycle {
  struct Step {
    Participation before, after;
  };
  Machine machine = Machine::AnyMachine;
  std::vector<Step> steps;
};

class DeadlockCheck {
public:
  /// `communications` must have been matched.
  explicit DeadlockCheck(const Communications &communications) : communications_(communications) {}

  /// Returns kAborted with a cycle of few ranks, on the machine with the fewest orders that has one.
  absl::Status check();

  /// The number of each operation after a check that succeeded. Numbers increase along every order.
  const std::vector<uint32_t> &numbers() const { return numbers_; }
  /// The cycle that was found by a check that failed.
  const WaitCycle &cycle() const { return cycle_; }

private:
  /// The element [role][part] holds the parts of the role that may begin only after this one.
  using Successors = std::vector<std::vector<std::vector<uint32_t>>>;

  Successors successorsOn(Machine machine) const;
  /// The number of each operation in one order that suits all roles; absent for operations on a cycle or behind one.
  std::vector<std::optional<uint32_t>> sort(const Successors &successors) const;
  /// A cycle with few steps among operations without a number.
  std::vector<WaitCycle::Step> findCycle(const Successors &successors,
                                         const std::vector<std::optional<uint32_t>> &numbers) const;
  std::vector<WaitCycle::Step> findCycleThrough(uint32_t operation, const Successors &successors,
                                                const std::vector<std::optional<uint32_t>> &numbers, size_t mostSteps,
                                                uint64_t *work) const;
  std::string describe(const WaitCycle &cycle) const;

  const Communications &communications_;
  std::vector<uint32_t> numbers_;
  WaitCycle cycle_;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_DEADLOCKCHECK_H
