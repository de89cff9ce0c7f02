//===- DeadlockCheck.h - an order that suits all ranks ----------*- C++ -*-===//
//
// Private to checker.
//
// A communication ends when all its members have reached it: nothing is buffered. The commands of its members form
// one node of a graph. Every order within a rank goes from an earlier issue to a later one. This holds for
// streams, events (a wait is for a signal issued before), a CPU's first stream (issue waits for its commands),
// full queues (issue waits for earlier commands), and devices that start communications as they are issued. Assume
// that one order of all nodes agrees with the order in which each rank issues its own. Then ranks that follow it
// never wait in a circle, on any machine. The proof finds this order; the numbers of the nodes in it are the
// certificate.
//
// Rank symmetry: one rank of each role suffices. Map each operation of a group of ranks to the operation of roles of
// which it is an instance. Ranks of one role issue the same commands, so the order of issue of a rank maps to that of
// its role, and a cycle of ranks maps to a closed walk of roles, which contains a cycle. Conversely, ranks that differ
// only in the coordinate along the role axis include one rank of each role, and each communicator that spans roles has
// a group with all of them. So a cycle of roles is also a cycle of these ranks.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_DEADLOCKCHECK_H
#define BOWLINE_CHECKER_DEADLOCKCHECK_H

#include "checker/Communications.h"

#include <optional>

namespace bowline {

/// The orders that a rank keeps between its commands, from the fewest to all. A plan that hangs with fewer orders also
/// hangs with more.
enum class Machine {
  /// Only streams and events order commands.
  AnyMachine,
  /// The issue of a command also waits for earlier commands of the first stream.
  InlineCompute,
  /// Communications also start in the order of issue.
  IssueOrder,
};

/// A cycle of waits. In each step a role must end `before` before it begins `after`. The `after` of a step and the
/// `before` of the next step are the same operation in two roles.
struct WaitCycle {
  struct Step {
    Participation before, after;
  };
  Machine machine = Machine::AnyMachine;
  std::vector<Step> steps;
};

class DeadlockCheck {
public:
  /// `communications` must have passed Communications::match and outlive the check.
  explicit DeadlockCheck(const Communications &communications) : communications_(communications) {}

  /// Returns kAborted with a short cycle, on the machine with the fewest orders on which one exists.
  absl::Status check();

  /// The number of each operation, after a successful check. Numbers increase along every order of issue.
  const std::vector<uint32_t> &numbers() const { return numbers_; }
  /// The cycle, after a failed check.
  const WaitCycle &cycle() const { return cycle_; }

private:
  /// The element [role][part] lists the parts of the role that may begin only after `part` has ended.
  using Successors = std::vector<std::vector<std::vector<uint32_t>>>;

  Successors successorsOn(Machine machine) const;
  /// The number of each operation in one order for all roles; absent for operations on a cycle or behind one.
  std::vector<std::optional<uint32_t>> sort(const Successors &successors) const;
  /// Finds a cycle with few steps among the operations that have no number.
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
