#include "runtime/base/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

class AvailableMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t Available() const { return AvailableMemory(root_.path()); }

  TempDirectory root_;
};

TEST_F(AvailableMemoryTest, IsWhatTheMachineHas) {
  Write("proc/meminfo", "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   4000 kB\n");
  EXPECT_EQ(Available(), 4000 * 1024);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Available(), 4000 * 1024);
}

TEST_F(AvailableMemoryTest, IsNoMoreThanTheGroupsMayHave) {
  Write("proc/meminfo", "MemAvailable:   4000 kB\n");
  Write("proc/self/cgroup", "12:memory:/other\n0::/a/b\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("sys/fs/cgroup/a/memory.max", "9000000\n");
  EXPECT_EQ(Available(), 4000 * 1024);
  Write("sys/fs/cgroup/a/memory.max", "3000000\n");
  EXPECT_EQ(Available(), 3000000);
  Write("sys/fs/cgroup/memory.max", "2000000\n");
  EXPECT_EQ(Available(), 2000000);
  Write("sys/fs/cgroup/a/b/memory.max", "1000000\n");
  EXPECT_EQ(Available(), 1000000);
}

TEST_F(AvailableMemoryTest, LacksWhatAGroupUsesButForCachedFiles) {
  Write("proc/self/cgroup", "0::/a\n");
  Write("sys/fs/cgroup/a/memory.max", "5000000\n");
  Write("sys/fs/cgroup/a/memory.current", "2000000\n");
  EXPECT_EQ(Available(), 3000000);
  Write("sys/fs/cgroup/a/memory.stat", "anon 500000\nfile 1500000\n");
  EXPECT_EQ(Available(), 4500000);
  Write("sys/fs/cgroup/a/memory.current", "7000000\n");
  EXPECT_EQ(Available(), 1);
}

TEST_F(AvailableMemoryTest, IsNotKnownWhereNobodySaysIt) {
  EXPECT_EQ(Available(), 0);
  Write("proc/meminfo", "MemTotal:       8000 kB\nMemAvailable:\n");
  EXPECT_EQ(Available(), 0);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "5000\n");
  EXPECT_EQ(Available(), 5000);
}

}  // namespace
}  // namespace bowline
