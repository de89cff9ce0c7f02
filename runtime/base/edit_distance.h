#ifndef BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_
#define BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_

#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>

// Finds the name that the user meant. Uses the standard library alone, for the compiler's dialects say it too.
namespace bowline {

// Levenshtein's distance: the least number of inserted, removed or replaced characters that makes `from` into `to`.
// Takes time in proportion to the product of the lengths.
size_t EditDistance(std::string_view from, std::string_view to);

// The first of those `candidates` whose name takes the fewest edits to reach from `name`; their end where there are
// none. `name_of` gives the name of a candidate; by default it is the candidate. Of a name 256 characters count: what
// follows says nothing, and its length is the user's.
template <typename Range, typename NameOf = std::identity>
auto FindNearest(std::string_view name, const Range& candidates, NameOf name_of = {}) {
  name = name.substr(0, 256);
  auto nearest = std::end(candidates);
  size_t least = std::numeric_limits<size_t>::max();
  for (auto candidate = std::begin(candidates); candidate != std::end(candidates); ++candidate) {
    const size_t distance = EditDistance(name, std::invoke(name_of, *candidate));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_
