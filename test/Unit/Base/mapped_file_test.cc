#include "runtime/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

TEST(MappedFileTest, MapsTheWholeFile) {
  const TempDirectory directory;
  const std::string content(100'003, 'q');
  WriteWholeFile(directory / "f", content);
  auto file = MappedFile::Open(directory / "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(TextOf(*file), content);
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(TextOf(moved), content);
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, OutlivesTheReplacementOfTheFile) {
  const TempDirectory directory;
  WriteWholeFile(directory / "f", "old");
  const auto file = MappedFile::Open(directory / "f");
  WriteWholeFile(directory / "g", "newer");
  std::filesystem::rename(directory / "g", directory / "f");
  EXPECT_EQ(TextOf(*file), "old");
}

TEST(MappedFileTest, AnEmptyFileIsEmpty) {
  const TempDirectory directory;
  WriteWholeFile(directory / "f", "");
  const auto file = MappedFile::Open(directory / "f");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, WhatIsNoRegularFileIsRefused) {
  const TempDirectory directory;
  const auto missing = MappedFile::Open(directory / "none").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr(directory / "none"));
  const auto folder = MappedFile::Open(directory.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(folder));
  EXPECT_THAT(std::string(folder.message()), HasSubstr("is a directory"));
  // Neither may a pipe without a writer hang.
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(MappedFile::Open(directory / "pipe").status().message()), HasSubstr("not a regular file"));
  EXPECT_TRUE(absl::IsInvalidArgument(MappedFile::Open("/dev/null").status()));
}

}  // namespace
}  // namespace bowline
