#include "runtime/comm/loopback/loopback_group.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline::testing {

Ranks CreateRanks(int ranks, std::chrono::nanoseconds timeout) {
  std::shared_ptr<LoopbackGroup> group = *LoopbackGroup::Create(ranks, {.timeout = timeout});
  Ranks result;
  for (int rank = 0; rank < ranks; ++rank) result.groups.push_back(group->AsRank(rank));
  result.owner = std::move(group);
  return result;
}

std::vector<int> SizesToTest() { return {1, 2, 3, 4, 5, 6, 7, 8}; }

}  // namespace bowline::testing
