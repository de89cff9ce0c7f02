#ifndef BOWLINE_RUNTIME_COMM_SHARE_H_
#define BOWLINE_RUNTIME_COMM_SHARE_H_

#include <algorithm>
#include <cstddef>

namespace bowline {

// Elements [begin, end).
struct Share {
  size_t begin, end;
};

// The range of `total` elements that member `rank` of `ranks` reduces. Shares are whole cache lines of every type, so
// that no two members write to one line of an aligned buffer; the last members may have empty shares.
inline Share ShareOf(size_t total, size_t ranks, size_t rank) {
  constexpr size_t kUnit = 64;
  const size_t share = (total / ranks + kUnit) / kUnit * kUnit;
  const size_t begin = std::min(total, rank * share);
  return {begin, std::min(total, begin + share)};
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_SHARE_H_
