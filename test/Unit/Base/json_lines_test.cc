#include "runtime/base/json_lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
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

TEST(JsonLinesTest, GoesOnBehindWhatIsThere) {
  const TempDirectory directory;
  const std::string path = directory / "m.jsonl";
  WriteWholeFile(path, "{\"step\":1}\n{\"st");
  auto writer = JsonLinesWriter::Open(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(writer->is_file());
  ASSERT_TRUE(writer->Cut(11).ok());
  ASSERT_TRUE(writer->Write({{"step", 2}}).ok());
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(JsonLinesTest, AFileHasOneWriter) {
  const TempDirectory directory;
  const std::string path = directory / "m.jsonl";
  {
    auto writer = JsonLinesWriter::Open(path);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const absl::Status second = JsonLinesWriter::Open(path).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(second));
    EXPECT_THAT(std::string(second.message()), HasSubstr("another run is writing '" + path));
  }
  EXPECT_TRUE(JsonLinesWriter::Open(path).ok());
}

TEST(JsonLinesTest, HalfALineIsTakenBack) {
  const TempDirectory directory;
  auto writer = JsonLinesWriter::Open(directory / "m");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->WriteLine("0123\n").ok());
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {8, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = writer->WriteLine("4567\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(ExitCode(status), 3) << status;
  EXPECT_EQ(ReadWholeFile(directory / "m"), "0123\n");
}

class JsonLinesPipeTest : public ::testing::Test {
 protected:
  JsonLinesPipeTest() : handler_(std::signal(SIGPIPE, SIG_IGN)) { EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0); }
  ~JsonLinesPipeTest() override { std::signal(SIGPIPE, handler_); }

  FileDescriptor Reader() { return FileDescriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); }

  const TempDirectory directory_;
  const std::string path_ = directory_ / "p";
  void (*handler_)(int);
};

TEST_F(JsonLinesPipeTest, AReaderThatIsGoneIsAnError) {
  FileDescriptor reader = Reader();
  auto writer = JsonLinesWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_FALSE(writer->is_file());
  ASSERT_TRUE(writer->WriteLine("a\n").ok());
  reader = FileDescriptor();
  const absl::Status status = writer->WriteLine("b\n");
  EXPECT_EQ(ExitCode(status), 3) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write '" + path_ + "': Broken pipe"));
}

TEST_F(JsonLinesPipeTest, AReaderIsWaitedForWithANote) {
  FileDescriptor reader;
  std::vector<std::string> notes;
  JsonLinesWriter::PipeHooks hooks;
  hooks.note = [&](absl::string_view note) {
    notes.emplace_back(note);
    reader = Reader();
  };
  const auto writer = JsonLinesWriter::Open(path_, hooks);
  EXPECT_TRUE(writer.ok()) << writer.status();
  EXPECT_THAT(notes, ElementsAre("waiting for a program that reads the pipe '" + path_ + "'"));
}

TEST_F(JsonLinesPipeTest, AReaderThatTakesNothingIsLeftWhenTheRunStops) {
  const FileDescriptor reader = Reader();
  int asked = 0;
  // The pipe is full before that.
  JsonLinesWriter::PipeHooks hooks;
  hooks.stops = [&] { return ++asked > 1; };
  auto writer = JsonLinesWriter::Open(path_, hooks);
  ASSERT_TRUE(writer.ok()) << writer.status();
  absl::Status status;
  while (status.ok()) status = writer->WriteLine(std::string(999, 'x') + "\n");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ExitCode(status), 3);
  EXPECT_GT(asked, 1);
}

TEST_F(JsonLinesPipeTest, APipeWithoutANameIsNotWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor write_end(ends[1]);
  ::close(ends[0]);
  auto writer = JsonLinesWriter::Open("/proc/self/fd/" + std::to_string(ends[1]));
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_THAT(std::string(writer->WriteLine("a\n").message()), HasSubstr("Broken pipe"));
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
