//===- ByteOwners.h - last writer of each byte of a rank --------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_BYTEOWNERS_H
#define BOWLINE_CHECKER_BYTEOWNERS_H

#include "checker/Timeline.h"

#include <map>
#include <optional>

namespace bowline {

/// The (buffer, slot) whose value some bytes hold, and the command that wrote it.
struct Owner {
  uint32_t buffer = 0;
  uint32_t slot = 0;
  /// Absent where the value was there before the entry began: a constant, an input, state.
  std::optional<CommandSite> writer;
};

/// A partial map from bytes to owners. An operation costs O(log n + number of ranges it meets).
class ByteOwners {
public:
  /// Makes `owner` the owner of `range`, in place of any earlier owner.
  void assign(ByteRange range, const Owner &owner);

  /// Removes the owners of `range`: its bytes hold no value any more.
  void erase(ByteRange range);

  /// Removes the owners of `range` that are others than (buffer, slot).
  void eraseOthers(ByteRange range, uint32_t buffer, uint32_t slot);

  /// The first bytes of `range` that do not hold values of (buffer, slot), and their owner, if they have one.
  struct Mismatch {
    ByteRange range;
    std::optional<Owner> owner;
  };
  std::optional<Mismatch> findMismatch(ByteRange range, uint32_t buffer, uint32_t slot) const;

private:
  struct Cell {
    uint64_t end;
    Owner owner;
  };

  std::map<uint64_t, Cell> cells_; // key: first byte of the cell; cells are disjoint
};

} // namespace bowline

#endif // BOWLINE_CHECKER_BYTEOWNERS_H
