#include "runtime/base/foreign_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/gguf.h"
#include "runtime/base/json.h"
#include "runtime/base/npy.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/text_file.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const std::pair<std::string, const char*> kFiles[] = {
    {"<!DOCTYPE html>\n<html><body>404</body>", "a web page"},
    {"\n <html lang=\"en\">", "a web page"},
    {"\xef\xbb\xbf<?xml version=\"1.0\"?><Error/>", "a web page"},
    {"\x1f\x8b\x08 and more", "a gzip archive"},
    {"PK\x03\x04 and more bytes", "a PyTorch file"},
    {"\x28\xb5\x2f\xfd and more", "a zstd archive"},
    {"BZh91AY&SY", "a bzip2 archive"},
    {"\x80\x02\x8a\x0al\xfc\x9c and more", "a Python pickle"},
    {"\x80\x02\x8a\x0al\xfc\x9c\x46 and more", "an older version of torch.save"},
    {"SQLite format 3\x01 and more", "an SQLite database"},
    {"\x89HDF\r\n\x1a\n and more", "an HDF5 file"},
    {"PAR1 and more bytes", "a Parquet file"},
    {"\x93NUMPY\x01 and more", "a NumPy file"},
    {std::string(257, 'a') + "ustar", "a tar archive"},
    {"1234BWLP and more", "a plan"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"},
};

TEST(ForeignFileTest, EachReaderNamesIt) {
  for (const auto& [content, name] : kFiles) {
    EXPECT_THAT(std::string(ForeignFormatOf(BytesOf(content))), HasSubstr(name));
    const absl::Status weights = SafetensorsFile::FromBytes(BytesOf(content), "w").status();
    EXPECT_THAT(std::string(weights.message()), HasSubstr(name));
    EXPECT_THAT(std::string(weights.message()), Not(HasSubstr("header length")));
    EXPECT_THAT(std::string(GgufFile::FromBytes(BytesOf(content), "g").status().message()), HasSubstr(name));
    EXPECT_THAT(std::string(ParseJson(content, "j").status().message()), HasSubstr(name));
    if (LooksLikeNpy(BytesOf(content))) continue;
    EXPECT_THAT(std::string(ParseNpy(BytesOf(content), "n", {}).status().message()), HasSubstr(name));
  }
  const std::string gguf = std::string("GGUF\3\0\0\0", 8) + std::string(40, '\0');
  EXPECT_THAT(std::string(SafetensorsFile::FromBytes(BytesOf(gguf), "w").status().message()), HasSubstr("a GGUF file"));
  const std::string safetensors = std::string("\2\0\0\0\0\0\0\0{}", 10);
  EXPECT_THAT(std::string(GgufFile::FromBytes(BytesOf(safetensors), "g").status().message()),
              HasSubstr("a safetensors file"));
  EXPECT_TRUE(SafetensorsFile::FromBytes(BytesOf(safetensors), "w").ok());
}

TEST(ForeignFileTest, AParserOfTextGetsNoOtherFile) {
  const TempDirectory directory;
  for (const auto& [content, name] : kFiles) {
    WriteWholeFile(directory / "f", content);
    const absl::Status status = CheckTextFile(directory / "f");
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(directory / "f"), HasSubstr(name)));
  }
  WriteWholeFile(directory / "f", "module {}");
  for (const std::string& path : {directory / "f", directory / "none", directory.path(), std::string("-")}) {
    EXPECT_EQ(CheckTextFile(path), absl::OkStatus());
  }
}

TEST(ForeignFileTest, OthersHaveNoName) {
  for (const char* text : {"", "{", "text", "GGU", "<", "P"}) EXPECT_EQ(ForeignFormatOf(BytesOf(text)), "") << text;
}

// The length of a header may look like the begin of an archive.
TEST(ForeignFileTest, ALengthIsNoMagicNumber) {
  std::string header = "{}";
  header.resize(0x8b1f, ' ');
  const std::string file = std::string("\x1f\x8b\0\0\0\0\0\0", 8) + header;
  EXPECT_TRUE(SafetensorsFile::FromBytes(BytesOf(file), "w").ok());
}

// Of a file of any size the first bytes are looked at: a page behind them that cannot be read is not touched.
TEST(ForeignFileTest, ALargeFileIsNotReadInSearchOfALine) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* pages = ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);
  const absl::Span<const uint8_t> zeros(static_cast<const uint8_t*>(pages), 2 * page);
  EXPECT_TRUE(RefuseLfsPointer("zeros.bin", zeros).ok());
  EXPECT_EQ(ForeignFormatOf(zeros), "");
  ::munmap(pages, 2 * page);
}

}  // namespace
}  // namespace bowline
