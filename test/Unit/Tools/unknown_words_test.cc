#include "runtime/tools/unknown_words.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace bowline {
namespace {

class UnknownWordsTest : public ::testing::Test {
 protected:
  UnknownWordsTest() {
    app_.add_option("FILE", text_)->required();
    app_.add_option("--batch", number_);
    app_.add_option("-o,--output", text_);
    app_.add_flag("!--no-codegen", flag_);
    app_.add_option_group("group")->add_flag("--report", flag_);
    CLI::App* tokenize = app_.add_subcommand("tokenize");
    tokenize->add_option("--top", number_)->required();
    app_.add_subcommand("info");
  }

  // The message about a command line that does not parse.
  std::string After(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    EXPECT_THROW(app_.parse(words), CLI::ParseError);
    return DescribeUnknownWord(app_);
  }

  CLI::App app_;
  std::string text_;
  int number_ = 0;
  bool flag_ = true;
};

TEST_F(UnknownWordsTest, Flags) {
  EXPECT_EQ(After({"f", "--batchh", "4"}), "unknown flag '--batchh'; the nearest one is '--batch'");
  // The value that follows takes the place of the file, which is the one too many then.
  EXPECT_EQ(After({"--batchh", "4", "f"}), "unknown flag '--batchh'; the nearest one is '--batch'");
  EXPECT_EQ(After({"--batchh=4"}), "unknown flag '--batchh'; the nearest one is '--batch'");
  EXPECT_EQ(After({"--ouput", "x"}), "unknown flag '--ouput'; the nearest one is '--output'");
  EXPECT_EQ(After({"--codegen"}), "unknown flag '--codegen'; the nearest one is '--no-codegen'");
  EXPECT_EQ(After({"--reprt"}), "unknown flag '--reprt'; the nearest one is '--report'");
  EXPECT_EQ(After({"--outp"}), "unknown flag '--outp'; the nearest one is '--output'");
}

TEST_F(UnknownWordsTest, Commands) {
  EXPECT_EQ(After({"f", "tokenise"}), "unknown command 'tokenise'; the nearest one is 'tokenize'");
  EXPECT_EQ(After({"f", "tokenize", "--topp", "3"}), "unknown flag '--topp'; the nearest one is '--top'");
}

TEST_F(UnknownWordsTest, OtherMistakes) {
  EXPECT_EQ(After({}), "");
  EXPECT_EQ(After({"f", "--batch", "x"}), "");
  EXPECT_EQ(After({"f", "info", "-3"}), "");
}

TEST(SuggestTest, NamesWhatOneMayHaveMeant) {
  const std::vector<std::string> words = {"--batch", "--kv-blocks", "--no-codegen", "--lr"};
  for (const auto& [word, nearest] :
       std::vector<std::pair<std::string, std::string>>{{"--batchh", "--batch"},
                                                        {"--btach", "--batch"},
                                                        {"--kv-bloks", "--kv-blocks"},
                                                        {"--kv-b", "--kv-blocks"},
                                                        {"--codegen", "--no-codegen"},
                                                        {"--rl", "--none"},
                                                        {"--l", "--lr"},
                                                        {"--xyzzy", "--none"},
                                                        {std::string(5000, '-'), "--none"}}) {
    EXPECT_EQ(Suggest(word, words, "none"), nearest == "--none" ? "none" : "the nearest one is '" + nearest + "'")
        << word;
  }
}

// The first name that the tool takes, whatever stands between words.
TEST(SuggestTest, NamesOfOtherSystems) {
  const std::vector<std::string> words = {"--batch", "--lr", "--microbatches", "--seq", "--steps"};
  for (const auto& [word, here] : std::vector<std::pair<std::string, std::string>>{{"--learning-rate", "--lr"},
                                                                                   {"--learning_rate", "--lr"},
                                                                                   {"--batch-size", "--batch"},
                                                                                   {"--block-size", "--seq"},
                                                                                   {"--max_iters", "--steps"}}) {
    EXPECT_EQ(Suggest(word, words, "none"), "its name here is '" + here + "'") << word;
  }
  EXPECT_EQ(Suggest("--batch-size", {"--max-batch"}, "none"), "its name here is '--max-batch'");
  EXPECT_EQ(Suggest("--learning-rate", {"--max-batch"}, "none"), "none");
}

TEST(NearestWordTest, BeginningsComeFirst) {
  const std::vector<std::string> words = {"--mesh", "--microbatches", "--mode"};
  EXPECT_EQ(NearestWord("--micro", words), "--microbatches");
  EXPECT_EQ(NearestWord("--moed", words), "--mode");
  EXPECT_EQ(NearestWord("--", words), "--mesh");
}

}  // namespace
}  // namespace bowline
