// Ranks over TCP that do not issue the same operations: the same error on every rank, never a hang.

#include <atomic>
#include <chrono>

#include "runtime/comm/gloo/gloo_group.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline {
namespace {

using hal::ReduceOp;
using kernels::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::World;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

constexpr std::chrono::nanoseconds kPatient = std::chrono::minutes(10);

void ExpectOnAll(World& world, const std::function<absl::Status(int)>& body, absl::StatusCode code,
                 const ::testing::Matcher<std::string>& text) {
  const std::vector<absl::Status> results = world.Run(body);
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(TextOf(status), text);
    EXPECT_EQ(status, results[0]);
  }
}

float buffer_of_rank[8][64];

hal::HostPiece PieceOf(int rank, size_t count) { return {buffer_of_rank[rank], buffer_of_rank[rank] + 32, count}; }

TEST(GlooMismatch, OfKinds) {
  for (hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    World world(3, kPatient, {}, mode);
    world.RunOk([&](int rank) { return world.all(rank).Barrier(world.stream(rank)); });
    const auto text = MatchesRegex(
        "rank [01] calls all_reduce\\(sum\\) of 8 f32 \\(operation 1 of communicator 'all'\\), but rank 2 calls "
        "all_gather of 8 f32 \\(operation 1 of communicator 'all'\\); members must .*");
    ExpectOnAll(
        world,
        [&](int rank) {
          if (rank == 2) return world.all(rank).AllGather(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32);
          return world.all(rank).AllReduce(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32, ReduceOp::kSum);
        },
        absl::StatusCode::kInvalidArgument, text);
    // Broken for good, and at once.
    ExpectOnAll(
        world, [&](int rank) { return world.all(rank).Barrier(world.stream(rank)); },
        absl::StatusCode::kInvalidArgument, text);
    for (int rank : {0, 1, 2}) EXPECT_THAT(TextOf(world.group(rank).status()), text);
  }
}

TEST(GlooMismatch, OfCountsTypesReductionsAndPieces) {
  using Call = std::function<absl::Status(testing::PointerCommunicator&, hal::Stream&, int)>;
  const auto all_reduce = [](DType dtype, ReduceOp op, std::vector<size_t> counts) -> Call {
    return [=](testing::PointerCommunicator& all, hal::Stream& stream, int rank) {
      std::vector<hal::HostPiece> pieces;
      for (size_t count : counts) pieces.push_back(PieceOf(rank, count));
      // The array has to stay.
      BOWLINE_RETURN_IF_ERROR(all.AllReduce(stream, pieces, dtype, op));
      return stream.Synchronize();
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
      {halves, usual, "; they have "},
      {halves, all_reduce(DType::kF32, ReduceOp::kSum, {3, 1}), "; their 2 pieces have other sizes"},
      {halves, all_reduce(DType::kF32, ReduceOp::kSum, {2, 1, 1}), " pieces; members"},
  };
  for (const auto& c : cases) {
    World world(4, kPatient);
    ExpectOnAll(
        world, [&](int rank) { return (rank == 1 ? c.other : c.one)(world.all(rank), world.stream(rank), rank); },
        absl::StatusCode::kInvalidArgument,
        AllOf(HasSubstr("rank 1 calls"), HasSubstr(", but rank "), HasSubstr(c.text)));
  }
}

TEST(GlooMismatch, OfSendsAndReceives) {
  const auto send = [](World& world, int rank, size_t count, DType dtype = DType::kF32) {
    return world.all(rank).Send(world.stream(rank), {PieceOf(rank, count)}, dtype, 1 - rank);
  };
  const auto receive = [](World& world, int rank, size_t count) {
    return world.all(rank).Receive(world.stream(rank), {PieceOf(rank, count)}, DType::kF32, 1 - rank);
  };
  const auto barrier = [](World& world, int rank) { return world.all(rank).Barrier(world.stream(rank)); };
  const struct {
    std::function<absl::Status(World&)> of_0, of_1;
    ::testing::Matcher<std::string> text;
  } cases[] = {
      {[&](World& w) { return send(w, 0, 3); }, [&](World& w) { return send(w, 1, 3); },
       HasSubstr("rank 0 calls send of 3 f32 to rank 1 (operation 0 of communicator 'all'), but rank 1 calls send of 3 "
                 "f32 to rank 0")},
      {[&](World& w) { return send(w, 0, 3); }, [&](World& w) { return receive(w, 1, 4); },
       AllOf(HasSubstr("rank 0 calls send of 3 f32 to rank 1"), HasSubstr("rank 1 calls receive of 4 f32"))},
      {[&](World& w) { return send(w, 0, 4, DType::kI32); }, [&](World& w) { return receive(w, 1, 4); },
       HasSubstr("send of 4 i32")},
      {[&](World& w) { return send(w, 0, 3); }, [&](World& w) { return barrier(w, 1); },
       AllOf(HasSubstr("send of 3 f32"), HasSubstr("rank 1 calls barrier"))},
      {[&](World& w) { return barrier(w, 0); }, [&](World& w) { return receive(w, 1, 2); },
       AllOf(HasSubstr("receive of 2 f32"), HasSubstr("rank 0 calls barrier"))},
  };
  for (const auto& c : cases) {
    World world(2, kPatient);
    ExpectOnAll(
        world, [&](int rank) { return rank == 0 ? c.of_0(world) : c.of_1(world); }, absl::StatusCode::kInvalidArgument,
        c.text);
  }
}

TEST(GlooDeadline, NamesTheRankThatNeverComes) {
  World world(4, std::chrono::seconds(2));
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 2) return absl::OkStatus();
    return world.all(rank).AllReduce(world.stream(rank), {PieceOf(rank, 8)}, DType::kF32, ReduceOp::kSum);
  });
  for (int rank : {0, 1, 3}) {
    const absl::Status& status = results[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(TextOf(status),
                MatchesRegex("rank [013] waited 2 s for rank 2 in all_reduce\\(sum\\) of 8 f32 \\(operation 0 of "
                             "communicator 'all'\\); rank 2 is in no operation; cause: rank 2 \\(host .*, pid .*\\), "
                             "alive but not there; .*"));
  }
  EXPECT_EQ(world.group(2).status(), results[0]);
}

TEST(GlooDeadline, FollowsTheChainToItsEnd) {
  World world(4, std::chrono::seconds(2));
  std::atomic<bool> begun{false}, over{false};  // rank 0 waits first, and rank 3 lives until it has waited in vain
  const auto await = [](const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto results = world.Run([&](int rank) -> absl::Status {
    std::unique_ptr<testing::PointerCommunicator> two;
    if (rank == 1 || rank == 3) {
      BOWLINE_ASSIGN_OR_RETURN(two, world.Create(rank, "two", {1, 3}));
    }
    if (rank == 3) {
      await(over);
      return absl::OkStatus();
    }
    if (rank == 1) {
      await(begun);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return two->Receive(world.stream(1), {PieceOf(1, 5)}, DType::kF32, 1);
    }
    if (rank == 0) {
      begun = true;
      const absl::Status status = world.all(0).Send(world.stream(0), {PieceOf(0, 6)}, DType::kF32, 1);
      over = true;
      return status;
    }
    await(begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return world.all(2).Receive(world.stream(2), {PieceOf(2, 6)}, DType::kF32, 0);
  });
  for (int rank : {0, 1, 2}) {
    EXPECT_THAT(TextOf(results[static_cast<size_t>(rank)]),
                MatchesRegex("rank 0 waited 2 s for rank 1 in send of 6 f32 to rank 1 \\(operation 0 of communicator "
                             "'all'\\); rank 1 waits for rank 3 in receive of 5 f32 from rank 3 \\(operation 0 of "
                             "communicator 'two'\\); rank 3 is in no operation; cause: rank 3 .*"));
  }
}

TEST(GlooDeadline, SeesRanksThatWaitForEachOther) {
  World world(2, std::chrono::seconds(2));
  const auto results = world.Run([&](int rank) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(const auto second, world.Create(rank, "second", {0, 1}));
    testing::PointerCommunicator& first_of_rank = rank == 0 ? world.all(0) : *second;
    return first_of_rank.Receive(world.stream(rank), {PieceOf(rank, 5)}, DType::kF32, 1 - rank);
  });
  for (const absl::Status& status : results) {
    EXPECT_THAT(TextOf(status), AllOf(HasSubstr("communicator 'all'"), HasSubstr("communicator 'second'"),
                                      HasSubstr("cause: ranks 0, 1 wait for each other")));
  }
}

TEST(GlooDeadline, EndsWhenARankGivesUp) {
  World world(3, kPatient);
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      world.group(1).Abort(absl::DataLossError("it lost its data"));
      return world.group(1).status();
    }
    if (rank == 0) return world.all(0).Barrier(world.stream(0));
    return world.all(2).Receive(world.stream(2), {PieceOf(2, 5)}, DType::kF32, 1);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status, absl::DataLossError("rank 1 gave up: it lost its data"));
  }
  EXPECT_EQ(world.Create(0, "new", {0, 1, 2}).status(), results[0]);
}

TEST(GlooErrors, TwoOperationsOfARankAtOnce) {
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

TEST(GlooErrors, ImpossibleCommunicators) {
  World world(4);
  const auto refused = [&](int rank, std::vector<int> members, const char* text) {
    const absl::Status status = world.Create(rank, "tp", members).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(TextOf(status), HasSubstr(text));
  };
  refused(0, {0, 4}, "there is no rank 4");
  refused(0, {0, 1, 0}, "rank 0 is there twice");
  refused(0, {1, 2}, "rank 0, which asks for it, is no member");
  EXPECT_THAT(TextOf(world.Create(0, "all", {0, 1}).status()), HasSubstr("rank 0 has communicator 'all' already"));
  // None of these reached anybody.
  world.RunOk([&](int rank) { return world.all(rank).Barrier(world.stream(rank)); });
}

TEST(GlooErrors, MembersThatWantDifferentCommunicators) {
  for (bool other_link : {false, true}) {
    World world(3, kPatient);
    const auto results = world.Run([&](int rank) -> absl::Status {
      if (rank == 0) return world.all(0).Barrier(world.stream(0));
      const std::vector<int> members = rank == 1 || other_link ? std::vector<int>{1, 2} : std::vector<int>{2, 1};
      const LinkOptions link = {.bandwidth = rank == 1 && other_link ? 1e9 : 0};
      return world.Create(rank, "tp", members, link).status();
    });
    for (const absl::Status& status : results) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(TextOf(status), AllOf(HasSubstr("communicator 'tp'"),
                                        HasSubstr(other_link ? "wants another link" : "wants the ranks 2, 1")));
    }
  }
}

TEST(GlooErrors, AMemberThatNeverAsksForTheCommunicator) {
  World world(3, std::chrono::seconds(2));
  const auto results = world.Run([&](int rank) -> absl::Status {
    if (rank == 2) return absl::OkStatus();
    return world.Create(rank, "late", {0, 1, 2}).status();
  });
  for (int rank : {0, 1}) {
    EXPECT_THAT(TextOf(results[static_cast<size_t>(rank)]),
                MatchesRegex("rank [01] waited 2 s for rank 2 in the creation of communicator 'late'; rank 2 is in no "
                             "operation; cause: rank 2 .*"));
  }
}

TEST(GlooErrors, ImpossibleOptions) {
  const auto refused = [](GlooOptions options, const char* text) {
    const absl::Status status = GlooGroup::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(TextOf(status), HasSubstr(text));
  };
  refused({.rank = 0, .ranks = 0}, "a group of 0 ranks");
  refused({.rank = 3, .ranks = 3}, "rank 3 of 3; ranks are 0 to 2");
  refused({.rank = 0, .ranks = 2}, "need either a file or an address to meet at");
  refused({.timeout = std::chrono::milliseconds(1)}, "a timeout of 0.001 s");
  refused({.rendezvous_timeout = std::chrono::hours(24 * 366)}, "a timeout of the rendezvous of");
}

TEST(GlooGroup, EmulatesALink) {
  const LinkOptions link = {.bandwidth = 400e3, .latency = std::chrono::milliseconds(1)};
  World world(2, testing::kLong, link);
  world.RunOk([&](int rank) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = world.all(rank).AllGather(world.stream(rank), {PieceOf(rank, 16)}, DType::kF32);
    // (n-1)/n of 128 bytes, and a message's latency.
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::microseconds(1160));
    return status;
  });
}

}  // namespace
}  // namespace bowline
