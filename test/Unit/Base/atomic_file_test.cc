#include "runtime/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AtomicFileTest, AppearsCompleteOnCommit) {
  const TempDirectory directory;
  auto file = AtomicFile::Create(directory / "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append("hello ").ok());
  ASSERT_TRUE(file->Append("world").ok());
  const uint8_t capital = 'H';
  ASSERT_TRUE(file->OverwriteAt(0, {&capital, 1}).ok());
  EXPECT_EQ(file->size(), 11u);
  EXPECT_FALSE(std::filesystem::exists(directory / "f"));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadWholeFile(directory / "f"), "Hello world");
  EXPECT_THAT(directory.List(), ElementsAre("f"));
  EXPECT_FALSE(file->Commit().ok());
  EXPECT_FALSE(file->Append("x").ok());
}

TEST(AtomicFileTest, WithoutCommitNothingChanges) {
  const TempDirectory directory;
  {
    ASSERT_TRUE(AtomicFile::Create(directory / "f")->Append("half").ok());
  }
  EXPECT_THAT(directory.List(), IsEmpty());
  WriteWholeFile(directory / "f", "old");
  {
    ASSERT_TRUE(AtomicFile::Create(directory / "f")->Append("half").ok());
  }
  EXPECT_THAT(directory.List(), ElementsAre("f"));
  EXPECT_EQ(ReadWholeFile(directory / "f"), "old");
}

TEST(AtomicFileTest, ReplacesAFileAndKeepsItsMode) {
  const TempDirectory directory;
  WriteWholeFile(directory / "f", "old");
  ASSERT_EQ(::chmod((directory / "f").c_str(), 0640), 0);
  ASSERT_TRUE(WriteFileAtomically(directory / "f", "new").ok());
  EXPECT_EQ(ReadWholeFile(directory / "f"), "new");
  struct stat info;
  ASSERT_EQ(::stat((directory / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(AtomicFileTest, ANewFileReplacesNothing) {
  const TempDirectory directory;
  {
    auto first = AtomicFile::Create(directory / "f"), second = AtomicFile::Create(directory / "f");
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_TRUE(first->Append("first").ok() && second->Append("second").ok());
    EXPECT_TRUE(first->CommitNewUnsynced().ok());
    EXPECT_EQ(second->CommitNewUnsynced().code(), absl::StatusCode::kAlreadyExists);
  }
  EXPECT_EQ(ReadWholeFile(directory / "f"), "first");
  EXPECT_THAT(directory.List(), ElementsAre("f"));
}

TEST(AtomicFileTest, FollowsSymbolicLinks) {
  const TempDirectory directory;
  std::filesystem::create_directory(directory / "sub");
  std::filesystem::create_symlink("sub/target", directory / "link");  // dangling
  ASSERT_TRUE(WriteFileAtomically(directory / "link", "one").ok());
  EXPECT_EQ(ReadWholeFile(directory / "sub/target"), "one");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  std::filesystem::create_symlink("loop", directory / "loop");
  EXPECT_EQ(ExitCode(AtomicFile::Create(directory / "loop").status()), 1);
}

TEST(AtomicFileTest, UnusableTargetsAreRefused) {
  const TempDirectory directory;
  const auto missing = AtomicFile::Create(directory / "none/f").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("cannot write '" + directory.path() + "/none/f'"));
  EXPECT_THAT(std::string(AtomicFile::Create(directory.path()).status().message()), HasSubstr("it is a directory"));
  // A rename would replace the device.
  EXPECT_THAT(std::string(AtomicFile::Create("/dev/null").status().message()), HasSubstr("no regular file"));
  EXPECT_EQ(ExitCode(AtomicFile::Create("").status()), 1);
  EXPECT_EQ(ExitCode(AtomicFile::Create(directory / "new/").status()), 1);
  EXPECT_EQ(ExitCode(AtomicFile::Create(directory / std::string(300, 'x')).status()), 1);
  WriteWholeFile(directory / "file", "");
  EXPECT_EQ(ExitCode(AtomicFile::Create(directory / "file/f").status()), 1);
  EXPECT_THAT(directory.List(), ElementsAre("file"));
}

TEST(AtomicFileTest, TheLongestNameWorks) {
  const TempDirectory directory;
  ASSERT_TRUE(WriteFileAtomically(directory / std::string(255, 'x'), "1").ok());
}

// A process with a file size limit fails as on a full disk: a short write, then an error.
TEST(AtomicFileTest, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const TempDirectory directory;
  WriteWholeFile(directory / "f", "old");
  const auto write_too_much = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {10'000, 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = AtomicFile::Create(directory / "f");
    const absl::Status status = file->Append(std::string(20'000, 'x'));
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    if (file->Commit().ok()) std::exit(99);
    {
      auto destroyed = std::move(file);
    }
    std::exit(ExitCode(status));
  };
  EXPECT_EXIT(write_too_much(), ::testing::ExitedWithCode(3), "cannot write '.*/f': File too large; raise the file");
  EXPECT_THAT(directory.List(), ElementsAre("f"));
  EXPECT_EQ(ReadWholeFile(directory / "f"), "old");
}

TEST(AtomicFileTest, SpellingsOfOneFile) {
  const TempDirectory directory;
  std::filesystem::create_directory(directory / "sub");
  std::filesystem::create_symlink("sub/f", directory / "link");  // dangling
  std::filesystem::create_symlink("sub", directory / "folder");
  std::filesystem::create_symlink("loop", directory / "loop");
  const std::string file = directory / "sub/f";
  for (const bool exists : {false, true}) {
    if (exists) WriteWholeFile(file, "");
    for (const char* spelling :
         {"sub/f", "sub/./f", "sub//f", "sub/../sub/f", "link", "folder/f", "./folder/../link"}) {
      EXPECT_TRUE(AreSameFile(file, directory / spelling)) << spelling;
      EXPECT_TRUE(AreSameFile(directory / spelling, file)) << spelling;
    }
    for (const char* other : {"f", "sub/g", "sub", "loop", "none/f"}) {
      EXPECT_FALSE(AreSameFile(file, directory / other)) << other;
    }
    EXPECT_TRUE(AreSameFile(std::filesystem::relative(file), file));
  }
  EXPECT_TRUE(AreSameFile("new", "./new"));
  // Renaming the new file over one of two hard links leaves the other as it was.
  std::filesystem::create_hard_link(file, directory / "hard");
  EXPECT_FALSE(AreSameFile(file, directory / "hard"));
}

TEST(AtomicFileTest, DirectoryOf) {
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("b"), ".");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("/a/b/c"), "/a/b");
}

}  // namespace
}  // namespace bowline
