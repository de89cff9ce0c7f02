#include "runtime/serve/line_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/file_descriptor.h"

namespace bowline::serve {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = FileDescriptor(ends[0]);
    write = FileDescriptor(ends[1]);
  }
  std::string ReadAll() const {
    std::string text;
    char bytes[4096];
    for (ssize_t size = 0; (size = ::read(read.get(), bytes, sizeof(bytes))) > 0;) {
      text.append(bytes, static_cast<size_t>(size));
    }
    return text;
  }
  FileDescriptor read, write;
};

TEST(LineLogTest, LinesComeInTheirOrder) {
  Pipe pipe;
  {
    LineLog log(pipe.write.get());
    log.Write("one");
    log.Write("");
    log.Write("three");
  }
  pipe.write.Close();
  EXPECT_EQ(pipe.ReadAll(), "one\n\nthree\n");
}

TEST(LineLogTest, LinesThatNobodyReadsAreLostAndCounted) {
  Pipe pipe;
  std::optional<LineLog> log(std::in_place, pipe.write.get(),
                             LineLog::Options{.waiting_bytes = 1 << 16, .patience = std::chrono::hours(1)});
  constexpr size_t kLines = 40000;
  for (size_t i = 0; i < kLines; ++i) log->Write(absl::StrCat("line ", i));
  std::string text;
  std::thread reader([&] { text = pipe.ReadAll(); });
  log.reset();
  pipe.write.Close();
  reader.join();
  size_t next = 0, lost = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    size_t count = 0;
    if (absl::ConsumePrefix(&line, "{\"lost_lines\":") && absl::ConsumeSuffix(&line, "}")) {
      ASSERT_TRUE(absl::SimpleAtoi(line, &count));
      next += count;
      lost += count;
    } else {
      ASSERT_EQ(line, absl::StrCat("line ", next++));
    }
  }
  EXPECT_EQ(next, kLines);
  EXPECT_GT(lost, 0u);
}

TEST(LineLogTest, TheEndWaitsForNoReader) {
  const Pipe pipe;
  LineLog log(pipe.write.get(), {.patience = std::chrono::milliseconds(1)});
  log.Write(std::string(1 << 18, 'x'));
}

TEST(LineLogTest, AReaderThatLeftIsNoFault) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.read.Close();
  LineLog log(pipe.write.get(), {.patience = std::chrono::hours(1)});
  log.Write("one");
}

}  // namespace
}  // namespace bowline::serve
