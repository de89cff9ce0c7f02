//===- OrderThroughRanks.h - order by other ranks ---------------*- C++ -*-===//
//
// Private to checker.
//
// A communication ends when all its members have begun it. Let a rank end some commands before it begins a
// communication. These commands have ended when the other members end it, and also when those later begin another one
// with that rank. So other ranks order a rank's own commands, too: a stage that has received the gradient of a
// microbatch need not wait for commands from before it sent the activations.
//
// Rank symmetry: ranks that differ only in the coordinate along the role axis include one rank of each role, and every
// communicator that spans roles has a group with all of them. Orders are computed for the first rank of each role and
// hold for all others as well.
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
  /// Computes the order that matched communications add; `numbers` are those of DeadlockCheck. Returns nothing where
  /// that would take too much time or memory: callers then know only the order within each rank.
  static std::optional<OrderThroughRanks> find(const Timeline &timeline, const Communications &communications,
                                               absl::Span<const uint32_t> numbers);

  /// Has an element for each part of the role (Communications::of), in order: how many commands of each of the role's
  /// streams have ended when that communication ends. Empty where its members do not all wait for each other.
  const std::vector<std::vector<uint32_t>> &of(uint32_t role) const { return over_[role]; }

private:
  std::vector<std::vector<std::vector<uint32_t>>> over_; // index: role
};

} // namespace bowline

#endif // BOWLINE_CHECKER_ORDERTHROUGHRANKS_H
