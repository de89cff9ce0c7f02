#include "runtime/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "runtime/base/mapping_faults.h"
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

// Reads every file, of which one was truncated.
void ReadTruncated(const std::string& truncated, const std::vector<std::string>& paths) {
  ReportMappingFaults("some-tool");
  std::vector<MappedFile> files;
  for (const std::string& path : paths) files.push_back(MappedFile::Open(path).value());
  std::filesystem::resize_file(truncated, 0);
  for (const MappedFile& file : files) TextOf(file);
}

TEST(MappedFileTest, ATruncatedFileIsNamed) {
  const TempDirectory directory;
  const std::string content(20'000, 'q');
  std::vector<std::string> paths;
  for (int i = 0; i < 1500; ++i) {
    paths.push_back(directory / absl::StrCat("f", i));
    WriteWholeFile(paths.back(), content);
  }
  EXPECT_EXIT(ReadTruncated(paths[700], paths), ::testing::ExitedWithCode(3),
              "^some-tool: error: '.*/f700' cannot be read any more: it was made shorter");
  // Beyond the table, and without a mapping.
  EXPECT_EXIT(ReadTruncated(paths[1400], paths), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(ReportMappingFaults("some-tool"); std::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
  // Files that were closed leave their places to others.
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(MappedFile::Open(paths[0]).ok());
  const std::string long_name = directory / std::string(250, 'n');
  WriteWholeFile(long_name, content);
  EXPECT_EXIT(ReadTruncated(long_name, {long_name}), ::testing::ExitedWithCode(3), "nnn' cannot be read any more");
}

void ReadTruncatedAndSurvive(const std::string& path) {
  ReportMappingFaults("some-tool");
  MappedFile file = MappedFile::Open(path).value();
  file.SurviveFaults();
  const bool whole = TextOf(file).back() == 'q' && file.CheckRead().ok();
  std::filesystem::resize_file(path, 5000);
  const MappedFile moved = std::move(file);
  const std::string text = TextOf(moved);
  const absl::Status lost = moved.CheckRead();
  // The page that the file still has a part of is that part and zeros.
  const bool zeros = text[4999] == 'q' && text[5000] == 0 && text[19'999] == 0;
  std::fprintf(stderr, "%s", lost.ToString().c_str());
  std::_Exit(whole && zeros ? 17 : 18);
}

TEST(MappedFileTest, AReaderThatAsksSurvives) {
  const TempDirectory directory;
  WriteWholeFile(directory / "f", std::string(20'000, 'q'));
  EXPECT_EXIT(ReadTruncatedAndSurvive(directory / "f"), ::testing::ExitedWithCode(17),
              "^UNAVAILABLE: '.*/f' cannot be read any more: it was made shorter");
}

TEST(MappedFileTest, GitLfsPointersAreNamed) {
  const TempDirectory directory;
  const std::string rest =
      "\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
  const auto open = [&](const std::string& content) {
    WriteWholeFile(directory / "model.safetensors", content);
    return MappedFile::Open(directory / "model.safetensors").status();
  };
  for (const char* version : {"version https://git-lfs.github.com/spec/v1", "version https://hawser.github.com/spec/v1",
                              "version https://git-lfs.github.com/spec/v1\r"}) {
    const absl::Status status = open(version + rest);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("model.safetensors' is a Git LFS pointer, not the file itself; run `git lfs pull`"));
  }
  EXPECT_FALSE(open("version https://git-lfs.github.com/spec/v1").ok());
  // Texts about pointers are none.
  for (const std::string& text : {"# version https://git-lfs.github.com/spec/v1" + rest, "version 1" + rest,
                                  "version https://git-lfs.github.com/spec/v1" + rest + std::string(1024, 'x')}) {
    EXPECT_TRUE(open(text).ok()) << text;
  }
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
