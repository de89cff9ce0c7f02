//===- ByteOwners.h - who wrote each byte of a rank last --------*- C++ -*-===//

#ifndef BOWLINE_COMPILER_CHECK_BYTEOWNERS_H
#define BOWLINE_COMPILER_CHECK_BYTEOWNERS_H

#include "compiler/Check/Timeline.h"

#include <map>
#include <optional>

namespace bowline {

/// Bytes that hold a value of (buffer, slot), with the command that wrote it.
struct Owner {
  uint32_t buffer = 0;
  uint32_t slot = 0;
  /// Absent: the value was there before the entry began (a constant, an input, state).
  std::optional<CommandSite> writer;
};

/// Partial map from bytes to owners. An operation costs O(log n + number of ranges it meets).
class ByteOwners {
public:
  /// `range` now belongs to `owner`, whoever had it.
  void assign(ByteRange range, const Owner &owner);

  /// `range` now holds nothing of meaning.
  void erase(ByteRange range);

  /// The first part of `range` that does not hold values of (buffer, slot): its bytes, and who owns them, if anybody.
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
  /// Makes `at` a boundary between cells.
  void split(uint64_t at);

  std::map<uint64_t, Cell> cells_; // by first byte; disjoint
};

} // namespace bowline

#endif // BOWLINE_COMPILER_CHECK_BYTEOWNERS_H
