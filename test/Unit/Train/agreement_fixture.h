#ifndef BOWLINE_TEST_UNIT_TRAIN_AGREEMENT_FIXTURE_H_
#define BOWLINE_TEST_UNIT_TRAIN_AGREEMENT_FIXTURE_H_

#include <chrono>
#include <vector>

#include "runtime/comm/agreement.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline::testing {

// Calls body(agreement, group) as every rank, and returns the results.
template <typename Body>
std::vector<absl::Status> AsRanks(int ranks, Body body, std::chrono::nanoseconds timeout = kLong) {
  World world(ranks, timeout);
  return world.Run([&](int rank) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank), timeout));
    return body(agreement, world.group(rank));
  });
}

template <typename Body>
void AsRanksOk(int ranks, Body body) {
  for (const absl::Status& status : AsRanks(ranks, body)) EXPECT_TRUE(status.ok()) << status;
}

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_TRAIN_AGREEMENT_FIXTURE_H_
