//===- ByteOwners.cpp - last writer of each byte of a rank ----------------===//

#include "checker/ByteOwners.h"

#include "checker/ByteCells.h"
#include <algorithm>

namespace bowline {

void ByteOwners::erase(ByteRange range) {
  if (range.bytes() == 0)
    return;
  splitCells(cells_, range.begin);
  splitCells(cells_, range.end);
  cells_.erase(cells_.lower_bound(range.begin), cells_.lower_bound(range.end));
}

void ByteOwners::assign(ByteRange range, const Owner &owner) {
  if (range.bytes() == 0)
    return;
  // Usually the range is a cell already.
  auto cell = cells_.find(range.begin);
  if (cell != cells_.end() && cell->second.end == range.end) {
    cell->second.owner = owner;
    return;
  }
  erase(range);
  cells_.emplace(range.begin, Cell{range.end, owner});
}

void ByteOwners::eraseOthers(ByteRange range, uint32_t buffer, uint32_t slot) {
  if (range.bytes() == 0)
    return;
  splitCells(cells_, range.begin);
  splitCells(cells_, range.end);
  for (auto cell = cells_.lower_bound(range.begin); cell != cells_.end() && cell->first < range.end;) {
    const Owner &owner = cell->second.owner;
    cell = owner.buffer == buffer && owner.slot == slot ? std::next(cell) : cells_.erase(cell);
  }
}

std::optional<ByteOwners::Mismatch> ByteOwners::findMismatch(ByteRange range, uint32_t buffer, uint32_t slot) const {
  uint64_t at = range.begin;
  auto cell = cells_.upper_bound(at);
  if (cell != cells_.begin() && std::prev(cell)->second.end > at)
    --cell;
  for (; at < range.end; ++cell) {
    if (cell == cells_.end() || cell->first > at)
      return Mismatch{{at, cell == cells_.end() ? range.end : std::min(range.end, cell->first)}, std::nullopt};
    if (cell->second.owner.buffer != buffer || cell->second.owner.slot != slot)
      return Mismatch{{at, std::min(range.end, cell->second.end)}, cell->second.owner};
    at = cell->second.end;
  }
  return std::nullopt;
}

} // namespace bowline
