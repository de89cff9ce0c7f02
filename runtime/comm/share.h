#ifndef BOWLINE_RUNTIME_COMM_SHARE_H_
#define BOWLINE_RUNTIME_COMM_SHARE_H_

#include <algorithm>
#include <cstddef>

namespace bowline {

// Elements [begin, end).
struct Share {
  size_t begin, end;
};

// What of `total` elements member `rank` of `ranks` reduces. Whole cache lines of every type, so that two members do
// not write to one line of an aligned buffer; the last members may have nothing.
inline Share ShareOf(size_t total, size_t ranks, size_t rank) {
  constexpr size_t kUnit = 64;
  const size_t share = (total / ranks + kUnit) / kUnit * kUnit;
  const size_t begin = std::min(total, rank * share);
  return {begin, std::min(total, begin + share)};
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_SHARE_H_
