// Emulated links: how long operations take, that other streams compute meanwhile, and that nothing is allocated.

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>

#include "test/Unit/Runtime/allocation_counter.h"
#include "test/Unit/Runtime/comm_fixture.h"

namespace bowline {
namespace {

using hal::ReduceOp;
using kernels::DType;
using std::chrono::duration;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::World;

// Of the calling thread, in seconds.
double ProcessorTime() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Link, OperationsTakeTheTimeOfARing) {
  constexpr int kRanks = 4;
  constexpr size_t kCount = 1000;  // 4000 bytes
  constexpr int kRounds = 5;
  const LinkOptions link = {.bandwidth = 400e3, .latency = std::chrono::milliseconds(10)};
  World world(kRanks, testing::kLong, link);
  std::vector<std::vector<float>> send(kRanks, std::vector<float>(kRanks * kCount)), receive = send;
  using Call = std::function<absl::Status(testing::PointerCommunicator&, hal::Stream&, hal::HostPiece)>;
  const struct {
    const char* name;
    Call call;
    double seconds;
  } cases[] = {
      {"all_reduce",
       [](auto& all, auto& stream, hal::HostPiece piece) {
         return all.AllReduce(stream, {piece}, DType::kF32, ReduceOp::kSum);
       },
       60e-3 + 4000 * 1.5 / 400e3},
      {"all_gather",
       [](auto& all, auto& stream, hal::HostPiece piece) { return all.AllGather(stream, {piece}, DType::kF32); },
       30e-3 + 16000 * 0.75 / 400e3},
      {"reduce_scatter",
       [](auto& all, auto& stream, hal::HostPiece piece) {
         return all.ReduceScatter(stream, {piece}, DType::kF32, ReduceOp::kMax);
       },
       30e-3 + 16000 * 0.75 / 400e3},
      {"all_to_all",
       [](auto& all, auto& stream, hal::HostPiece piece) { return all.AllToAll(stream, {piece}, DType::kF32); },
       30e-3 + 16000 * 0.75 / 400e3},
      {"permute",
       [](auto& all, auto& stream, hal::HostPiece piece) { return all.Permute(stream, {piece}, DType::kF32, 3); },
       10e-3 + 4000 / 400e3},
      {"send and receive",
       [](auto& all, auto& stream, hal::HostPiece piece) {
         if (all.rank() % 2 == 0) return all.Send(stream, {piece}, DType::kF32, all.rank() + 1);
         return all.Receive(stream, {piece}, DType::kF32, all.rank() - 1);
       },
       10e-3 + 4000 / 400e3},
      {"barrier", [](auto& all, auto& stream, hal::HostPiece) { return all.Barrier(stream); }, 60e-3},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    // Ranks that wait with the processor use its time in every round. A sleeping rank may be charged for others' work.
    double least = c.seconds;
    for (int round = 0; round < kRounds && least >= c.seconds / 2; ++round) {
      std::atomic<double> processor = 0;
      world.RunOk([&](int rank) {
        const auto r = static_cast<size_t>(rank);
        const auto start = steady_clock::now();
        const double before = ProcessorTime();
        const absl::Status status =
            c.call(world.all(rank), world.stream(rank), {send[r].data(), receive[r].data(), kCount});
        EXPECT_GE(duration<double>(steady_clock::now() - start).count(), c.seconds);
        processor += ProcessorTime() - before;
        return status;
      });
      least = std::min(least, processor.load());
    }
    EXPECT_LT(least, c.seconds / 2) << "waits with the processor";
  }
}

TEST(Link, TooSlowForTheTimeoutIsAnError) {
  World world(2, std::chrono::milliseconds(100), {.bandwidth = 1, .latency = {}});
  float values[2] = {};
  const auto results = world.Run([&](int rank) {
    return world.all(rank).AllReduce(world.stream(rank), {{&values[rank], &values[rank], 1}}, DType::kF32,
                                     ReduceOp::kSum);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the emulated link takes 4 s for all_reduce(sum) of 1 f32"));
  }
}

// Nobody may free memory that another still reads: an error elsewhere does not cut short operations with all members.
TEST(Link, WhatHasBegunIsFinishedAlthoughTheGroupBreaks) {
  float values[2] = {1, 2};
  const std::vector<int> pair = {0, 1};
  for (bool collective : {false, true}) {
    World broken(3);
    std::atomic<int> started{0};
    const auto results = broken.Run([&](int rank) -> absl::Status {
      const LinkOptions link = {.bandwidth = 0, .latency = std::chrono::seconds(1)};
      if (rank == 2) {
        while (started < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        broken.group(0).Abort(absl::AbortedError("enough"));
        return absl::OkStatus();
      }
      BOWLINE_ASSIGN_OR_RETURN(const auto two, broken.Create(rank, "two", pair, link));
      const auto start = steady_clock::now();
      ++started;
      hal::Stream& stream = broken.stream(rank);
      const hal::HostPiece piece = {&values[rank], &values[rank], 1};
      const absl::Status first = collective  ? two->AllReduce(stream, {piece}, DType::kF32, ReduceOp::kSum)
                                 : rank == 0 ? two->Send(stream, {piece}, DType::kF32, 1)
                                             : two->Receive(stream, {piece}, DType::kF32, 0);
      EXPECT_GE(duration<double>(steady_clock::now() - start).count(), 1);
      EXPECT_TRUE(first.ok()) << first;
      return two->Barrier(stream);
    });
    EXPECT_EQ(results[0], absl::AbortedError("enough"));
    EXPECT_EQ(results[1], absl::AbortedError("enough"));
    EXPECT_EQ(values[1], collective ? 2 : 1);
  }
}

// The command of the first stream, as if it were a kernel, ends only when the operation of the other stream
// has; and that begins only when the command has.
TEST(Link, OverlapsWithComputeOnAnotherStream) {
  constexpr int kRanks = 2;
  const LinkOptions link = {.bandwidth = 0, .latency = std::chrono::milliseconds(10)};  // 20 ms for an all-reduce
  World world(kRanks, testing::kLong, link);
  struct Flags {
    std::promise<void> begun, over;

    static absl::Status Await(std::promise<void>& flag) {
      if (flag.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready) return absl::OkStatus();
      return absl::DeadlineExceededError("the streams do not run beside each other");
    }
  };
  const auto start = steady_clock::now();
  world.RunOk([&](int rank) -> absl::Status {
    const auto communication = *world.device(rank).CreateStream(hal::StreamMode::kWorker);
    Flags flags;
    const auto call = [&](absl::Status (*run)(Flags&)) {
      return hal::HostCall{
          [](const hal::HostCall& call) {
            return reinterpret_cast<absl::Status (*)(Flags&)>(call.parameters[0])(*static_cast<Flags*>(call.context));
          },
          &flags,
          {reinterpret_cast<uint64_t>(run)}};
    };
    BOWLINE_RETURN_IF_ERROR(communication->Call(call([](Flags& all) { return Flags::Await(all.begun); })));
    float value = 1;
    BOWLINE_RETURN_IF_ERROR(
        world.all(rank).AllReduce(*communication, {{&value, &value, 1}}, DType::kF32, ReduceOp::kSum));
    BOWLINE_RETURN_IF_ERROR(communication->Call(call([](Flags& all) {
      all.over.set_value();
      return absl::OkStatus();
    })));
    BOWLINE_RETURN_IF_ERROR(world.stream(rank).Call(call([](Flags& all) {
      all.begun.set_value();
      return Flags::Await(all.over);
    })));
    BOWLINE_RETURN_IF_ERROR(world.stream(rank).Synchronize());
    BOWLINE_RETURN_IF_ERROR(communication->Synchronize());
    EXPECT_EQ(value, 2);
    return absl::OkStatus();
  });
  EXPECT_GE(duration<double>(steady_clock::now() - start).count(), 0.020);
}

TEST(Loopback, AllocatesNothingInSteadyState) {
  if (!testing::CanCountHeapAllocations()) GTEST_SKIP() << "sanitizers bring their own allocator";
  for (hal::StreamMode mode : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    constexpr int kRanks = 3;
    constexpr size_t kCount = 100;
    World world(kRanks, testing::kLong, {.bandwidth = 1e12, .latency = std::chrono::nanoseconds(1)}, mode);
    std::vector<std::vector<float>> send(kRanks, std::vector<float>(kRanks * kCount, 1)), receive = send;
    uint64_t before = 0, after = 0;
    world.RunOk([&](int rank) -> absl::Status {
      const auto r = static_cast<size_t>(rank);
      testing::PointerCommunicator& all = world.all(rank);
      hal::Stream& stream = world.stream(rank);
      const auto event = *world.device(rank).CreateEvent();
      float *from = send[r].data(), *to = receive[r].data();
      const hal::HostPiece pieces[] = {{from, to, kCount / 2}, {from + 50, to + 50, kCount / 2}};
      for (int round = 0; round < 100; ++round) {
        BOWLINE_RETURN_IF_ERROR(all.AllReduce(stream, pieces, DType::kF32, ReduceOp::kSum));
        BOWLINE_RETURN_IF_ERROR(all.AllGather(stream, {{from, to, kCount}}, DType::kF32));
        BOWLINE_RETURN_IF_ERROR(all.ReduceScatter(stream, {{from, to, kCount}}, DType::kF32, ReduceOp::kMax));
        BOWLINE_RETURN_IF_ERROR(all.AllToAll(stream, {{from, to, kCount}}, DType::kF32));
        if (rank == 0) BOWLINE_RETURN_IF_ERROR(all.Send(stream, {{from, nullptr, 3}}, DType::kF32, 1));
        if (rank == 1) BOWLINE_RETURN_IF_ERROR(all.Receive(stream, {{nullptr, to, 3}}, DType::kF32, 0));
        BOWLINE_RETURN_IF_ERROR(stream.Record(*event));
        BOWLINE_RETURN_IF_ERROR(stream.Wait(*event));
        BOWLINE_RETURN_IF_ERROR(all.Barrier(stream));
        BOWLINE_RETURN_IF_ERROR(stream.Synchronize());
        // Between two barriers all ranks are at the same round; rank 0 looks.
        if (rank == 0 && round == 5) before = testing::HeapAllocations();
        if (rank == 0 && round == 95) after = testing::HeapAllocations();
        BOWLINE_RETURN_IF_ERROR(all.Barrier(stream));
        BOWLINE_RETURN_IF_ERROR(stream.Synchronize());
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(after, before);
    EXPECT_GT(before, 0u);
  }
}

}  // namespace
}  // namespace bowline
