#include "runtime/base/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(JsonLinesTest, EachLineIsThereAtOnceAndKeysKeepTheirOrder) {
  const TempDirectory directory;
  auto writer = JsonLinesWriter::Open(directory / "m.jsonl");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Write({{"step", 1}, {"loss", 2.5}, {"a", "x\ny"}}).ok());
  EXPECT_EQ(ReadWholeFile(directory / "m.jsonl"), "{\"step\":1,\"loss\":2.5,\"a\":\"x\\ny\"}\n");
  ASSERT_TRUE(writer->Write({{"loss", NAN}, {"text", "\xff"}}).ok());
  EXPECT_THAT(ReadWholeFile(directory / "m.jsonl"), HasSubstr("\n{\"loss\":null,\"text\":\"\xef\xbf\xbd\"}\n"));
}

TEST(JsonLinesTest, TruncateStartsAnewAndAppendGoesOnAfterTheLastWholeLine) {
  const TempDirectory directory;
  const std::string path = directory / "m.jsonl";
  WriteWholeFile(path, "{\"step\":1}\n{\"st");
  ASSERT_TRUE(JsonLinesWriter::Open(path, JsonLinesWriter::Mode::kAppend)->Write({{"step", 2}}).ok());
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1}\n{\"step\":2}\n");
  WriteWholeFile(path, "[1]\n" + std::string(10'000, 'x'));
  ASSERT_TRUE(JsonLinesWriter::Open(path, JsonLinesWriter::Mode::kAppend).ok());
  EXPECT_EQ(ReadWholeFile(path), "[1]\n");
  WriteWholeFile(path, "half");
  ASSERT_TRUE(JsonLinesWriter::Open(path, JsonLinesWriter::Mode::kAppend).ok());
  EXPECT_EQ(ReadWholeFile(path), "");
  WriteWholeFile(path, "{\"step\":1}\n");
  ASSERT_TRUE(JsonLinesWriter::Open(path)->Write({{"step", 2}}).ok());
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":2}\n");
}

TEST(JsonLinesTest, ErrorsNameThePath) {
  auto full = JsonLinesWriter::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status();
  const absl::Status status = full->Write({{"step", 1}});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write '/dev/full'"));

  const TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(JsonLinesWriter::Open(directory / "none/m.jsonl").status()));
  EXPECT_EQ(ExitCode(JsonLinesWriter::Open(directory.path()).status()), 1);
}

}  // namespace
}  // namespace bowline
