// The command bowline-data, as a person calls it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_replace.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/data/dataset.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/shell.h"
#include "test/Unit/Train/token_files.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BowlineDataTest : public ::testing::Test {
 protected:
  // `arguments` may use $D, the directory of the test.
  Outcome Run(const std::string& arguments, const std::string& before = "") {
    return RunShell("D='" + directory_.path() + "'; " + before + " '" BOWLINE_DATA_TOOL "' " + arguments);
  }
  TempDirectory directory_;
};

TEST_F(BowlineDataTest, TokenizesBytesIntoAnLlmcFile) {
  WriteWholeFile(directory_ / "t", std::string("a\0\xff\n", 4));
  const Outcome outcome = Run("tokenize $D/t --tokenizer bytes -o $D/d.bin");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(ReadWholeFile(directory_ / "d.bin"), LlmcFile({'a', 0, 255, '\n'}));
  EXPECT_THAT(directory_.List(), ElementsAre("d.bin", "t"));
}

TEST_F(BowlineDataTest, TokenizesAPipeAcrossManyBlocks) {
  const Outcome outcome = Run("tokenize - --tokenizer bytes -o $D/d.bin", "head -c 3000001 /dev/zero | tr '\\0' q |");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto dataset = OpenTokenDataset(directory_ / "d.bin");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3'000'001);
  std::vector<int32_t> tokens(3'000'001);
  ASSERT_TRUE((*dataset)->Read(0, 3'000'001, tokens.data()).ok());
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 'q'), 3'000'001);
}

TEST_F(BowlineDataTest, TokenizesByAVocabularyInTheWidthThatItNeeds) {
  const std::string file = R"({"added_tokens": [{"id": LAST, "content": "<end>", "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  WriteWholeFile(directory_ / "t", "abb<end>a");
  for (const int32_t last : {3, 65535, 65536}) {
    WriteWholeFile(directory_ / "tokenizer.json", absl::StrReplaceAll(file, {{"LAST", absl::StrCat(last)}}));
    const Outcome outcome = Run("tokenize $D/t --tokenizer $D -o $D/d.bin");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const auto dataset = OpenTokenDataset(directory_ / "d.bin");
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT((*dataset)->description(), HasSubstr(last == 65536 ? "i32" : "llm.c, u16"));
    ASSERT_EQ((*dataset)->size(), 4);
    std::vector<int32_t> tokens(4);
    ASSERT_TRUE((*dataset)->Read(0, 4, tokens.data()).ok());
    EXPECT_THAT(tokens, ElementsAre(2, 1, last, 0));
  }
  WriteWholeFile(directory_ / "t", "ab\xff");
  EXPECT_THAT(Run("tokenize $D/t --tokenizer $D -o $D/e.bin").output, HasSubstr("no UTF-8 at byte 2"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "e.bin"));
}

TEST_F(BowlineDataTest, ExportsACheckpoint) {
  std::vector<float> values(6, 1.5f);
  const std::vector<CheckpointTensor> tensors = {
      {"w", CheckpointRole::kParameter, ElementType::kF32, {2, 3}, HostTensorMemory(values.data())}};
  const auto saved = SaveCheckpoint(directory_ / "run", {.step = 3}, tensors, "{}");
  ASSERT_TRUE(saved.ok()) << saved.status();
  for (const char* arguments : {"export-checkpoint $D/run -o $D/out",
                                "export-checkpoint $D/run/step-00000003 "
                                "--with-training -o $D/all"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
  }
  EXPECT_EQ(ReadWholeFile(directory_ / "out/model.safetensors"), ReadWholeFile(*saved + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out/optimizer.safetensors"));
  EXPECT_TRUE(Checkpoint::Open(directory_ / "all").ok());

  const std::vector<std::pair<std::string, std::string>> cases = {
      {"export-checkpoint $D/none -o $D/d", "there is no directory '.*none'"},
      {"export-checkpoint $D -o $D/d", "holds no checkpoint"},
      {"export-checkpoint $D/run -o $D/out", "'.*out' exists and is not empty; give another name"},
      {"export-checkpoint $D/run -o $D/run/latest", "something else has this name"},
      {"export-checkpoint $D/run", "--output is required"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments;
    EXPECT_THAT(outcome.output, ::testing::ContainsRegex(message)) << arguments;
  }
  EXPECT_THAT(directory_.List(), ElementsAre("all", "out", "run"));
}

TEST_F(BowlineDataTest, TokenizeBadInputLeavesNoFile) {
  WriteWholeFile(directory_ / "t", "text");
  WriteWholeFile(directory_ / "empty", "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tokenize $D/none --tokenizer bytes -o $D/d.bin", "cannot open '.*none': No such file"},
      {"tokenize $D --tokenizer bytes -o $D/d.bin", "Is a directory"},
      {"tokenize $D/empty --tokenizer bytes -o $D/d.bin", "is empty; give a text"},
      {"tokenize $D/t --tokenizer bytes -o $D/none/d.bin", "cannot write '.*none/d.bin': No such file"},
      {"tokenize $D/t --tokenizer bytes -o $D", "it is a directory"},
      {"tokenize $D/t --tokenizer bytes -o /dev/null", "no regular file"},
      {"tokenize $D/t --tokenizer bytes -o $D/t", "-o and TEXT name the same file, '.*/t', which would be overwritten"},
      {"tokenize - --tokenizer bytes -o $D/t < $D/t", "-o and TEXT name the same file"},
      {"tokenize $D/t --tokenizer words -o $D/d.bin", "'words' is neither bytes nor a GGUF file or a directory"},
      {"tokenize $D/t --tokenizer $D -o $D/d.bin", "tokenizer.json': No such file"},
      {"tokenize $D/t -o $D/d.bin", "--tokenizer is required"},
      {"tokenize $D/t --tokenizer bytes", "--output is required"},
      {"tokenize $D/t --tokenizer bytes -o $D/d.bin extra", "extra"},
      {"", "subcommand is required"},
      {"explain", "unknown command .explain."},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments << outcome.output;
    EXPECT_THAT(outcome.output, ::testing::ContainsRegex(message)) << arguments;
    EXPECT_THAT(directory_.List(), ElementsAre("empty", "t")) << arguments;
  }
}

TEST_F(BowlineDataTest, AFullDiskIsAFaultAndLeavesNoFile) {
  WriteWholeFile(directory_ / "t", std::string(100'000, 'x'));
  WriteWholeFile(directory_ / "d.bin", "old");
  const Outcome outcome = Run("tokenize $D/t --tokenizer bytes -o $D/d.bin", "ulimit -f 8;");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("bowline-data: error: cannot write"), HasSubstr("choose another path")));
  EXPECT_THAT(directory_.List(), ElementsAre("d.bin", "t"));
  EXPECT_EQ(ReadWholeFile(directory_ / "d.bin"), "old");
  // The report itself, too.
  WriteWholeFile(directory_ / "d.bin", LlmcFile({1, 2}));
  EXPECT_EQ(Run("info $D/d.bin > /dev/full").exit_code, 3);
}

// The command starts when its reader is gone; stderr has messages, of which there are none, and the exit code.
TEST_F(BowlineDataTest, AReaderThatClosesEarlyIsNoError) {
  WriteWholeFile(directory_ / "d.bin", LlmcFile({1, 2}));
  const std::string reader = "} | { exec <&-; echo > $D/gone; }";
  EXPECT_EQ(Run("info $D/d.bin; echo $? >&2; " + reader, "mkfifo $D/gone; { read gone < $D/gone;").output, "0\n");
}

// The signal comes when all but the content of a pipe is read, and before the end of the text.
TEST_F(BowlineDataTest, AnInterruptLeavesNoHalfFile) {
  const Outcome outcome =
      Run("tokenize - --tokenizer bytes -o $D/d.bin < $D/text & "
          "exec 3> $D/text; head -c 3000000 /dev/zero >&3; kill -TERM $!; wait $!",
          "mkfifo $D/text;");
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "d.bin"));
}

TEST_F(BowlineDataTest, InfoOfAnLlmcFile) {
  WriteWholeFile(directory_ / "d.bin", LlmcFile({7, 7, 300, 7, 2, 300}));
  const Outcome text = Run("info $D/d.bin");
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_THAT(text.output, AllOf(HasSubstr("llm.c, u16"), HasSubstr("tokens         6"), HasSubstr("distinct ids   3"),
                                 HasSubstr("largest id     300"), HasSubstr("50.00%")));
  const Outcome json = Run("info $D/d.bin --json --top 2");
  EXPECT_EQ(json.exit_code, 0);
  const auto parsed = nlohmann::json::parse(json.output, nullptr, false);
  EXPECT_EQ(parsed, nlohmann::json({{"file", directory_ / "d.bin"},
                                    {"format", "llm.c, u16"},
                                    {"tokens", 6},
                                    {"distinct", 3},
                                    {"max_id", 300},
                                    {"most_frequent", {{{"id", 7}, {"count", 3}}, {{"id", 300}, {"count", 2}}}}}));
}

TEST_F(BowlineDataTest, InfoOfBadFiles) {
  WriteWholeFile(directory_ / "text", "some text");
  EXPECT_EQ(Run("info $D/text").exit_code, 1);
  EXPECT_THAT(Run("info $D/text").output, HasSubstr("is no token file"));
  EXPECT_THAT(Run("info $D/none").output, HasSubstr("No such file"));
  WriteWholeFile(directory_ / "f.npy", NpyFile(NpyDictionary("<i4", 2), BytesOf<int32_t>({3, -5})));
  const Outcome negative = Run("info $D/f.npy");
  EXPECT_EQ(negative.exit_code, 1);
  EXPECT_THAT(negative.output, HasSubstr("token 1 has the id -5"));
  // The interior of a Megatron index, which opening does not look at.
  std::string index = MegatronIndexFile(8, 2, {1, 1, 1});
  index[34] = 2;
  WriteWholeFile(directory_ / "m.idx", index);
  WriteWholeFile(directory_ / "m.bin", BytesOf<uint16_t>({1, 2, 3}));
  EXPECT_THAT(Run("info $D/m").output, HasSubstr("sequence 1 begins at byte 2"));
}

TEST_F(BowlineDataTest, InfoOfAFileWithoutTokens) {
  WriteWholeFile(directory_ / "d.bin", LlmcFile({}));
  const Outcome outcome = Run("info $D/d.bin");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("tokens         0"));
  EXPECT_EQ(Run("info $D/d.bin --json").exit_code, 0);
}

TEST_F(BowlineDataTest, HelpNamesEverything) {
  const Outcome help = Run("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("tokenize"), HasSubstr("info"), HasSubstr("Exit codes")));
  EXPECT_THAT(Run("tokenize --help").output, AllOf(HasSubstr("TEXT"), HasSubstr("--tokenizer"), HasSubstr("--output")));
  EXPECT_THAT(Run("info --help").output, AllOf(HasSubstr("FILE"), HasSubstr("--json"), HasSubstr("--top")));
}

}  // namespace
}  // namespace bowline
