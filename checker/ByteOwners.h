//===- ByteOwners.h - last writer of each byte of a rank --------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_BYTEOWNERS_H
#define BOWLINE_CHECKER_BYTEOWNERS_H

#include "checker/Timeline.h"

#include <map>
#include <optional>

namespace bowline {

/// The (buffer, slot) whose value a range of bytes holds, and the command that wrote the value.
struct Owner {
  uint32_t buffer = 0;
  uint32_t slot = 0;
  /// Absent for a value from before the entry: of a constant, an input, or a state.
  std::optional<CommandSite> writer;
};

/// A partial map from bytes to owners. Each operation takes O(log n + number of ranges that it meets).
class ByteOwners {
public:
  /// Makes `owner` the owner of `range`, in place of any earlier owner.
  void assign(ByteRange range, const Owner &owner);

  /// Removes the owners of `range`: its bytes hold no value any more.
  void erase(ByteRange range);

  /// Removes from `range` all owners other than (buffer, slot).
  void eraseOthers(ByteRange range, uint32_t buffer, uint32_t slot);

  /// The first bytes of `range` that hold no value of (buffer, slot), and their present owner, if any.
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
