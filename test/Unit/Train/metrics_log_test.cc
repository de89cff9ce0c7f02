#include "runtime/train/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(MetricsLogTest, WritesExactlyTheDocumentedKeys) {
  const TempDirectory directory;
  WriteWholeFile(directory / "m", "{\"step\":1,\"loss\":1.0}\n");
  auto log = MetricsLog::Create(directory / "m");
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(log->WriteStep(1, {.loss = 4.5f, .grad_norm = 0.25f, .lr = 0.5f}, 1000, 2.5).ok());
  ASSERT_TRUE(log->WriteEvaluation(1, 3.25).ok());
  ASSERT_TRUE(
      log->WriteStep(2, {.loss = std::numeric_limits<float>::quiet_NaN(), .grad_norm = INFINITY, .lr = 0}, 1, 1).ok());
  ASSERT_TRUE(log->WriteStep(3, {.loss = 4, .grad_norm = 1, .lr = 0.5f, .host_seconds = 0.0005}, 1, 1).ok());
  EXPECT_EQ(ReadWholeFile(directory / "m"),
            "{\"step\":1,\"loss\":4.5,\"grad_norm\":0.25,\"lr\":0.5,\"tokens_per_s\":1000.0,\"step_ms\":2.5}\n"
            "{\"step\":1,\"eval_loss\":3.25}\n"
            "{\"step\":2,\"loss\":null,\"grad_norm\":null,\"lr\":0.0,\"tokens_per_s\":1.0,\"step_ms\":1.0}\n"
            "{\"step\":3,\"loss\":4.0,\"grad_norm\":1.0,\"lr\":0.5,\"tokens_per_s\":1.0,\"step_ms\":1.0,"
            "\"host_ms\":0.5}\n");
}

TEST(MetricsLogTest, CreateReplacesMetricsAlone) {
  const TempDirectory directory;
  for (const std::string content : {"", "{\"step\":1,\"loss\":1.0}\n{\"st", "{\"step\":17,\"lo", "{\"s"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_TRUE(MetricsLog::Create(directory / "m").ok()) << content;
    EXPECT_EQ(ReadWholeFile(directory / "m"), "");
  }
  for (const std::string content : {"some text\n", "x", "[1]\n", "{\"steps\":1}\n", "{\"step\":\"1\"}\n", "\n"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_THAT(MetricsLog::Create(directory / "m").status().ToString(), HasSubstr("holds no metrics"));
    EXPECT_EQ(ReadWholeFile(directory / "m"), content);
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
    auto log = MetricsLog::Continue(directory / "m", step);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(ReadWholeFile(directory / "m"), kept);
    ASSERT_TRUE(log->WriteEvaluation(9, 1).ok());
    EXPECT_EQ(ReadWholeFile(directory / "m"), kept + "{\"step\":9,\"eval_loss\":1.0}\n");
  }
  auto fresh = MetricsLog::Continue(directory / "new", 4);
  EXPECT_TRUE(fresh.ok()) << fresh.status();
}

TEST(MetricsLogTest, ContinueLeavesOtherFilesAlone) {
  const TempDirectory directory;
  for (const std::string content : {"some text\n", "[1]\n", "{\"step\":1}\n{\"steps\":2}\n", "{\"step\":\"1\"}\n"}) {
    WriteWholeFile(directory / "m", content);
    EXPECT_THAT(MetricsLog::Continue(directory / "m", 1).status().ToString(), HasSubstr("is no line of metrics"));
    EXPECT_EQ(ReadWholeFile(directory / "m"), content);
  }
  EXPECT_FALSE(MetricsLog::Create(directory / "none/m").ok());
  EXPECT_FALSE(MetricsLog::Continue(directory.path(), 1).ok());
}

}  // namespace
}  // namespace bowline
