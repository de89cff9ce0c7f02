// Results of NCCL's communicators of the cuda driver.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "test/Unit/Runtime/nccl_ranks.h"
#include "types/half.h"

namespace bowline {
namespace {

using hal::Operation;
using hal::OperationKind;
using hal::ReduceOp;
using kernels::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI64,
                            DType::kI32, DType::kU16, DType::kI8,   DType::kU8,  DType::kBool};

// Every operation, of every type that it takes, with two pieces, against its definition.
TEST_F(Nccl, OperationsAreThoseOfTheirDefinitions) {
  for (const int ranks : Sizes()) {
    const size_t first = 1 + random_() % 3000, second = random_() % 70;
    const auto shift = static_cast<uint16_t>(ranks == 1 ? 0 : 1 + random_() % static_cast<uint64_t>(ranks - 1));
    SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", first, " and ", second, " elements, shift ", shift));
    RunOk(ranks, [&](Rank& rank) -> absl::Status {
      const auto n = static_cast<size_t>(ranks), self = static_cast<size_t>(rank.rank);
      for (const DType type : kTypes) {
        for (const collectives::Definition& definition : collectives::kDefinitions) {
          if (definition.reduces() && !CanReduce(type)) continue;
          if (definition.parameter == collectives::Parameter::kShift && ranks == 1) continue;
          for (uint16_t reduction = 0; reduction < (definition.reduces() ? 2 : 1); ++reduction) {
            const auto kind = hal::KindOf(static_cast<collectives::Kind>(&definition - collectives::kDefinitions));
            Operation operation = {kind, type, definition.reduces() ? reduction : uint16_t{0}};
            if (definition.parameter == collectives::Parameter::kShift) operation.parameter = shift;
            const size_t sources = definition.SourceParts(n), destinations = definition.DestinationParts(n);
            const auto value = [&](int from, size_t i) {
              return type == DType::kBool ? static_cast<double>((i + static_cast<size_t>(from)) % 2)
                                          : NumberAt(from, i);
            };
            std::vector<hal::Piece> pieces;
            std::vector<std::pair<size_t, std::vector<uint8_t>>> expected;
            size_t offset = 0;
            for (const size_t count : {first, second}) {
              const std::vector<uint8_t> source =
                  Numbers(type, sources * count, [&](size_t i) { return value(rank.rank, i); });
              BOWLINE_RETURN_IF_ERROR(rank.Write(offset, source));
              const size_t to = offset + (source.size() + 255) / 256 * 256;
              const std::vector<uint8_t> result = Numbers(type, destinations * count, [&](size_t i) {
                double all = 0;
                bool any = false;
                for (uint32_t from = 0; from < n; ++from) {
                  const collectives::Move move =
                      definition.move(from, static_cast<uint32_t>(self), static_cast<uint32_t>(n), operation.parameter);
                  if (!move.any || move.destination != i / count) continue;
                  const double one = value(static_cast<int>(from), move.source * count + i % count);
                  all = !any ? one : reduction == 1 ? std::max(all, one) : all + one;
                  any = true;
                }
                return all;
              });
              BOWLINE_RETURN_IF_ERROR(rank.Write(to, std::vector<uint8_t>(result.size(), 77)));
              pieces.push_back({rank.at(offset), rank.at(to), count});
              expected.emplace_back(to, result);
              offset = to + (result.size() + 255) / 256 * 256;
            }
            BOWLINE_RETURN_IF_ERROR(rank.all->Reserve(operation, pieces));
            BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*rank.stream, operation, pieces));
            BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
            for (const auto& [at, bytes] : expected) {
              EXPECT_EQ(rank.Read(at, bytes.size()), bytes) << definition.name << " " << operation.parameter << " of "
                                                            << kernels::NameOf(type) << " on rank " << rank.rank;
            }
          }
        }
      }
      BOWLINE_RETURN_IF_ERROR(rank.all->Issue(*rank.stream, {OperationKind::kBarrier}, {}));
      return absl::OkStatus();
    });
  }
}

// Sums of random numbers agree with f64 to within the rounding of each addition, and all ranks get the same bits.
TEST_F(Nccl, SumsAreRoundedAtMostOnceForEachMember) {
  constexpr size_t kCount = 4099;
  for (const int ranks : Sizes()) {
    for (const auto& [type, epsilon] : {std::pair{DType::kF32, 0x1p-24}, {DType::kBF16, 0x1p-8}}) {
      std::vector<std::vector<float>> values(static_cast<size_t>(ranks), std::vector<float>(kCount));
      std::vector<std::vector<uint8_t>> results(static_cast<size_t>(ranks));
      for (auto& own : values) {
        for (float& value : own) {
          value = std::uniform_real_distribution<float>(-300, 300)(random_);
          if (type == DType::kBF16) value = Bf16ToF32(F32ToBf16(value));
        }
      }
      const size_t size = kernels::SizeOf(type);
      RunOk(ranks, [&, type = type](Rank& rank) -> absl::Status {
        const std::vector<float>& own = values[static_cast<size_t>(rank.rank)];
        BOWLINE_RETURN_IF_ERROR(rank.Write(0, Numbers(type, kCount, [&](size_t i) { return own[i]; })));
        const hal::Piece piece = {rank.at(0), rank.at(0), kCount};
        BOWLINE_RETURN_IF_ERROR(rank.all->Issue(
            *rank.stream, Operation::Reduction(OperationKind::kAllReduce, type, ReduceOp::kSum), {&piece, 1}));
        BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
        results[static_cast<size_t>(rank.rank)] = rank.Read(0, kCount * size);
        return absl::OkStatus();
      });
      for (const auto& result : results) EXPECT_EQ(result, results[0]);
      for (size_t i = 0; i < kCount; ++i) {
        double exact = 0, magnitude = 0;
        for (const auto& own : values) {
          exact += own[i];
          magnitude += std::abs(own[i]);
        }
        float got = 0;
        if (type == DType::kF32) {
          std::memcpy(&got, results[0].data() + i * size, size);
        } else {
          uint16_t bits;
          std::memcpy(&bits, results[0].data() + i * size, size);
          got = Bf16ToF32(bits);
        }
        ASSERT_LE(std::abs(got - exact), (ranks - 1) * epsilon * 1.01 * magnitude) << i;
      }
    }
  }
}

// Communicators of the same ranks are split from the first one, those of others are made anew; of all of them several
// are in use at a time.
TEST_F(Nccl, GroupsOfTheSameAndOfOtherRanks) {
  NEEDS_CARDS(4);
  RunOk(4, [&](Rank& rank) -> absl::Status {
    const int row = rank.rank / 2, column = rank.rank % 2;
    BOWLINE_ASSIGN_OR_RETURN(const auto across, rank.Create(absl::StrCat("row", row), {2 * row, 2 * row + 1}));
    BOWLINE_ASSIGN_OR_RETURN(const auto down, rank.Create(absl::StrCat("column", column), {column + 2, column}));
    BOWLINE_ASSIGN_OR_RETURN(const auto again, rank.Create("again", {0, 1, 2, 3}));
    BOWLINE_ASSIGN_OR_RETURN(const auto down_again, rank.Create(absl::StrCat("c", column), {column + 2, column}));
    BOWLINE_ASSIGN_OR_RETURN(const auto other, rank.device->CreateStream(hal::StreamMode::kWorker));
    EXPECT_EQ(down->rank(), 1 - row);
    for (int round = 0; round < 10; ++round) {
      const auto own = static_cast<float>(rank.rank + round), others = static_cast<float>(round);
      BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *rank.all, *rank.stream, 0, own, 6 + 4 * others));
      BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *across, *other, 8192, own, 4 * static_cast<float>(row) + 1 + 2 * others));
      BOWLINE_RETURN_IF_ERROR(
          SumOnce(rank, *down, *rank.stream, 0, own, 2 * static_cast<float>(column) + 2 + 2 * others));
      BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *again, *other, 8192, own, 6 + 4 * others));
      BOWLINE_RETURN_IF_ERROR(
          SumOnce(rank, *down_again, *other, 0, own, 2 * static_cast<float>(column) + 2 + 2 * others));
    }
    return absl::OkStatus();
  });
}

// Both send and receive in an order that would hang if operations buffered nothing and streams did not go on.
TEST_F(Nccl, SendsMeetReceives) {
  NEEDS_CARDS(2);
  RunOk(cards_, [&](Rank& rank) -> absl::Status {
    const int next = (rank.rank + 1) % cards_, previous = (rank.rank + cards_ - 1) % cards_;
    constexpr size_t kCount = 100'000;
    const auto value = [](int from, size_t i) {
      return static_cast<double>(from * 1000) + static_cast<double>(i % 100);
    };
    BOWLINE_RETURN_IF_ERROR(rank.Write(0, Numbers(DType::kF32, kCount, [&](size_t i) { return value(rank.rank, i); })));
    const Operation send = {.kind = OperationKind::kSend, .dtype = DType::kF32, .peer = next};
    const Operation receive = {.kind = OperationKind::kReceive, .dtype = DType::kF32, .peer = previous};
    const std::vector<hal::Piece> out = {{rank.at(0), 0, 7}, {rank.at(28), 0, kCount - 7}};
    const std::vector<hal::Piece> in = {{0, rank.at(kMemory / 2), 7}, {0, rank.at(kMemory / 2 + 28), kCount - 7}};
    for (int step = 0; step < 2; ++step) {
      const bool sends = (rank.rank == 0) == (step == 0);
      BOWLINE_RETURN_IF_ERROR(sends ? rank.all->Issue(*rank.stream, send, out)
                                    : rank.all->Issue(*rank.stream, receive, in));
    }
    BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
    std::vector<uint8_t> expected = Numbers(DType::kF32, kCount, [&](size_t i) { return value(previous, i); });
    expected.resize(4 * kCount);
    EXPECT_EQ(rank.Read(kMemory / 2, 4 * kCount), expected);
    return absl::OkStatus();
  });
}

// Memory may go before the communicator that it is registered with.
TEST_F(Nccl, MemoryIsTakenBackBeforeItIsFreed) {
  RunOk(std::min(cards_, 2), [&](Rank& rank) -> absl::Status {
    const float expected = cards_ > 1 ? 1 : 0;
    BOWLINE_RETURN_IF_ERROR(SumOnce(rank, *rank.all, *rank.stream, 0, static_cast<float>(rank.rank), expected));
    rank.memory.reset();
    BOWLINE_ASSIGN_OR_RETURN(rank.memory, rank.device->Allocate(kMemory));
    return SumOnce(rank, *rank.all, *rank.stream, 512, static_cast<float>(rank.rank), expected);
  });
}

TEST_F(Nccl, RanksThatShareACardCopyThroughTheHost) {
  RunOk(cards_ + 1,
        [&](Rank& rank) {
          const int ranks = cards_ + 1;
          return SumOnce(rank, *rank.all, *rank.stream, 0, static_cast<float>(rank.rank),
                         static_cast<float>(ranks * (ranks - 1) / 2));
        },
        {{"communicators", "auto"}});
  for (const absl::Status& status : Run(cards_ + 1, [](Rank&) { return absl::OkStatus(); })) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("rank 0 and rank ", cards_, " share a card")),
                      HasSubstr("give each rank a card of its own")));
  }
}

// Each replay runs recorded operations on the data then in memory, in turns with others.
TEST_F(Nccl, RecordedOperationsAreReplayed) {
  constexpr size_t kFirst = 1003, kSecond = 77, kBytes = 4 * (kFirst + kSecond);
  for (const int ranks : Sizes()) {
    RunOk(
        ranks,
        [&](Rank& rank) -> absl::Status {
          EXPECT_TRUE(rank.all->CanRecord());
          const auto ranks_sum = static_cast<float>(ranks * (ranks - 1) / 2);
          BOWLINE_RETURN_IF_ERROR(
              SumOnce(rank, *rank.all, *rank.stream, 8192, static_cast<float>(rank.rank), ranks_sum));
          for (int recordings = 0; recordings < 2; ++recordings) {
            BOWLINE_ASSIGN_OR_RETURN(const auto recording, RecordSums(rank, {kFirst, kSecond}));
            for (int replay = 0; replay < 5; ++replay) {
              const auto value = [&](int from, size_t i) { return NumberAt(from + replay, i); };
              const auto own = Numbers(DType::kF32, kFirst + kSecond, [&](size_t i) { return value(rank.rank, i); });
              auto expected = Numbers(DType::kF32, kFirst + kSecond, [&](size_t i) {
                double all = 0;
                for (int from = 0; from < ranks; ++from) all += value(from, i);
                return all;
              });
              expected.resize(kBytes);
              BOWLINE_RETURN_IF_ERROR(rank.Write(0, own));
              BOWLINE_RETURN_IF_ERROR(rank.stream->Replay(*recording));
              BOWLINE_RETURN_IF_ERROR(rank.stream->Synchronize());
              EXPECT_EQ(rank.Read(0, kBytes), expected) << "replay " << replay << " on rank " << rank.rank;
              BOWLINE_RETURN_IF_ERROR(
                  SumOnce(rank, *rank.all, *rank.stream, 8192, static_cast<float>(rank.rank), ranks_sum));
            }
          }
          return absl::OkStatus();
        },
        Graphs());
  }
}

}  // namespace
}  // namespace bowline
