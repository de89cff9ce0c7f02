// Errors of ranks whose communicators are NCCL's.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "test/Unit/Runtime/nccl_ranks.h"

namespace bowline {
namespace {

using hal::Operation;
using hal::OperationKind;
using hal::ReduceOp;
using kernels::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(Nccl, RefusesByName) {
  EXPECT_THAT(std::string(CreateCuda(0, {{"communicators", "gloo"}}).status().message()),
              HasSubstr("communicators=gloo is none of auto, nccl and host"));
  RunOk(1, [&](Rank& rank) -> absl::Status {
    const hal::Piece piece = {rank.at(0), rank.at(0), 8};
    for (const DType type : {DType::kU16, DType::kBool, DType::kI8}) {
      const absl::Status status =
          rank.all->Reserve(Operation::Reduction(OperationKind::kAllReduce, type, ReduceOp::kSum), {&piece, 1});
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat("communicator 'all', rank 0: ", kernels::NameOf(type), " cannot be reduced")));
    }
    LinkOptions link;
    link.bandwidth = 1e9;
    EXPECT_THAT(std::string(rank.Create("slow", {0}, link).status().message()),
                HasSubstr("communicators=nccl, but NCCL emulates no link; leave out --link"));
    return absl::OkStatus();
  });
}

// A rank that does not come: the others end in time, and are told which rank is late for which operation.
TEST_F(Nccl, ARankThatDoesNotComeIsNamed) {
  NEEDS_CARDS(2);
  const auto [results, seconds] = RunInVain([&](Rank& rank, std::atomic<int>& ready) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(const auto other, rank.Create("other", {0, 1}));
    BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *rank.all, *rank.stream, 0, 1, 2));
    ++ready;
    if (rank.rank == 1) {
      while (rank.group->status().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      // Later operations end at once with the same error.
      const hal::Piece piece = {rank.at(0), rank.at(0), 8};
      absl::Status late;
      while (late.ok()) {
        late = rank.all->Issue(*rank.stream, {OperationKind::kAllReduce}, {&piece, 1});
        if (late.ok()) late = rank.stream->Synchronize();
      }
      return late;
    }
    rank.stream->SetLabel(4711);
    const hal::Piece piece = {rank.at(0), rank.at(0), 77};
    BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*rank.stream, {OperationKind::kAllReduce}, {&piece, 1}));
    // Behind it is one of another communicator, which the card never begins.
    rank.stream->SetLabel(4712);
    BOWLINE_RETURN_IF_ERROR(other->Issue(*rank.stream, {OperationKind::kAllReduce}, {&piece, 1}));
    const auto event = *rank.device->CreateEvent();
    BOWLINE_RETURN_IF_ERROR(rank.stream->Record(*event));
    EXPECT_TRUE(event->Await().ok());
    EXPECT_TRUE(rank.stream->HasFailed());
    const absl::Status status = rank.stream->Synchronize();
    EXPECT_EQ(rank.stream->FailedLabel(), 4711u);
    EXPECT_FALSE(rank.stream->HasFailed());
    return status;
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("rank 0 waited ", seconds,
                                             " s in all_reduce(sum) of 77 f32 (operation 1 of communicator 'all') for "
                                             "rank 1")),
                      HasSubstr("rank 1 is in no operation")));
  }
}

// A rank that gives up ends the operations for which the others wait.
TEST_F(Nccl, ARankThatGivesUpEndsTheOthers) {
  NEEDS_CARDS(2);
  const std::vector<absl::Status> results = Run(cards_, [&](Rank& rank) -> absl::Status {
    if (rank.rank == cards_ - 1) return absl::DataLossError("the data of this rank is gone");
    return SumOnce(rank, *rank.all, *rank.stream, 0, 1, 1);
  });
  for (const absl::Status& status : results) EXPECT_EQ(status, absl::DataLossError("the data of this rank is gone"));
}

// Members whose operations do not match. The stand-in finds it, where NCCL may hang, or move something else.
TEST_F(Nccl, OperationsThatDoNotMatchEnd) {
  NEEDS_CARDS(2);
  if (!OnStandIn()) GTEST_SKIP() << "needs the stand-in";
  const std::vector<absl::Status> results = Run(
      2,
      [&](Rank& rank) -> absl::Status {
        const hal::Piece piece = {rank.at(0), rank.at(kMemory / 2), rank.rank == 0 ? size_t{10} : size_t{20}};
        BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*rank.stream, {OperationKind::kAllGather}, {&piece, 1}));
        return rank.stream->Synchronize();
      },
      std::chrono::seconds(2));
  for (const absl::Status& status : results) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("in all_gather of "));
  }
}

// A replay that waits for a rank that does not come ends, and so do the communicators, for whose end NCCL waits until
// the graphs are gone. The operation has a number of this replay's: by the one of the replay before, nobody could tell
// a series of replays from an operation that does not end.
TEST_F(Nccl, AReplayThatWaitsInVainIsNamed) {
  NEEDS_CARDS(2);
  const auto [results, seconds] = RunInVain(
      [&](Rank& rank, std::atomic<int>& ready) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *rank.all, *rank.stream, 8192, 1, 2));
        BOWLINE_ASSIGN_OR_RETURN(const auto recording, RecordSums(rank, {77, 33}));
        BOWLINE_RETURN_IF_ERROR(rank.stream->Replay(*recording));
        BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
        ++ready;
        while (rank.rank == 1 && rank.group->status().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        BOWLINE_RETURN_IF_ERROR(rank.stream->Replay(*recording));
        const absl::Status status = rank.stream->Synchronize();
        EXPECT_EQ(rank.stream->FailedLabel(), std::nullopt);
        EXPECT_FALSE(status.ok());
        // Later replays end at once with the same error.
        EXPECT_EQ(rank.stream->Replay(*recording).code(), status.code());
        return status;
      },
      Graphs());
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("rank 0 waited ", seconds,
                                             " s in all_reduce(sum) of 77 f32 (operation 3 of communicator 'all') for "
                                             "rank 1")),
                      HasSubstr("rank 1 is in no operation")));
  }
}

// An error that NCCL finds by itself. Needs the stand-in, which makes the third operation of member 1 fail: so NCCL
// moves the data of ranks on different cards also where the user asks for no communicators.
TEST_F(Nccl, AnErrorThatNcclFindsByItselfIsExplained) {
  NEEDS_CARDS(2);
  if (!OnStandIn()) GTEST_SKIP() << "needs the stand-in";
  for (const char* const way : {"nccl", "auto"}) {
    ASSERT_EQ(::setenv("BOWLINE_STAND_IN_NCCL_FAULT", "1 2 6", 1), 0);
    const std::vector<absl::Status> results =
        Run(2,
            [&](Rank& rank) -> absl::Status {
              for (int i = 0; i < 4; ++i) BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *rank.all, *rank.stream, 0, 1, 2));
              return absl::OkStatus();
            },
            std::chrono::minutes(2), {{"communicators", way}});
    ASSERT_EQ(::unsetenv("BOWLINE_STAND_IN_NCCL_FAULT"), 0);
    for (const absl::Status& status : results) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr("rank 1 in all_reduce(sum) of 1000 f32 (operation 2 of communicator 'all'): NCCL: remote "
                          "process exited or there was a network error (6): a fault of the stand-in"),
                HasSubstr("rank 0 is in all_reduce(sum) of 1000 f32 (operation 2 of communicator 'all')")));
    }
  }
}

// While one thread issues, the watch looks, and others ask whether something failed. The stand-in ends the process
// where two of them are in calls on one communicator.
TEST_F(Nccl, OneThreadAtATimeCalls) {
  NEEDS_CARDS(2);
  RunOk(2, [&](Rank& rank) -> absl::Status {
    const hal::Piece piece = {rank.at(0), rank.at(0), 8};
    for (int sums = 0; sums < 300; ++sums) {
      BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*rank.stream, {OperationKind::kAllReduce}, {&piece, 1}));
      BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
    }
    return absl::OkStatus();
  });
}

// Needs the stand-in, whose calls fail, or wait, where they are asked to. The fixture checks that
// objects which NCCL made before the failure are freed.
class NcclCall : public Nccl {
 protected:
  std::vector<absl::Status> RunWith(const char* fault, const std::function<absl::Status(Rank&)>& body) {
    EXPECT_EQ(::setenv("BOWLINE_STAND_IN_NCCL_CALL_FAULT", fault, 1), 0);
    std::vector<absl::Status> results = Run(2, body);
    EXPECT_EQ(::unsetenv("BOWLINE_STAND_IN_NCCL_CALL_FAULT"), 0);
    return results;
  }
};

#define NEEDS_STAND_IN() \
  NEEDS_CARDS(2);        \
  if (!OnStandIn()) GTEST_SKIP() << "needs the stand-in"

TEST_F(NcclCall, ARankThatCannotConnectEndsTheOthers) {
  NEEDS_STAND_IN();
  for (const absl::Status& status : RunWith("ncclCommInitRankConfig 1 2", [](Rank&) { return absl::OkStatus(); })) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("communicator 'all' by NCCL"), HasSubstr("ncclCommInitRankConfig: ")));
  }
}

// The others are in ncclCommSplit then, and NCCL stores a communicator after they gave up.
TEST_F(NcclCall, ARankThatCannotSplitEndsTheOthers) {
  NEEDS_STAND_IN();
  const std::vector<absl::Status> results =
      RunWith("ncclCommSplit 1 2", [](Rank& rank) { return rank.Create("again", {0, 1}).status(); });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("communicator 'again' by NCCL"), HasSubstr("ncclCommSplit: ")));
  }
}

// A call that waits until it is aborted, as one may that needs a card that is busy for ever.
TEST_F(NcclCall, IsAbortedWhereItDoesNotReturn) {
  NEEDS_STAND_IN();
  const std::vector<absl::Status> results = RunWith("ncclCommRegister 0 7", [](Rank& rank) -> absl::Status {
    if (rank.rank == 1) return absl::DataLossError("the data of this rank is gone");
    const hal::Piece piece = {rank.at(0), rank.at(0), 8};
    return rank.all->Reserve({OperationKind::kAllReduce}, {&piece, 1});
  });
  for (const absl::Status& status : results) EXPECT_EQ(status, absl::DataLossError("the data of this rank is gone"));
}

// One member has a communicator from which it could split, and the other has it no more. All connect anew, by an id
// that the first one makes; the stand-in ends the process where nobody made it.
TEST_F(NcclCall, AnIdIsMadeWhereOneMemberHasNoParent) {
  NEEDS_STAND_IN();
  const std::vector<absl::Status> results = Run(2, [](Rank& rank) -> absl::Status {
    // It waits in vain for the other member, for two seconds.
    if (rank.rank == 1) rank.all.reset();
    return rank.Create("again", {0, 1}).status();
  });
  for (const absl::Status& status : results) EXPECT_FALSE(status.ok());
}

// A library of that name that lacks needed functions.
using NcclMissing = Nccl;

TEST_F(NcclMissing, IsOneMessageOrTheHost) {
  NEEDS_CARDS(2);
  for (const absl::Status& status : Run(2, [](Rank&) { return absl::OkStatus(); })) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("libnccl.so.2 has no function ncclSend"));
  }
  RunOk(2, [&](Rank& rank) { return SumOnce(rank, *rank.all, *rank.stream, 0, 1, 2); }, {{"communicators", "auto"}});
}

}  // namespace
}  // namespace bowline
