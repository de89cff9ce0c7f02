// Ranks that do not issue the same operations: an error on every rank, never a hang.

#include <atomic>
#include <chrono>

#include "runtime/comm/loopback/loopback_group.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline {
namespace {

using hal::ReduceOp;
using kernels::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::World;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

// Longer than a test may take, so that only a mismatch can end an operation.
constexpr std::chrono::nanoseconds kPatient = std::chrono::minutes(10);

void ExpectOnAll(World& world, const std::function<absl::Status(int)>& body, absl::StatusCode code,
                 const ::testing::Matcher<std::string>& text) {
  for (const absl::Status& status : world.Run(body)) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(TextOf(status), text);
  }
}

float buffer_of_rank[8][64];

hal::HostPiece PieceOf(int rank, size_t count) { return {buffer_of_rank[rank], buffer_of_rank[rank] + 32, count}; }

TEST(LoopbackMismatch, OfKinds) {
  for (hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    World world(3, kPatient, {}, mode);
    world.RunOk([&](int rank) { return world.all(rank).Barrier(world.stream(rank)); });
    ExpectOnAll(
        world,
        [&](int rank) {
          if (rank == 2) return world.all(rank).AllGather(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32);
          return world.all(rank).AllReduce(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32, ReduceOp::kSum);
        },
        absl::StatusCode::kInvalidArgument,
        HasSubstr("rank 0 calls all_reduce(sum) of 8 f32 (operation 1 of communicator 'all'), but rank 2 calls "
                  "all_gather of 8 f32 (operation 1 of communicator 'all')"));
    // Broken for good, and at once.
    ExpectOnAll(
        world, [&](int rank) { return world.all(rank).Barrier(world.stream(rank)); },
        absl::StatusCode::kInvalidArgument, HasSubstr("but rank 2 calls"));
  }
}

TEST(LoopbackMismatch, OfCountsTypesReductionsAndPieces) {
  using Call = std::function<absl::Status(testing::PointerCommunicator&, hal::Stream&, int)>;
  const auto all_reduce = [](DType dtype, ReduceOp op, std::vector<size_t> counts) -> Call {
    return [=](testing::PointerCommunicator& all, hal::Stream& stream, int rank) {
      std::vector<hal::HostPiece> pieces;
      for (size_t count : counts) pieces.push_back(PieceOf(rank, count));
      return all.AllReduce(stream, pieces, dtype, op);
    };
  };
  const Call usual = all_reduce(DType::kF32, ReduceOp::kSum, {4});
  const Call halves = all_reduce(DType::kF32, ReduceOp::kSum, {2, 2});
  const auto permute = [](uint16_t shift, DType dtype, size_t count) -> Call {
    return [=](testing::PointerCommunicator& all, hal::Stream& stream, int rank) {
      return all.Permute(stream, {PieceOf(rank, count)}, dtype, shift);
    };
  };
  const Call next = permute(1, DType::kF32, 4);
  struct {
    Call one, other;
    const char* text;
  } cases[] = {
      {usual, all_reduce(DType::kF32, ReduceOp::kSum, {5}), "all_reduce(sum) of 5 f32"},
      {usual, all_reduce(DType::kI32, ReduceOp::kSum, {4}), "all_reduce(sum) of 4 i32"},
      {usual, all_reduce(DType::kF32, ReduceOp::kMax, {4}), "all_reduce(max) of 4 f32"},
      {next, permute(3, DType::kF32, 4), "permute(3) of 4 f32"},
      {next, permute(1, DType::kI32, 4), "permute(1) of 4 i32"},
      {next, permute(1, DType::kF32, 3), "permute(1) of 3 f32"},
      {next, usual, "permute(1) of 4 f32"},
      {usual, halves, "they have 1 and 2 pieces, and piece 0 differs"},
      {halves, all_reduce(DType::kF32, ReduceOp::kSum, {2, 1, 1}), "they have 2 and 3 pieces, and piece 1 differs"},
  };
  for (const auto& c : cases) {
    World world(4, kPatient);
    ExpectOnAll(
        world, [&](int rank) { return (rank == 1 ? c.other : c.one)(world.all(rank), world.stream(rank), rank); },
        absl::StatusCode::kInvalidArgument,
        AllOf(HasSubstr("rank 0 calls"), HasSubstr("but rank 1 calls"), HasSubstr(c.text)));
  }
}

TEST(LoopbackMismatch, OfSendsAndReceives) {
  const auto send = [](World& world, int rank, size_t count, DType dtype = DType::kF32) {
    return world.all(rank).Send(world.stream(rank), {PieceOf(rank, count)}, dtype, 1 - rank);
  };
  const auto receive = [](World& world, int rank, size_t count) {
    return world.all(rank).Receive(world.stream(rank), {PieceOf(rank, count)}, DType::kF32, 1 - rank);
  };
  const auto barrier = [](World& world, int rank) { return world.all(rank).Barrier(world.stream(rank)); };
  for (int round = 0; round < 30; ++round) {
    {
      World world(2, kPatient);
      ExpectOnAll(
          world, [&](int rank) { return send(world, rank, 3); }, absl::StatusCode::kInvalidArgument,
          HasSubstr("rank 0 calls send of 3 f32 to rank 1 (operation 0 of communicator 'all'), but rank 1 calls send "
                    "of 3 f32 to rank 0"));
    }
    {
      World world(2, kPatient);
      ExpectOnAll(
          world, [&](int rank) { return rank == 0 ? send(world, 0, 3) : receive(world, 1, 4); },
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("rank 0 calls send of 3 f32 to rank 1"), HasSubstr("rank 1 calls receive of 4 f32")));
    }
    {
      World world(2, kPatient);
      ExpectOnAll(
          world, [&](int rank) { return rank == 0 ? send(world, 0, 4, DType::kI32) : receive(world, 1, 4); },
          absl::StatusCode::kInvalidArgument, HasSubstr("send of 4 i32"));
    }
    {
      World world(2, kPatient);
      ExpectOnAll(
          world, [&](int rank) { return rank == 0 ? send(world, 0, 3) : barrier(world, 1); },
          absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("send of 3 f32"), HasSubstr("rank 1 calls barrier")));
    }
    {
      World world(2, kPatient);
      ExpectOnAll(
          world, [&](int rank) { return rank == 0 ? barrier(world, 0) : receive(world, 1, 2); },
          absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("receive of 2 f32"), HasSubstr("rank 0 calls barrier")));
    }
  }
}

TEST(LoopbackDeadline, NamesTheRankThatNeverComes) {
  World world(4, std::chrono::seconds(2));
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 2) return absl::OkStatus();
    return world.all(rank).AllReduce(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32, ReduceOp::kSum);
  });
  for (int rank : {0, 1, 3}) {
    const absl::Status& status = results[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(TextOf(status),
                ::testing::MatchesRegex("rank [013] waited 2 s in all_reduce\\(sum\\) of 8 f32 \\(operation 0 of "
                                        "communicator 'all'\\) for rank 2; rank 2 is in no operation"));
  }
  EXPECT_EQ(world.group(0).status(), results[0]);
}

TEST(LoopbackDeadline, FollowsTheChainToItsEnd) {
  World world(4, std::chrono::seconds(2));
  std::atomic<bool> begun{false};  // rank 0 waits first
  const auto await_rank_0 = [&] {
    while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  };
  const auto results = world.Run([&](int rank) -> absl::Status {
    const std::vector<int> pair = {1, 3};
    if (rank == 3) return absl::OkStatus();
    if (rank == 1) {
      await_rank_0();
      BOWLINE_ASSIGN_OR_RETURN(const auto two, world.Create(1, "two", pair));
      return two->Receive(world.stream(1), {PieceOf(1, 5)}, DType::kF32, 1);
    }
    if (rank == 0) {
      begun = true;
      return world.all(0).Send(world.stream(0), {PieceOf(0, 6)}, DType::kF32, 1);
    }
    await_rank_0();
    return world.all(2).Receive(world.stream(2), {PieceOf(2, 6)}, DType::kF32, 0);
  });
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(TextOf(results[static_cast<size_t>(rank)]),
              "rank 0 waited 2 s in send of 6 f32 to rank 1 (operation 0 of communicator 'all') for rank 1; rank 1 is "
              "in receive of 5 f32 from rank 3 (operation 0 of communicator 'two'), which waits for rank 3; rank 3 is "
              "in no operation");
  }
}

TEST(LoopbackDeadline, EndsWhenARankGivesUp) {
  World world(3, kPatient);
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      world.group(1).Abort(absl::DataLossError("rank 1 lost its data"));
      return world.group(0).status();
    }
    if (rank == 0) return world.all(0).Barrier(world.stream(0));
    return world.all(2).Receive(world.stream(2), {PieceOf(2, 5)}, DType::kF32, 1);
  });
  for (const absl::Status& status : results) EXPECT_EQ(status, absl::DataLossError("rank 1 lost its data"));
  EXPECT_EQ(world.Create(0, "new", {0, 1, 2}).status(), results[0]);
}

TEST(LoopbackGroup, IsOneForAllItsRanks) {
  World world(3);
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(world.group(rank).rank(), rank);
    EXPECT_EQ(world.group(rank).ranks(), 3);
    EXPECT_TRUE(world.group(rank).status().ok());
  }
  EXPECT_THAT(TextOf(world.Create(2, "pair", {0, 1}, {}).status()), HasSubstr("rank 2, which asks"));
  world.group(1).Abort(absl::DataLossError("rank 1 lost its data"));
  for (int rank : {0, 1, 2}) EXPECT_EQ(world.group(rank).status(), absl::DataLossError("rank 1 lost its data"));
}

TEST(LoopbackErrors, TwoOperationsOfARankAtOnce) {
  World world(2, kPatient);
  const auto second = *world.device(0).CreateStream();
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 0) return world.all(0).Barrier(world.stream(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return world.all(0).Barrier(*second);
  });
  for (const absl::Status& status : results) {
    EXPECT_THAT(TextOf(status), HasSubstr("rank 0 has two operations at the same time"));
  }
}

TEST(LoopbackErrors, ImpossibleCallsReachNobody) {
  World world(2, kPatient);
  testing::PointerCommunicator& all = world.all(0);
  hal::Stream& stream = world.stream(0);
  const auto refused = [](const absl::Status& status, const char* text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(TextOf(status), HasSubstr(text));
  };
  refused(all.Send(stream, {PieceOf(0, 1)}, DType::kF32, 0), "member 0 of 2 has no peer 0");
  refused(all.Send(stream, {PieceOf(0, 1)}, DType::kF32, 2), "no peer 2");
  refused(all.Receive(stream, {PieceOf(0, 1)}, DType::kF32, -1), "no peer -1");
  refused(all.AllReduce(stream, {PieceOf(0, 1)}, DType::kU8, ReduceOp::kSum), "u8 cannot be reduced");
  refused(all.Permute(stream, {PieceOf(0, 1)}, DType::kF32, 0), "permute has no shift 0 among 2 members");
  refused(all.Permute(stream, {PieceOf(0, 1)}, DType::kF32, 2), "permute has no shift 2 among 2 members");
  refused(all.AllGather(stream, {PieceOf(0, ~size_t{0})}, DType::kF32), "more bytes than any machine has");
  refused(all.AllGather(stream, {PieceOf(0, 1), PieceOf(0, ~size_t{0})}, DType::kF32), "more bytes");
  refused(all.AllGather(stream, {{nullptr, buffer_of_rank[0], 1}}, DType::kF32), "nothing to send from");
  refused(all.AllGather(stream, {{buffer_of_rank[0], nullptr, 1}}, DType::kF32), "nowhere to receive to");
  world.RunOk([&](int rank) { return world.all(rank).Barrier(world.stream(rank)); });
}

TEST(LoopbackErrors, ImpossibleCommunicators) {
  EXPECT_EQ(LoopbackGroup::Create(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoopbackGroup::Create(1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoopbackGroup::Create(2, {.timeout = std::chrono::seconds(0)}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto group = *LoopbackGroup::Create(4);
  const auto refused = [&](int rank, std::vector<int> members, const char* text, const LinkOptions& link = {}) {
    const absl::Status status = group->CreateExchange(rank, "tp", members, link).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(TextOf(status), HasSubstr(text));
  };
  refused(0, {0, 4}, "there is no rank 4");
  refused(0, {0, -1}, "there is no rank -1");
  refused(0, {0, 1, 0}, "rank 0 is there twice");
  refused(0, {1, 2}, "rank 0, which asks for it, is no member");
  refused(0, {}, "is no member");
  const auto first = group->CreateExchange(1, "tp", {1, 2});
  ASSERT_TRUE(first.ok());
  refused(1, {1, 2}, "rank 1 has communicator 'tp' already");
  refused(2, {2, 1}, "rank 2 wants the ranks 2, 1, another wanted 1, 2");
  refused(2, {1, 2}, "rank 2 wants another link", {.bandwidth = 1e9});
}

}  // namespace
}  // namespace bowline
