#ifndef BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_
#define BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace bowline {

// Levenshtein's distance: the least number of inserted, removed or replaced characters that makes `from` into `to`.
// Finds the name that somebody meant. Takes time in proportion to the product of the lengths.
size_t EditDistance(absl::string_view from, absl::string_view to);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_EDIT_DISTANCE_H_
