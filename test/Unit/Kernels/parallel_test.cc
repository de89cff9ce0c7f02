#include "kernels/cpu/parallel/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/parallel/team.h"

namespace bowline::kernels {
namespace {

using Range = std::pair<int64_t, int64_t>;

// The chunks of a call, by where they begin; each was run once, and no member ran two at a time.
std::set<Range> Chunks(int threads, int64_t extent) {
  std::mutex mutex;
  std::set<Range> chunks;
  const int members = std::max(1, static_cast<int>(std::min<int64_t>(threads, extent)));
  std::vector<std::atomic<bool>> runs(static_cast<size_t>(members));
  ParallelLoop(threads).RunMembers(extent, [&](int member, int64_t begin, int64_t end) {
    ASSERT_GE(member, 0);
    ASSERT_LT(member, members);
    EXPECT_FALSE(runs[static_cast<size_t>(member)].exchange(true)) << "two calls have member " << member;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      EXPECT_TRUE(chunks.insert({begin, end}).second) << begin << " to " << end << " twice";
    }
    runs[static_cast<size_t>(member)] = false;
  });
  return chunks;
}

TEST(ParallelLoop, CoversEveryIndexOnceInBalancedChunks) {
  for (int threads : {-1, 0, 1, 2, 3, 8}) {
    for (int64_t extent : {-1, 0, 1, 2, 7, 8, 33, 1000}) {
      const std::set<Range> chunks = Chunks(threads, extent);
      const int64_t most = threads <= 1 ? 1 : ParallelLoop::kChunksPerThread * threads;
      ASSERT_EQ(chunks.size(), static_cast<size_t>(std::min(most, std::max<int64_t>(extent, 0))));
      int64_t next = 0;
      for (const auto& [begin, end] : chunks) {
        EXPECT_EQ(begin, next);
        EXPECT_GE(end - begin, extent / static_cast<int64_t>(chunks.size()));
        EXPECT_LE(end - begin, extent / static_cast<int64_t>(chunks.size()) + 1);
        next = end;
      }
      EXPECT_EQ(next, std::max<int64_t>(extent, 0));
    }
  }
}

TEST(ParallelLoop, ChunksDependOnArgumentsAlone) {
  const std::set<Range> first = Chunks(3, 100);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Chunks(3, 100), first);
}

TEST(ParallelLoop, MoreThreadsThanAShareHasChunksFor) {
  std::atomic<int64_t> sum = 0;
  ParallelLoop(64).Run(1'000'000, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 1'000'000);
}

TEST(ParallelLoop, OneThreadRunsInline) {
  const auto caller = std::this_thread::get_id();
  ParallelLoop(1).Run(100, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
}

TEST(ParallelLoop, TinyWorkRunsInlineAndMoreOfItOnMoreThreads) {
  const auto chunks = [](int threads, int64_t extent, double nanoseconds) {
    std::vector<std::atomic<int>> hits(extent);
    std::atomic<int> calls = 0;
    ParallelLoop(threads).Run(extent, nanoseconds, [&](int64_t begin, int64_t end) {
      ++calls;
      for (int64_t i = begin; i < end; ++i) ++hits[i];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    return calls.load();
  };
  EXPECT_EQ(chunks(4, 0, 1e9), 0);
  EXPECT_EQ(chunks(4, 1000, 0), 1);
  EXPECT_EQ(chunks(4, 1000, ParallelLoop::kChunkNanoseconds / 1000), 1);
  EXPECT_EQ(chunks(4, 1000, 2 * ParallelLoop::kChunkNanoseconds / 1000), 2);
  EXPECT_EQ(chunks(4, 1000, 3 * ParallelLoop::kChunkNanoseconds / 1000), 3);
  EXPECT_EQ(chunks(4, 1000, ParallelLoop::kChunkNanoseconds), 4 * ParallelLoop::kChunksPerThread);
  EXPECT_EQ(chunks(4, 1000, std::numeric_limits<double>::quiet_NaN()), 4 * ParallelLoop::kChunksPerThread);
  EXPECT_EQ(chunks(4, 3, 1e300), 3);
  EXPECT_EQ(chunks(1, 1000, 1e300), 1);
  const auto caller = std::this_thread::get_id();
  ParallelLoop(4).Run(1000, 0.1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ParallelLoop, CallsInsideABodyRunOnItsThread) {
  Team team(2);
  std::atomic<int> total = 0;
  team.Run(2, {8, 8}, [&](int, int64_t, int64_t) {
    const auto thread = std::this_thread::get_id();
    ParallelLoop(3).Run(9, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total, 8 * 9);
}

TEST(ParallelLoop, TeamsGrowAndShrink) {
  for (int threads : {2, 5, 3, 9, 1, 2}) {
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(Chunks(threads, 1000).size(), threads == 1 ? 1 : ParallelLoop::kChunksPerThread * threads);
  }
}

// As ranks do that are threads of one process.
TEST(ParallelLoop, ManyThreadsHaveTheirOwnTeams) {
  constexpr int kCallers = 8, kRegions = 300;
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(kCallers);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([caller, &sums] {
      const ParallelLoop loop(3);
      std::vector<int64_t> squares(100);
      for (int region = 0; region < kRegions; ++region) {
        loop.Run(100, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) squares[i] += i * caller;
        });
      }
      for (int64_t square : squares) sums[caller] += square;
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int caller = 0; caller < kCallers; ++caller) EXPECT_EQ(sums[caller], int64_t{caller} * kRegions * 99 * 50);
}

// Nothing that kernels link may bring another pool of threads, which would compete for the same processors.
TEST(ParallelLoop, NoOtherPoolOfThreadsIsLoaded) {
  std::vector<std::string> loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        static_cast<std::vector<std::string>*>(data)->push_back(info->dlpi_name);
        return 0;
      },
      &loaded);
  ASSERT_THAT(loaded, ::testing::Contains(::testing::HasSubstr("libc.so")));
  for (const char* name : {"libgomp", "libomp", "libiomp", "libdnnl", "libtbb"}) {
    EXPECT_THAT(loaded, ::testing::Not(::testing::Contains(::testing::HasSubstr(name))));
  }
}

}  // namespace
}  // namespace bowline::kernels
