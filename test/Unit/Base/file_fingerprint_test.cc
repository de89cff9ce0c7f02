#include "runtime/base/file_fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void Write(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(FileFingerprint, IsThatOfTheContentsAndNotOfThePath) {
  const TempDirectory directory;
  const std::string a = directory.path() + "/a", b = directory.path() + "/below/b";
  std::string bytes(200'000, 'x');
  Write(a, bytes);
  Write(b, bytes);
  ASSERT_TRUE(FingerprintOf(a).ok());
  EXPECT_THAT(*FingerprintOf(a), StartsWith("200000 bytes, sha256 of samples "));
  EXPECT_EQ(*FingerprintOf(a), *FingerprintOf(b));
  // Every byte of a small file counts.
  for (size_t i : {size_t{0}, size_t{77'777}, bytes.size() - 1}) {
    bytes[i] = 'y';
    Write(b, bytes);
    EXPECT_NE(*FingerprintOf(a), *FingerprintOf(b)) << i;
    bytes[i] = 'x';
  }
}

TEST(FileFingerprint, SamplesLargeFilesFromEndToEnd) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/large";
  std::string bytes(3'000'001, 'x');
  Write(path, bytes);
  const std::string before = *FingerprintOf(path);
  for (size_t i : {size_t{0}, bytes.size() - 1}) {
    bytes[i] = 'y';
    Write(path, bytes);
    EXPECT_NE(*FingerprintOf(path), before) << i;
    bytes[i] = 'x';
  }
  // A change of many bytes in the middle, and one byte more.
  Write(path, bytes.substr(0, 1'000'000) + std::string(200'000, 'y') + bytes.substr(1'200'000));
  EXPECT_NE(*FingerprintOf(path), before);
  Write(path, bytes + "x");
  EXPECT_NE(*FingerprintOf(path), before);
}

TEST(FileFingerprint, OfADirectoryCountsNamesAndContents) {
  const TempDirectory directory;
  const std::string a = directory.path() + "/a", b = directory.path() + "/b";
  for (const std::string& root : {a, b}) {
    Write(root + "/model.bin", "one");
    Write(root + "/below/config.json", "two");
  }
  EXPECT_THAT(*FingerprintOf(a), StartsWith("2 files, sha256 of samples "));
  EXPECT_EQ(*FingerprintOf(a), *FingerprintOf(b));
  Write(b + "/below/config.json", "three");
  EXPECT_NE(*FingerprintOf(a), *FingerprintOf(b));
  Write(b + "/below/config.json", "two");
  std::filesystem::rename(b + "/model.bin", b + "/other.bin");
  EXPECT_NE(*FingerprintOf(a), *FingerprintOf(b));
}

TEST(FileFingerprint, OfNothing) {
  const TempDirectory directory;
  EXPECT_THAT(std::string(FingerprintOf(directory.path() + "/none").status().message()), HasSubstr("/none"));
  EXPECT_THAT(*FingerprintOf(directory.path()), StartsWith("0 files"));
  Write(directory.path() + "/empty", "");
  EXPECT_THAT(*FingerprintOf(directory.path() + "/empty"), StartsWith("0 bytes"));
}

}  // namespace
}  // namespace bowline
