//===- OrderThroughRanks.h - order by other ranks ---------------*- C++ -*-===//
//
// Private to checker.
//
// A communication ends when all its members have begun it. So commands that a rank ended before it began one are
// over when the others end it, and when they, later, begin the next one with that rank: other ranks order its own
// commands, too. A stage that has the gradient of a microbatch need not wait for commands from before it sent the
// activations.
//
// Rank symmetry: the ranks that share all coordinates but the one along the role axis are one of each role, and every
// communicator that spans roles has a group with all of them. Orders among these ranks hold for the first of each role,
// and as well for any other.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_ORDERTHROUGHRANKS_H
#define BOWLINE_CHECKER_ORDERTHROUGHRANKS_H

#include "checker/Communications.h"

#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace bowline {

class OrderThroughRanks {
public:
  /// Finds the order that matched communications give; `numbers` are those of DeadlockCheck. Returns nothing where that
  /// would take too much time or memory: then only a rank's own order is known.
  static std::optional<OrderThroughRanks> find(const Timeline &timeline, const Communications &communications,
                                               absl::Span<const uint32_t> numbers);

  /// For each command of the role that communicates between roles, in order: how many commands of each of the role's
  /// streams are over when the communication is; empty where its members do not all wait for each other.
  const std::vector<std::vector<uint32_t>> &of(uint32_t role) const { return over_[role]; }

private:
  std::vector<std::vector<std::vector<uint32_t>>> over_; // index: role
};

} // namespace bowline

#endif // BOWLINE_CHECKER_ORDERTHROUGHRANKS_H
