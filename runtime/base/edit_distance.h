#ifndef BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_
#define BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_

#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>

// Finds the name that the user meant. Uses only the standard library, because the compiler's dialects use it too.
namespace bowline {

// The Levenshtein distance: the least number of inserted, removed or replaced characters that turns `from` into `to`.
// Takes time proportional to the product of the lengths.
size_t EditDistance(std::string_view from, std::string_view to);

// The first candidate whose name takes the fewest edits to reach from `name`; the end of `candidates` if it is empty.
// `name_of` returns a candidate's name; by default the candidate is the name. Only the first 256 characters of `name`
// count, because its length, and so the time, is up to the user.
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
