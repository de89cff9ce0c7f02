#include "runtime/base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace bowline {

size_t EditDistance(std::string_view from, std::string_view to) {
  // row[j] is the distance between the first j characters of `to` and the characters of `from` that were walked so far.
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace bowline
