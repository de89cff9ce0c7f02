//===- ByteCells.h - maps from ranges of bytes ------------------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_BYTECELLS_H
#define BOWLINE_CHECKER_BYTECELLS_H

#include <cstdint>
#include <iterator>
#include <map>

namespace bowline {

/// Splits the cell that has byte `at` inside, so that a cell begins there. Cells are disjoint ranges by first byte.
template <typename Cell> void splitCells(std::map<uint64_t, Cell> &cells, uint64_t at) {
  const auto next = cells.upper_bound(at);
  if (next == cells.begin())
    return;
  const auto cell = std::prev(next);
  if (cell->first == at || cell->second.end <= at)
    return;
  cells.emplace_hint(next, at, cell->second);
  cell->second.end = at;
}

} // namespace bowline

#endif // BOWLINE_CHECKER_BYTECELLS_H
