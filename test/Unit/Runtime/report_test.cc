// Reports of members on a library that moves their data; of whichever communicators the binary links.

#include <chrono>
#include <string>
#include <thread>

#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline {
namespace {

using hal::Operation;
using hal::OperationKind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::World;

Operation Sum(uint32_t number) {
  Operation sum = Operation::Reduction(OperationKind::kAllReduce, kernels::DType::kF32, hal::ReduceOp::kSum);
  sum.number = number;
  return sum;
}

// Reports as report(rank) does, again and again, until the run broke.
std::vector<absl::Status> ReportUntilBroken(World& world, const std::function<absl::Status(int)>& report) {
  return world.Run([&](int rank) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      BOWLINE_RETURN_IF_ERROR(report(rank));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return absl::OkStatus();
  });
}

TEST(Report, FindsWhoIsLate) {
  World world(3, std::chrono::seconds(2));
  // Rank 1 has ended four operations and begins nothing; the others are in the fifth one.
  const auto results = ReportUntilBroken(world, [&](int rank) {
    hal::Exchange& exchange = world.all(rank).exchange();
    return rank == 1 ? exchange.Report({}, 0, 4) : exchange.Report(Sum(4), 12, 5);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(" waited 2 s "), HasSubstr("in all_reduce(sum) of 12 f32 (operation 4 of communicator 'all')"),
              HasSubstr("for rank 1"), HasSubstr("rank 1 is in no operation")));
  }
}

// However long ago the first one began, each operation has its own time.
TEST(Report, CountsTheTimeOfEachOperation) {
  World world(2, std::chrono::seconds(2));
  world.RunOk([&](int rank) -> absl::Status {
    hal::Exchange& exchange = world.all(rank).exchange();
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t number = 0; std::chrono::steady_clock::now() - begin < std::chrono::seconds(3); ++number) {
      for (int look = 0; look < 10; ++look) {
        BOWLINE_RETURN_IF_ERROR(exchange.Report(Sum(number), 12, number + 1));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return exchange.Report({}, 0, 0);
  });
}

TEST(Report, AComplaintSaysWhoWasInWhat) {
  World world(2);
  const auto results = ReportUntilBroken(world, [&](int rank) -> absl::Status {
    hal::Exchange& exchange = world.all(rank).exchange();
    BOWLINE_RETURN_IF_ERROR(exchange.Report(Sum(7), 5, 8));
    if (rank == 0) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return exchange.Complain("the cable was pulled");
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("in all_reduce(sum) of 5 f32 (operation 7 of communicator 'all'): the cable was pulled"),
              HasSubstr("rank 1"), HasSubstr("rank 0 is in all_reduce(sum) of 5 f32 (operation 7")));
  }
}

TEST(Report, OfOneRank) {
  World world(1);
  hal::Exchange& exchange = world.all(0).exchange();
  EXPECT_FALSE(exchange.emulates_link());
  EXPECT_EQ(exchange.Report(Sum(0), 5, 1), absl::OkStatus());
  const absl::Status status = exchange.Complain("the cable was pulled");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the cable was pulled"));
  EXPECT_EQ(exchange.Report({}, 0, 1), status);
}

}  // namespace
}  // namespace bowline
