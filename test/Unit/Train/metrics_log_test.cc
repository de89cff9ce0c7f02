#include "runtime/train/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(MetricsLogTest, WritesExactlyTheDocumentedKeys) {
  const TempDirectory directory;
  auto log = MetricsLog::Create(directory / "m", "r");
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(log->WriteStep(1, {.loss = 4.5f, .grad_norm = 0.25f, .lr = 0.5f}, 1000, 2.5).ok());
  ASSERT_TRUE(log->WriteEvaluation(1, 3.25).ok());
  ASSERT_TRUE(
      log->WriteStep(2, {.loss = std::numeric_limits<float>::quiet_NaN(), .grad_norm = INFINITY, .lr = 0}, 1, 1).ok());
  ASSERT_TRUE(log->WriteStep(3, {.loss = 4, .grad_norm = 1, .lr = 0.5f, .host_seconds = 0.0005}, 1, 1).ok());
  EXPECT_EQ(ReadWholeFile(directory / "m"),
            "{\"step\":1,\"loss\":4.5,\"grad_norm\":0.25,\"lr\":0.5,\"tokens_per_s\":1000.0,\"step_ms\":2.5,"
            "\"run\":\"r\"}\n"
            "{\"step\":1,\"eval_loss\":3.25}\n"
            "{\"step\":2,\"loss\":null,\"grad_norm\":null,\"lr\":0.0,\"tokens_per_s\":1.0,\"step_ms\":1.0}\n"
            "{\"step\":3,\"loss\":4.0,\"grad_norm\":1.0,\"lr\":0.5,\"tokens_per_s\":1.0,\"step_ms\":1.0,"
            "\"host_ms\":0.5}\n");
}

TEST(MetricsLogTest, CreateTakesAFileWithoutALine) {
  const TempDirectory directory;
  for (const std::string content : {"", "{\"step\":17,\"lo", "{\"s"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_TRUE(MetricsLog::Create(directory / "m", "r").ok()) << content;
    EXPECT_EQ(ReadWholeFile(directory / "m"), "");
  }
  for (const std::string content : {"some text\n", "x", "[1]\n", "{\"steps\":1}\n", "{\"step\":\"1\"}\n", "\n"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_THAT(MetricsLog::Create(directory / "m", "r").status().ToString(), HasSubstr("holds no metrics"));
    EXPECT_EQ(ReadWholeFile(directory / "m"), content);
  }
  for (const std::string content :
       {"{\"step\":1,\"loss\":1.0}\n", "{\"step\":0,\"eval_loss\":1.0}\n", "{\"step\":1,\"loss\":1.0}\n{\"st"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_THAT(MetricsLog::Create(directory / "m", "r").status().ToString(),
                HasSubstr("holds metrics of an earlier run"));
    EXPECT_EQ(ReadWholeFile(directory / "m"), content);
  }
}

TEST(MetricsLogTest, AFileHasOneWriter) {
  const TempDirectory directory;
  auto log = MetricsLog::Create(directory / "m", "r");
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(MetricsLog::Create(directory / "m", "r").status().ToString(), HasSubstr("another run is writing"));
  EXPECT_THAT(MetricsLog::Continue(directory / "m", {"r", 1}).status().ToString(), HasSubstr("another run is writing"));
}

TEST(MetricsLogTest, ContinueLeavesTheFileOfAnotherRunAlone) {
  const TempDirectory directory;
  const std::string rest = "{\"step\":5,\"loss\":1.0}\n{\"st";
  for (const bool is_finished : {false, true}) {
    for (const std::string first :
         {"{\"step\":1,\"loss\":1.0,\"run\":\"other\"}\n", "{\"step\":9,\"loss\":1.0,\"run\":\"other\"}\n",
          "{\"step\":0,\"eval_loss\":1.0,\"run\":\"other\"}\n"}) {
      WriteWholeFile(directory / "m", first + rest);
      EXPECT_THAT(MetricsLog::Continue(directory / "m", {"r", 4, {}, is_finished}).status().ToString(),
                  HasSubstr("holds metrics of another run"));
      EXPECT_EQ(ReadWholeFile(directory / "m"), first + rest);
    }
    // Its own, and one of before, which names no run.
    for (const std::string first : {"{\"step\":1,\"loss\":1.0,\"run\":\"r\"}\n", "{\"step\":1,\"loss\":1.0}\n"}) {
      WriteWholeFile(directory / "m", first + rest);
      const auto log = MetricsLog::Continue(directory / "m", {"r", 4, {}, is_finished});
      EXPECT_TRUE(log.ok()) << log.status();
      EXPECT_EQ(ReadWholeFile(directory / "m"), is_finished ? first + "{\"step\":5,\"loss\":1.0}\n" : first);
    }
  }
}

TEST(MetricsLogTest, AFinishedRunRecordsEachLossOfAnEvaluationOnce) {
  const TempDirectory directory;
  WriteWholeFile(directory / "m", "{\"step\":1,\"eval_loss\":2.5}\n");
  for (int i = 0; i < 2; ++i) {
    auto log = MetricsLog::Continue(directory / "m", {"r", 1, {}, true});
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE(log->WriteEvaluation(1, 2.5).ok());
    ASSERT_TRUE(log->WriteEvaluation(1, 3.5).ok());
    EXPECT_EQ(ReadWholeFile(directory / "m"), "{\"step\":1,\"eval_loss\":2.5}\n{\"step\":1,\"eval_loss\":3.5}\n");
  }
}

TEST(MetricsLogTest, LinesThatCouldNotBeWrittenAreWrittenWhenTheRunGoesOn) {
  const TempDirectory directory;
  auto full = MetricsLog::Create("/dev/full", "r");
  ASSERT_TRUE(full.ok()) << full.status();
  for (const int64_t step : {2, 3}) {
    EXPECT_EQ(ExitCode(full->WriteStep(step, {.loss = 4, .grad_norm = 1, .lr = 0.5f}, 1, 1)), 3);
  }
  const auto line = [](int64_t step) {
    return absl::StrCat("{\"step\":", step,
                        ",\"loss\":4.0,\"grad_norm\":1.0,\"lr\":0.5,\"tokens_per_s\":1.0,\"step_ms\":1.0}\n");
  };
  const std::vector<std::string> unwritten = full->unwritten();
  EXPECT_EQ(unwritten, std::vector<std::string>({line(2), line(3)}));
  // All are missing, or the first was written by a start that failed at the second.
  for (const std::string& content : {line(1) + "{\"st", line(1) + line(2), line(1) + line(2) + line(3) + line(4)}) {
    WriteWholeFile(directory / "m", content);
    const auto log = MetricsLog::Continue(directory / "m", {"r", 3, unwritten});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(ReadWholeFile(directory / "m"), line(1) + line(2) + line(3));
    EXPECT_TRUE(log->unwritten().empty());
    EXPECT_EQ(log->missing(), "");
  }
  // Into a new file, whose first line names the run; and not again.
  for (int i = 0; i < 2; ++i) {
    const auto log = MetricsLog::Continue(directory / "new", {"r", 3, unwritten});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(ReadWholeFile(directory / "new"), line(2).substr(0, line(2).size() - 2) + ",\"run\":\"r\"}\n" + line(3));
  }
  EXPECT_EQ(ExitCode(MetricsLog::Continue("/dev/full", {"r", 3, unwritten}).status()), 3);
}

TEST(MetricsLogTest, ContinueSaysWhichStepsTheFileLacks) {
  const TempDirectory directory;
  const std::string content = "{\"step\":1,\"loss\":1.0}\n{\"step\":2,\"loss\":1.0}\n{\"step\":2,\"eval_loss\":1.0}\n";
  for (const auto& [step, missing] :
       std::vector<std::pair<int64_t, std::string>>{{2, ""}, {3, "step 3"}, {7, "steps 3 to 7"}}) {
    WriteWholeFile(directory / "m", content);
    const auto log = MetricsLog::Continue(directory / "m", {"r", step});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->missing(), missing);
  }
}

TEST(MetricsLogTest, ContinueCutsWhatIsTakenAgain) {
  const TempDirectory directory;
  const std::string one = "{\"step\":1,\"loss\":1.0}\n{\"step\":1,\"eval_loss\":1.0}\n";
  const std::string two = "{\"step\":2,\"loss\":1.0}\n";
  const std::vector<std::tuple<std::string, int64_t, std::string>> cases = {
      {one + two, 2, one + two},
      {one + two, 1, one},
      {one + two, 0, ""},
      {one + two + "{\"step\":3,\"lo", 2, one + two},
      {one + two, 5, one + two},
      {one + "{\"st", 1, one},
      {"", 3, ""}};
  for (const auto& [content, step, kept] : cases) {
    WriteWholeFile(directory / "m", content);
    auto log = MetricsLog::Continue(directory / "m", {"r", step});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(ReadWholeFile(directory / "m"), kept);
    ASSERT_TRUE(log->WriteEvaluation(9, 1).ok());
    EXPECT_EQ(ReadWholeFile(directory / "m"), kept + (kept.empty() ? "{\"step\":9,\"eval_loss\":1.0,\"run\":\"r\"}\n"
                                                                   : "{\"step\":9,\"eval_loss\":1.0}\n"));
  }
  auto fresh = MetricsLog::Continue(directory / "new", {"r", 4});
  EXPECT_TRUE(fresh.ok()) << fresh.status();
}

TEST(MetricsLogTest, ContinueLeavesOtherFilesAlone) {
  const TempDirectory directory;
  for (const std::string content : {"some text\n", "[1]\n", "{\"step\":1}\n{\"steps\":2}\n", "{\"step\":\"1\"}\n"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_THAT(MetricsLog::Continue(directory / "m", {"r", 1}).status().ToString(),
                HasSubstr("is no line of metrics"));
    EXPECT_EQ(ReadWholeFile(directory / "m"), content);
  }
  EXPECT_FALSE(MetricsLog::Create(directory / "none/m", "r").ok());
  EXPECT_FALSE(MetricsLog::Continue(directory.path(), {"r", 1}).ok());
}

}  // namespace
}  // namespace bowline
