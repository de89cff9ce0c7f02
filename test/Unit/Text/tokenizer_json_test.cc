// tokenizer.json files that are wrong, hostile, or of an unsupported kind end in a message.

#include "runtime/text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/text/expression.h"
#include "runtime/text/tokenizer_parts.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json SmallFile() {
  return json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 6, "content": "<s>", "special": true}], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3, "Ã": 4, "©": 5}, "merges": ["a b", ["ab", "b"]]}})");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Make(const json& file) {
  auto definition = ParseTokenizerJson(file.dump(), "t.json");
  if (!definition.ok()) return definition.status();
  return Tokenizer::Create(*std::move(definition));
}

std::string MessageOf(const json& file) {
  const auto tokenizer = Make(file);
  return tokenizer.ok() ? "" : std::string(tokenizer.status().message());
}

TEST(TokenizerJsonTest, MergesInTheOrderOfTheList) {
  const auto tokenizer = Make(SmallFile());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("abbab<s>ba"), ElementsAre(3, 2, 6, 1, 0));
  EXPECT_THAT(*(*tokenizer)->Encode("<s>", {.parse_special = false}), ElementsAre());
  EXPECT_THAT(*(*tokenizer)->Encode(""), ElementsAre());
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 7);
  EXPECT_EQ((*tokenizer)->Decode({6, 3, 2}), "<s>abbab");
  EXPECT_EQ((*tokenizer)->Decode({6, 3, 2, -1, 99}, true), "abbab");
  EXPECT_THAT(std::string((*tokenizer)->Encode("a\xff").status().message()), HasSubstr("no UTF-8 at byte 1"));
}

TEST(TokenizerJsonTest, StreamsWaitForWholeCharacters) {
  const auto tokenizer = Make(SmallFile());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  StreamDecoder decoder(**tokenizer);
  EXPECT_EQ(decoder.Add(4), "");
  EXPECT_EQ(decoder.Add(5), "\xC3\xA9");
  EXPECT_EQ(decoder.Add(4), "");
  EXPECT_EQ(decoder.Add(6), "");  // special
  EXPECT_EQ(decoder.Add(0),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(decoder.Add(4), "");
  EXPECT_EQ(decoder.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(TokenizerJsonTest, RefusesByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([{"op":"add","path":"/model/type","value":"Unigram"}])", "type 'Unigram'"},
      {R"([{"op":"add","path":"/model/dropout","value":0.1}])", "'dropout'"},
      {R"([{"op":"add","path":"/model/end_of_word_suffix","value":"</w>"}])", "'end_of_word_suffix'"},
      {R"([{"op":"add","path":"/model/more","value":1}])", "'more'"},
      {R"([{"op":"add","path":"/more","value":1}])", "'more'"},
      {R"([{"op":"add","path":"/truncation","value":{"max_length":3}}])", "'truncation'"},
      {R"([{"op":"add","path":"/normalizer","value":{"type":"Lowercase"}}])", "'Lowercase'"},
      {R"([{"op":"add","path":"/pre_tokenizer","value":{"type":"Bert"}}])", "'Bert'"},
      {R"([{"op":"add","path":"/post_processor","value":{"type":"RobertaProcessing"}}])", "'RobertaProcessing'"},
      {R"([{"op":"add","path":"/decoder","value":{"type":"WordPiece"}}])", "'WordPiece'"},
      {R"([{"op":"remove","path":"/decoder"}])", "no 'decoder'"},
      {R"([{"op":"add","path":"/model/vocab/c","value":1}])", "same id 1"},
      {R"([{"op":"add","path":"/model/vocab/c","value":2000000000}])", "ids are below"},
      {R"([{"op":"add","path":"/model/vocab/c","value":-1}])", "has no id"},
      {R"([{"op":"add","path":"/model/merges/0","value":"a x"}])", "merge 0 needs the token 'x'"},
      {R"([{"op":"add","path":"/model/merges/0","value":"a b c"}])", "not two tokens"},
      {R"([{"op":"add","path":"/added_tokens/0/id","value":1}])", "same id 1"},
      {R"([{"op":"add","path":"/added_tokens/0/content","value":"a"}])", "has the ids 0 and 6"},
      {R"([{"op":"add","path":"/added_tokens/0/content","value":""}])", "no content"},
  };
  for (const auto& [patch, message] : cases) {
    EXPECT_THAT(MessageOf(SmallFile().patch(json::parse(patch))), HasSubstr(message)) << patch;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_FALSE(ParseTokenizerJson(deep, "t.json").ok());
  EXPECT_FALSE(ParseTokenizerJson("", "t.json").ok());
}

// Each step doubles the text.
TEST(TokenizerJsonTest, StepsThatGrowTextsAreBounded) {
  json file = SmallFile();
  json steps = json::array();
  for (int i = 0; i < 3; ++i)
    steps.push_back(json::parse(R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})"));
  file["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
  EXPECT_THAT(MessageOf(file), HasSubstr("more than two steps"));
  file = SmallFile();
  for (json& step : steps) step["content"] = std::string(64, 'a');
  steps.push_back(steps[0]);
  steps.push_back(steps[0]);
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  const auto tokenizer = Make(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(std::string((*tokenizer)->Encode("aa").status().message()),
              HasSubstr("a text of 2 bytes has more than 65536"));
  steps[0]["content"] = std::string(65, 'a');
  file["normalizer"] = steps[0];
  EXPECT_THAT(MessageOf(file), HasSubstr("inserts 65 bytes"));
  file = SmallFile();
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {file["pre_tokenizer"], file["pre_tokenizer"]}}};
  EXPECT_THAT(MessageOf(file), HasSubstr("ByteLevel twice"));
  file = SmallFile();
  file["added_tokens"][0]["content"] = std::string(1025, 'x');
  EXPECT_THAT(MessageOf(file), HasSubstr("1025 bytes"));
}

TEST(TokenizerJsonTest, ADeepSequenceOfStepsIsRefused) {
  json file = SmallFile();
  json steps = json::array();
  for (int i = 0; i < 1000; ++i) steps.push_back({{"type", "WhitespaceSplit"}});
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  EXPECT_THAT(MessageOf(file), HasSubstr("1000 steps"));
}

TEST(TokenizerJsonTest, BeginTokensComeFromTheTemplateAndTheirNamesFromTheConfiguration) {
  TempDirectory directory;
  json file = SmallFile();
  file["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "pair": [],
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}})");
  WriteWholeFile(directory / "tokenizer.json", file.dump());
  WriteWholeFile(directory / "tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "other": 1})");
  WriteWholeFile(directory / "special_tokens_map.json", R"({"eos_token": "ab"})");
  const auto tokenizer = OpenTokenizer(directory.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->begin_token(), 6);
  EXPECT_EQ((*tokenizer)->end_token(), 2);
  EXPECT_TRUE((*tokenizer)->adds_begin_token());
  EXPECT_THAT(*(*tokenizer)->Encode("ab"), ElementsAre(6, 2));
  EXPECT_THAT(*(*tokenizer)->Encode("ab", {.add_special = false}), ElementsAre(2));
  WriteWholeFile(directory / "tokenizer_config.json", R"({"bos_token": "none"})");
  EXPECT_THAT(std::string(OpenTokenizer(directory.path()).status().message()), HasSubstr("'bos_token' is 'none'"));
}

TEST(TokenizerJsonTest, ADirectoryWithSentencePieceAloneSaysHowToConvertIt) {
  TempDirectory directory;
  WriteWholeFile(directory / "tokenizer.model", "x");
  EXPECT_THAT(std::string(OpenTokenizer(directory.path()).status().message()),
              HasSubstr("AutoTokenizer.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY)"));
}

TEST(ExpressionTest, RefusesWhatDiffersBetweenLibraries) {
  for (const char* expression :
       {"a$",    "^a",          "[a[b]]", "[a&&b]", "[\\S]", "(?<name>a)", "(*F)a", "\\1", "\\Qa", "a{,3}",
        "a{2}+", "\\x{110000}", "[a",     "(a",     "a*",    "\\p{Han}",   "\\pL",  "a\\", "\\h",  "(?m:a)"}) {
    EXPECT_FALSE(Expression::Compile(expression).ok()) << expression;
  }
  EXPECT_FALSE(Expression::Compile(std::string(100'000, 'a')).ok());
  EXPECT_FALSE(Expression::Compile(std::string(1'000, '(') + "a" + std::string(1'000, ')')).ok());
}

TEST(ExpressionTest, CatastrophicExpressionsEndInAMessage) {
  const auto expression = Expression::Compile("(a+)+[bd]");
  ASSERT_TRUE(expression.ok()) << expression.status();
  const absl::Status status =
      expression->ForEachMatch(std::string(60, 'a') + "c", [](size_t, size_t) { return absl::OkStatus(); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("fails at byte 0"));
}

TEST(ExpressionTest, AnExpressionThatLooksAtTheRestOfATextForEachCharacterEnds) {
  const auto expression = Expression::Compile("a(?=.*z)|a");
  ASSERT_TRUE(expression.ok());
  const auto match = [&](size_t bytes, const MatchPatience& patience) {
    return expression->ForEachMatch(std::string(bytes, 'a'), [](size_t, size_t) { return absl::OkStatus(); }, patience);
  };
  const MatchPatience none = {std::chrono::nanoseconds(0), std::chrono::nanoseconds(0)};
  EXPECT_TRUE(match(4000, {}).ok());
  EXPECT_TRUE(match(15, none).ok());
  EXPECT_THAT(std::string(match(4000, none).message()),
              HasSubstr("takes too long: it is at byte 16 of a text of 4000"));
}

TEST(TokenizerJsonTest, AddedTokensThatATextNearlyHasEverywhereAreRefused) {
  json file = SmallFile();
  file["added_tokens"].push_back({{"id", 7}, {"content", std::string(1000, 'a') + "b"}, {"special", true}});
  const auto tokenizer = Make(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_TRUE((*tokenizer)->Encode(std::string(400, 'a')).ok());
  EXPECT_THAT(std::string((*tokenizer)->Encode(std::string(100'000, 'a')).status().message()),
              HasSubstr("long beginnings of them nearly everywhere"));
}

TEST(TokenizerPartsTest, RefusesByName) {
  TokenizerParts parts;
  parts.model = "bert";
  parts.tokens = {"a"};
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("'bert'"));
  parts.model = "gpt2";
  parts.pre_tokenizer = "none";
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("'none' is not known"));
  parts.pre_tokenizer = "gpt-2";
  parts.types = {1, 1};
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("2 types for 1 tokens"));
  parts.types = {7};
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("type 7"));
  parts.types = {};
  parts.begin = 5;
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("the begin token has the id 5"));
  parts.model = "llama";
  parts.begin = -1;
  EXPECT_THAT(std::string(MakeTokenizer(parts).status().message()), HasSubstr("0 scores for 1 tokens"));
}

}  // namespace
}  // namespace bowline
