// Every operation against a scalar reference, bit for bit; of whichever communicators the binary links.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "test/Support/test_seed.h"
#include "test/Unit/Runtime/comm_fixture.h"
#include "types/half.h"

namespace bowline {
namespace {

using Piece = hal::HostPiece;
using hal::ReduceOp;
using kernels::DType;
using testing::World;

struct F32 {
  using Stored = float;
  static constexpr DType kType = DType::kF32;
  static Stored Random(std::mt19937_64& random) { return std::uniform_real_distribution<float>(-300, 300)(random); }
  static float Load(Stored value) { return value; }
  static Stored Store(float value) { return value; }
};
struct F64 {
  using Stored = double;
  static constexpr DType kType = DType::kF64;
  static Stored Random(std::mt19937_64& random) { return std::uniform_real_distribution<double>(-300, 300)(random); }
  static double Load(Stored value) { return value; }
  static Stored Store(double value) { return value; }
};
struct Bf16 {
  using Stored = uint16_t;
  static constexpr DType kType = DType::kBF16;
  static Stored Random(std::mt19937_64& random) { return F32ToBf16(F32::Random(random)); }
  static float Load(Stored value) { return Bf16ToF32(value); }
  static Stored Store(float value) { return F32ToBf16(value); }
};
struct F16 {
  using Stored = uint16_t;
  static constexpr DType kType = DType::kF16;
  static Stored Random(std::mt19937_64& random) { return F32ToF16(F32::Random(random)); }
  static float Load(Stored value) { return F16ToF32(value); }
  static Stored Store(float value) { return F32ToF16(value); }
};
struct I32 {
  using Stored = int32_t;
  static constexpr DType kType = DType::kI32;
  static Stored Random(std::mt19937_64& random) { return static_cast<int32_t>(random()); }
  static int64_t Load(Stored value) { return value; }
  static Stored Store(int64_t value) { return static_cast<int32_t>(static_cast<uint64_t>(value)); }
};
struct I64 {
  using Stored = int64_t;
  static constexpr DType kType = DType::kI64;
  static Stored Random(std::mt19937_64& random) { return static_cast<int64_t>(random()); }
  static __int128 Load(Stored value) { return value; }
  static Stored Store(__int128 value) { return static_cast<int64_t>(static_cast<uint64_t>(value)); }
};

template <typename T>
using Vectors = std::vector<std::vector<T>>;

// A rank's pieces, one behind the other in `send` and `receive`.
template <typename T>
std::vector<Piece> PiecesOf(const std::vector<size_t>& counts, const T* send, size_t send_parts, T* receive,
                            size_t receive_parts) {
  std::vector<Piece> pieces;
  for (size_t count : counts) {
    pieces.push_back({send, receive, count});
    send += count * send_parts;
    receive += count * receive_parts;
  }
  return pieces;
}

template <typename Type>
class Collectives : public ::testing::Test {
 protected:
  using T = typename Type::Stored;

  Vectors<T> RandomValues(size_t ranks, size_t count) {
    Vectors<T> values(ranks, std::vector<T>(count + 1));
    for (std::vector<T>& rank : values) {
      for (T& value : rank) value = Type::Random(random_);
    }
    return values;
  }

  static T Reduced(const Vectors<T>& send, size_t index, ReduceOp op) {
    auto result = Type::Load(send[0][index]);
    for (size_t rank = 1; rank < send.size(); ++rank) {
      const auto value = Type::Load(send[rank][index]);
      if (op == ReduceOp::kSum) {
        result += value;
      } else if (value > result) {
        result = value;
      }
    }
    return Type::Store(result);
  }

  // Random pieces, sometimes one and sometimes none.
  std::vector<size_t> RandomCounts() {
    static constexpr size_t kCounts[] = {0, 1, 2, 3, 63, 64, 65, 127, 1000, 1023, 1025, 4099};
    std::vector<size_t> counts(random_() % 5);
    for (size_t& count : counts) count = kCounts[random_() % std::size(kCounts)];
    return counts;
  }

  void CheckAll(World& world, const std::vector<size_t>& counts, ReduceOp op) {
    const auto n = static_cast<size_t>(world.size());
    const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
    const Vectors<T> small = RandomValues(n, total), large = RandomValues(n, n * total);
    const T guard = Type::Store(77);
    Vectors<T> reduced(n, std::vector<T>(total + 1, guard)), scattered = reduced, in_place = small;
    Vectors<T> gathered(n, std::vector<T>(n * total + 1, guard)), exchanged = gathered, permuted = reduced;
    const size_t shift = n == 1 ? 0 : 1 + random_() % (n - 1);
    world.RunOk([&](int rank) -> absl::Status {
      testing::PointerCommunicator& all = world.all(rank);
      hal::Stream& stream = world.stream(rank);
      const auto r = static_cast<size_t>(rank);
      const auto reduce = PiecesOf(counts, small[r].data(), 1, reduced[r].data(), 1);
      const auto reduce_in_place = PiecesOf<T>(counts, in_place[r].data(), 1, in_place[r].data(), 1);
      const auto gather = PiecesOf(counts, small[r].data(), 1, gathered[r].data(), n);
      const auto scatter = PiecesOf(counts, large[r].data(), n, scattered[r].data(), 1);
      const auto exchange = PiecesOf(counts, large[r].data(), n, exchanged[r].data(), n);
      const auto permute = PiecesOf(counts, small[r].data(), 1, permuted[r].data(), 1);
      BOWLINE_RETURN_IF_ERROR(all.AllReduce(stream, reduce, Type::kType, op));
      BOWLINE_RETURN_IF_ERROR(all.AllReduce(stream, reduce_in_place, Type::kType, op));
      BOWLINE_RETURN_IF_ERROR(all.AllGather(stream, gather, Type::kType));
      BOWLINE_RETURN_IF_ERROR(all.ReduceScatter(stream, scatter, Type::kType, op));
      BOWLINE_RETURN_IF_ERROR(all.AllToAll(stream, exchange, Type::kType));
      // Of one member there is none.
      if (n > 1) {
        BOWLINE_RETURN_IF_ERROR(all.Permute(stream, permute, Type::kType, static_cast<uint16_t>(shift)));
      }
      return stream.Synchronize();
    });
    Vectors<T> want_reduced(n, std::vector<T>(total + 1, guard)), want_scattered = want_reduced, want_in_place = small;
    Vectors<T> want_gathered(n, std::vector<T>(n * total + 1, guard)), want_exchanged = want_gathered,
                                                                       want_permuted = want_reduced;
    size_t first = 0;
    for (size_t count : counts) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t r = 0; r < n; ++r) {
          want_in_place[r][first + i] = want_reduced[r][first + i] = Reduced(small, first + i, op);
          if (n > 1) want_permuted[(r + shift) % n][first + i] = small[r][first + i];
          want_scattered[r][first + i] = Reduced(large, n * first + r * count + i, op);
          for (size_t from = 0; from < n; ++from) {
            want_gathered[r][n * first + from * count + i] = small[from][first + i];
            want_exchanged[r][n * first + from * count + i] = large[from][n * first + r * count + i];
          }
        }
      }
      first += count;
    }
    EXPECT_TRUE(reduced == want_reduced);
    EXPECT_TRUE(in_place == want_in_place);
    EXPECT_TRUE(gathered == want_gathered);
    EXPECT_TRUE(scattered == want_scattered);
    EXPECT_TRUE(exchanged == want_exchanged);
    EXPECT_TRUE(permuted == want_permuted) << "shift " << shift;
  }

  std::mt19937_64 random_{TestSeed()};
};

using Types = ::testing::Types<F32, F64, Bf16, F16, I32, I64>;
TYPED_TEST_SUITE(Collectives, Types);

TYPED_TEST(Collectives, EqualTheScalarReference) {
  for (int ranks : testing::SizesToTest()) {
    for (hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
      World world(ranks, testing::kLong, {}, mode);
      for (int round = 0; round < 6; ++round) {
        const std::vector<size_t> counts = this->RandomCounts();
        SCOPED_TRACE(::testing::Message() << ranks << " ranks, counts " << ::testing::PrintToString(counts));
        this->CheckAll(world, counts, round % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax);
      }
    }
  }
}

TYPED_TEST(Collectives, EqualTheScalarReferenceOnManyElements) {
  World world(3);
  this->CheckAll(world, {(size_t{1} << 20) + 7}, ReduceOp::kSum);
}

TEST(Communicator, PermutesEveryType) {
  constexpr int kRanks = 4;
  constexpr size_t kCount = 77;
  World world(kRanks);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI64, DType::kI32, DType::kU16,
                            DType::kI8, DType::kU8, DType::kBool}) {
    SCOPED_TRACE(std::string(kernels::NameOf(dtype)));
    const size_t bytes = kCount * kernels::SizeOf(dtype);
    for (uint16_t shift = 1; shift < kRanks; ++shift) {
      Vectors<uint8_t> send(kRanks), receive(kRanks, std::vector<uint8_t>(bytes + 1, 77));
      for (size_t r = 0; r < kRanks; ++r) {
        for (size_t i = 0; i < bytes; ++i) send[r].push_back(static_cast<uint8_t>(i + 60 * r));
      }
      world.RunOk([&](int rank) {
        const auto r = static_cast<size_t>(rank);
        return world.all(rank).Permute(world.stream(rank), {{send[r].data(), receive[r].data(), kCount}}, dtype, shift);
      });
      for (size_t r = 0; r < kRanks; ++r) {
        std::vector<uint8_t> want = send[(r + kRanks - shift) % kRanks];
        want.push_back(77);
        EXPECT_EQ(receive[r], want) << "rank " << r << ", shift " << shift;
      }
    }
  }
}

TEST(Communicator, Bf16IsSummedInF32AndRoundedOnce) {
  constexpr int kRanks = 5;
  World world(kRanks);
  // 256 + 4 * 0.5: each sum in bf16 would be 256 again, whose neighbour is 258.
  std::vector<std::vector<uint16_t>> values(kRanks, std::vector<uint16_t>(3, F32ToBf16(0.5f)));
  values[0].assign(3, F32ToBf16(256));
  world.RunOk([&](int rank) {
    uint16_t* own = values[static_cast<size_t>(rank)].data();
    return world.all(rank).AllReduce(world.stream(rank), {{own, own, 3}}, DType::kBF16, ReduceOp::kSum);
  });
  for (const auto& rank : values) EXPECT_THAT(rank, ::testing::Each(F32ToBf16(258)));
}

TEST(Communicator, TheMaximumOfANanIsANan) {
  for (int where = 0; where < 3; ++where) {
    World world(3);
    std::vector<float> values = {1, -2, 3};
    values[static_cast<size_t>(where)] = std::numeric_limits<float>::quiet_NaN();
    world.RunOk([&](int rank) {
      float* own = &values[static_cast<size_t>(rank)];
      return world.all(rank).AllReduce(world.stream(rank), {{own, own, 1}}, DType::kF32, ReduceOp::kMax);
    });
    for (float value : values) EXPECT_NE(value, value);
  }
}

TEST(Communicator, GathersAndScattersInPlace) {
  constexpr size_t kRanks = 4, kCount = 129;
  World world(kRanks);
  std::vector<std::vector<float>> gather(kRanks, std::vector<float>(kRanks * kCount, -1)), scatter = gather;
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kRanks * kCount; ++i) scatter[r][i] = static_cast<float>(r * 1000 + i);
    for (size_t i = 0; i < kCount; ++i) gather[r][r * kCount + i] = static_cast<float>(r * kCount + i);
  }
  world.RunOk([&](int rank) -> absl::Status {
    const auto r = static_cast<size_t>(rank);
    float *own = &gather[r][r * kCount], *part = &scatter[r][r * kCount];
    BOWLINE_RETURN_IF_ERROR(
        world.all(rank).AllGather(world.stream(rank), {{own, gather[r].data(), kCount}}, DType::kF32));
    return world.all(rank).ReduceScatter(world.stream(rank), {{scatter[r].data(), part, kCount}}, DType::kF32,
                                         ReduceOp::kSum);
  });
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kRanks * kCount; ++i) ASSERT_EQ(gather[r][i], static_cast<float>(i));
    for (size_t i = r * kCount; i < (r + 1) * kCount; ++i) ASSERT_EQ(scatter[r][i], static_cast<float>(6000 + 4 * i));
  }
}

TEST(Communicator, SendsAreReceivedInOrder) {
  for (hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    constexpr int kRanks = 5, kRounds = 50;
    World world(kRanks, testing::kLong, {}, mode);
    // Around a ring: rank 0 sends first, the others pass on the received values, plus one.
    std::vector<std::vector<int32_t>> values(kRanks, std::vector<int32_t>(3, 0));
    world.RunOk([&](int rank) -> absl::Status {
      const int next = (rank + 1) % kRanks, previous = (rank + kRanks - 1) % kRanks;
      int32_t* own = values[static_cast<size_t>(rank)].data();
      testing::PointerCommunicator& all = world.all(rank);
      hal::Stream& stream = world.stream(rank);
      const std::vector<Piece> out = {{own, nullptr, 1}, {own + 1, nullptr, 2}};
      const std::vector<Piece> in = {{nullptr, own, 1}, {nullptr, own + 1, 2}};
      for (int round = 0; round < kRounds; ++round) {
        if (rank == 0) BOWLINE_RETURN_IF_ERROR(all.Send(stream, out, DType::kI32, next));
        BOWLINE_RETURN_IF_ERROR(all.Receive(stream, in, DType::kI32, previous));
        if (rank != 0) {
          BOWLINE_RETURN_IF_ERROR(stream.Synchronize());
          for (int i = 0; i < 3; ++i) own[i] += i + 1;
          BOWLINE_RETURN_IF_ERROR(all.Send(stream, out, DType::kI32, next));
        }
      }
      return stream.Synchronize();
    });
    EXPECT_THAT(values[0], ::testing::ElementsAre(200, 400, 600));
  }
}

TEST(Communicator, ASendEndsOnlyWhenItIsReceived) {
  World world(2);
  std::atomic<bool> received{false};
  float value = 3, got = 0;
  world.RunOk([&](int rank) -> absl::Status {
    if (rank == 0) {
      BOWLINE_RETURN_IF_ERROR(world.all(0).Send(world.stream(0), {{&value, nullptr, 1}}, DType::kF32, 1));
      EXPECT_TRUE(received);
      return absl::OkStatus();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    received = true;
    return world.all(1).Receive(world.stream(1), {{nullptr, &got, 1}}, DType::kF32, 0);
  });
  EXPECT_EQ(got, 3);
}

TEST(Communicator, ABarrierWaitsForAll) {
  World world(4);
  std::atomic<int> there{0};
  world.RunOk([&](int rank) -> absl::Status {
    for (int round = 1; round <= 50; ++round) {
      if (rank == round % 4) std::this_thread::yield();
      ++there;
      BOWLINE_RETURN_IF_ERROR(world.all(rank).Barrier(world.stream(rank)));
      EXPECT_GE(there, 4 * round);
    }
    return absl::OkStatus();
  });
}

TEST(Communicator, RowsAndColumnsOfAMeshAtTheSameTime) {
  constexpr int kRows = 2, kColumns = 4;
  World world(kRows * kColumns);
  std::vector<std::unique_ptr<hal::Stream>> other_streams;
  for (int rank = 0; rank < world.size(); ++rank) {
    other_streams.push_back(*world.device(rank).CreateStream(hal::StreamMode::kWorker));
  }
  constexpr size_t kCount = 777;
  std::vector<std::vector<float>> by_row(8, std::vector<float>(kCount)), by_column = by_row;
  world.RunOk([&](int rank) -> absl::Status {
    const int row = rank / kColumns, column = rank % kColumns;
    std::vector<int> in_row, in_column;
    for (int c = 0; c < kColumns; ++c) in_row.push_back(row * kColumns + c);
    for (int r = kRows - 1; r >= 0; --r) in_column.push_back(r * kColumns + column);  // an order of its own
    BOWLINE_ASSIGN_OR_RETURN(const auto across, world.Create(rank, absl::StrCat("row", row), in_row));
    BOWLINE_ASSIGN_OR_RETURN(const auto down, world.Create(rank, absl::StrCat("column", column), in_column));
    EXPECT_EQ(across->rank(), column);
    EXPECT_EQ(down->rank(), kRows - 1 - row);
    auto &r = by_row[static_cast<size_t>(rank)], &c = by_column[static_cast<size_t>(rank)];
    hal::Stream& worker = *other_streams[static_cast<size_t>(rank)];
    for (int round = 0; round < 20; ++round) {
      r.assign(kCount, static_cast<float>(rank + 1));
      c.assign(kCount, static_cast<float>(rank + 1));
      BOWLINE_RETURN_IF_ERROR(across->AllReduce(worker, {{r.data(), r.data(), kCount}}, DType::kF32, ReduceOp::kSum));
      BOWLINE_RETURN_IF_ERROR(
          down->AllReduce(world.stream(rank), {{c.data(), c.data(), kCount}}, DType::kF32, ReduceOp::kSum));
      BOWLINE_RETURN_IF_ERROR(worker.Synchronize());
      EXPECT_THAT(r, ::testing::Each(row == 0 ? 10.0f : 26.0f));
      EXPECT_THAT(c, ::testing::Each(static_cast<float>(2 * column + 6)));
    }
    return absl::OkStatus();
  });
}

TEST(Communicator, GivesTheSameBitsOnEveryRankAndInEveryRun) {
  constexpr size_t kRanks = 7, kCount = 10007;
  std::mt19937_64 random(TestSeed());
  std::vector<std::vector<float>> send(kRanks, std::vector<float>(kCount));
  for (auto& rank : send) {
    // Of very different magnitudes, so that another order would give other bits.
    for (float& value : rank) {
      value = std::ldexp(std::normal_distribution<float>()(random), static_cast<int>(random() % 24));
    }
  }
  std::vector<float> first;
  for (int run = 0; run < 20; ++run) {
    World world(kRanks);
    std::vector<std::vector<float>> receive(kRanks, std::vector<float>(kCount));
    world.RunOk([&](int rank) {
      const auto r = static_cast<size_t>(rank);
      std::this_thread::sleep_for(std::chrono::microseconds((run * 7 + rank * 13) % 11 * 50));
      return world.all(rank).AllReduce(world.stream(rank), {{send[r].data(), receive[r].data(), kCount}}, DType::kF32,
                                       ReduceOp::kSum);
    });
    if (run == 0) first = receive[0];
    for (const auto& rank : receive) {
      ASSERT_EQ(std::memcmp(rank.data(), first.data(), kCount * sizeof(float)), 0) << "run " << run;
    }
  }
}

}  // namespace
}  // namespace bowline
