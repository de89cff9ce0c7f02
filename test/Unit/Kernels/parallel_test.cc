#include "kernels/cpu/parallel.h"

#include <gtest/gtest.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace bowline::kernels {
namespace {

TEST(ParallelFor, CoversEveryIndexOnceInBalancedChunks) {
  for (int threads : {-1, 0, 1, 2, 3, 8}) {
    for (int64_t extent : {0, 1, 2, 7, 8, 1000}) {
      std::vector<std::atomic<int>> hits(extent), chunks(8);
      std::atomic<int64_t> smallest = extent, largest = 0;
      ParallelForChunks(threads, extent, [&](int chunk, int64_t begin, int64_t end) {
        ++chunks[chunk];
        for (int64_t i = begin; i < end; ++i) ++hits[i];
        int64_t seen = smallest;
        while (end - begin < seen && !smallest.compare_exchange_weak(seen, end - begin)) {
        }
        seen = largest;
        while (end - begin > seen && !largest.compare_exchange_weak(seen, end - begin)) {
        }
      });
      for (const auto& hit : hits) EXPECT_EQ(hit, 1);
      for (const auto& chunk : chunks) EXPECT_LE(chunk, 1);
      if (extent > 0) EXPECT_LE(largest - smallest, 1);
    }
  }
}

TEST(ParallelFor, OneThreadRunsInline) {
  const auto caller = std::this_thread::get_id();
  ParallelFor(1, 100, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
}

TEST(ParallelFor, TinyWorkRunsInlineAndMoreOfItOnMoreThreads) {
  const auto chunks = [](int threads, int64_t extent, double nanoseconds) {
    std::vector<std::atomic<int>> hits(extent);
    std::atomic<int> calls = 0;
    ParallelFor(threads, extent, nanoseconds, [&](int64_t begin, int64_t end) {
      ++calls;
      for (int64_t i = begin; i < end; ++i) ++hits[i];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    return calls.load();
  };
  EXPECT_EQ(chunks(4, 0, 1e9), 0);
  EXPECT_EQ(chunks(4, 1000, 0), 1);
  EXPECT_EQ(chunks(4, 1000, kChunkNanoseconds / 1000), 1);
  EXPECT_EQ(chunks(4, 1000, 2 * kChunkNanoseconds / 1000), 2);
  EXPECT_EQ(chunks(4, 1000, 3 * kChunkNanoseconds / 1000), 3);
  EXPECT_EQ(chunks(4, 1000, kChunkNanoseconds), 4);
  EXPECT_EQ(chunks(4, 3, 1e300), 3);
  EXPECT_EQ(chunks(1, 1000, 1e300), 1);
  const auto caller = std::this_thread::get_id();
  ParallelFor(4, 1000, 0.1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ParallelFor, NestedRegionsStillCoverEverything) {
  std::atomic<int> total = 0;
  ParallelFor(2, 2, [&](int64_t, int64_t) {
    ParallelFor(3, 9, [&](int64_t begin, int64_t end) { total += static_cast<int>(end - begin); });
  });
  EXPECT_EQ(total, 18);
}

// A second OpenMP runtime would mean a second pool of threads.
TEST(ThreadPool, OneOpenMpRuntimeIsLoaded) {
  std::vector<std::string> runtimes;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        for (const char* name : {"libgomp", "libomp", "libiomp"}) {
          if (std::strstr(info->dlpi_name, name))
            static_cast<std::vector<std::string>*>(data)->push_back(info->dlpi_name);
        }
        return 0;
      },
      &runtimes);
  ASSERT_EQ(runtimes.size(), 1u);
  EXPECT_NE(runtimes[0].find("libgomp.so.1"), std::string::npos) << runtimes[0];
}

// Ends with 77 if the program was not started again, else with 0, by the arguments that it was started with.
[[noreturn]] void RestartAndList(const char* name, const char* value) {
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  if (name != nullptr) setenv(name, value, 1);
  std::string program = "kernels-test", list = "--gtest_list_tests";
  std::vector<char*> arguments = {program.data(), list.data(), nullptr};
  RestartWithShortWaits(arguments.data());
  std::_Exit(77);
}

// Google Test runs suites of this name first, before there are threads that a fork would lose.
TEST(RestartWithShortWaitsDeathTest, KeepsArgumentsAndRespectsTheEnvironment) {
  EXPECT_EXIT(RestartAndList(nullptr, nullptr), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(RestartAndList("OMP_WAIT_POLICY", "active"), ::testing::ExitedWithCode(77), "");
  EXPECT_EXIT(RestartAndList("GOMP_SPINCOUNT", "5"), ::testing::ExitedWithCode(77), "");
}

}  // namespace
}  // namespace bowline::kernels
