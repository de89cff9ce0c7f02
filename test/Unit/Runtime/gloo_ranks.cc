// Each rank with a group of its own, connected by TCP over the loopback interface.

#include <cstdlib>

#include "runtime/comm/gloo/gloo_group.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline::testing {

Ranks CreateRanks(int ranks, std::chrono::nanoseconds timeout) {
  static int worlds = 0;
  GlooOptions options;
  options.ranks = ranks;
  options.rendezvous.file = absl::StrCat(::testing::TempDir(), "/gloo-test-", ::getpid(), "-", worlds++);
  options.timeout = timeout;
  options.rendezvous_timeout = std::chrono::seconds(60);
  options.address = "127.0.0.1";
  Ranks result;
  result.groups.resize(static_cast<size_t>(ranks));
  OnEachRank(ranks, [&](int rank) {
    GlooOptions own = options;
    own.rank = rank;
    absl::StatusOr<std::unique_ptr<GlooGroup>> group = GlooGroup::Create(own);
    if (!group.ok()) {
      ADD_FAILURE() << group.status();
      std::abort();
    }
    result.groups[static_cast<size_t>(rank)] = std::move(*group);
  });
  return result;
}

std::vector<int> SizesToTest() { return {1, 2, 3, 7}; }

}  // namespace bowline::testing
