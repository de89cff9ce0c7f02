#include "runtime/base/atomic_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/atomic_file.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void Save(const std::string& path, const std::string& content) {
  auto directory = AtomicDirectory::Create(path);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_TRUE(WriteFileAtomically(directory->staging_path() + "/f", content).ok());
  ASSERT_TRUE(directory->Commit().ok());
}

TEST(AtomicDirectoryTest, AppearsCompleteOnCommitAndReplacesTheOldOne) {
  const TempDirectory parent;
  Save(parent / "a/b/d", "one");
  EXPECT_EQ(ReadWholeFile(parent / "a/b/d/f"), "one");
  WriteWholeFile(parent / "a/b/d/extra", "");
  Save(parent / "a/b/d", "two");
  EXPECT_EQ(ReadWholeFile(parent / "a/b/d/f"), "two");
  EXPECT_FALSE(std::filesystem::exists(parent / "a/b/d/extra"));
  std::filesystem::rename(parent / "a/b/d", parent / "d");
  std::filesystem::remove(parent / "a/b");  // fails unless empty
  std::filesystem::remove(parent / "a");
  EXPECT_THAT(parent.List(), ElementsAre("d"));
}

TEST(AtomicDirectoryTest, WithoutCommitNothingIsLeft) {
  const TempDirectory parent;
  {
    auto directory = AtomicDirectory::Create(parent / "d");
    ASSERT_TRUE(directory.ok());
    WriteWholeFile(directory->staging_path() + "/f", "half");
    EXPECT_THAT(parent.List(), SizeIs(1));
  }
  EXPECT_THAT(parent.List(), SizeIs(0));
}

TEST(AtomicDirectoryTest, LeftoversOfDeadWritersGoAndThoseOfLiveOnesStay) {
  const TempDirectory parent;
  std::filesystem::create_directories(parent / ".d.tmp-1-0123abcd0");
  WriteWholeFile(parent / ".d.tmp-1-0123abcd0/f", "half");
  auto live = AtomicDirectory::Create(parent / "d");
  ASSERT_TRUE(live.ok());
  EXPECT_FALSE(std::filesystem::exists(parent / ".d.tmp-1-0123abcd0"));
  Save(parent / "e", "one");
  EXPECT_TRUE(std::filesystem::exists(live->staging_path()));
  EXPECT_TRUE(live->Commit().ok());
}

TEST(AtomicDirectoryTest, DirectoriesOfOtherProgramsStay) {
  const TempDirectory parent;
  const std::vector<std::string> foreign = {
      ".env.tmp-1", ".tmp-build", ".d.tmp-1-2", ".d.tmp-x-0123abcd0", ".d.tmp-1-0123abcd0-old", "d.tmp-1-0123abcd0"};
  for (const std::string& name : foreign) std::filesystem::create_directories(parent / name);
  Save(parent / "e", "one");
  for (const std::string& name : foreign) EXPECT_TRUE(std::filesystem::exists(parent / name)) << name;
}

// The directory that remains when a writer dies between the two renames that a file system without exchange needs.
TEST(AtomicDirectoryTest, ADirectorySetAsideIsFound) {
  const TempDirectory parent;
  std::filesystem::create_directory(parent / ".d.replaced");
  EXPECT_EQ(*ResolveDirectory(parent / "d"), parent / ".d.replaced");
  Save(parent / "d", "one");
  EXPECT_EQ(*ResolveDirectory(parent / "d"), parent / "d");
  EXPECT_THAT(parent.List(), ElementsAre("d"));
  EXPECT_TRUE(absl::IsNotFound(ResolveDirectory(parent / "none").status()));
}

TEST(AtomicDirectoryTest, SomethingElseWithTheNameIsRefused) {
  const TempDirectory parent;
  WriteWholeFile(parent / "f", "keep");
  EXPECT_THAT(std::string(AtomicDirectory::Create(parent / "f").status().message()), HasSubstr("something else"));
  EXPECT_EQ(ExitCode(AtomicDirectory::Create(parent / "f/d").status()), 1);
  EXPECT_EQ(ReadWholeFile(parent / "f"), "keep");
}

}  // namespace
}  // namespace bowline
