// Equality with the packages tokenizers and sentencepiece, as scripts/record-tokenizers.py recorded it.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "runtime/base/sha256.h"
#include "runtime/text/families.h"
#include "runtime/text/pre_tokenizer.h"
#include "runtime/text/tokenizer_json.h"
#include "runtime/text/tokenizer_parts.h"
#include "runtime/text/utf8.h"
#include "test/Unit/Text/reference_strings.h"

namespace bowline {
namespace {

constexpr char kFolder[] = BOWLINE_REFERENCE_FOLDER;

nlohmann::json Read(const std::string& name) {
  auto json = ReadJsonFile(absl::StrCat(kFolder, "/", name));
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *std::move(json) : nlohmann::json();
}

// Of the pieces of the first strings, as they are.
std::string DigestOfPieces(const std::vector<PreTokenizerStep>& steps, const std::vector<std::string>& strings) {
  const auto pre_tokenizer = PreTokenizer::Create(steps);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  if (!pre_tokenizer.ok()) return "";
  Sha256 hash;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const absl::Status split =
        pre_tokenizer->Split(MakeReferenceString(i, strings, {}), /*at_start=*/true, [&](absl::string_view piece) {
          hash.Update(absl::StrCat(piece, "\n"));
          return absl::OkStatus();
        });
    EXPECT_TRUE(split.ok()) << split;
  }
  return ToHex(hash.Finish()).substr(0, 16);
}

class ReferenceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto strings = ReadReferenceStrings(absl::StrCat(kFolder, "/strings.txt"));
    ASSERT_TRUE(strings.ok()) << strings.status();
    strings_ = *std::move(strings);
    recorded_ = Read("recorded.json")[GetParam()];
  }
  // The file that was given to the reference.
  nlohmann::json File() const {
    nlohmann::json file = recorded_["file"];
    file["model"].update(Read(recorded_["vocabulary"].get<std::string>() + ".json"));
    return file;
  }
  std::vector<std::string> strings_;
  nlohmann::json recorded_;
};

TEST_P(ReferenceTest, AHundredThousandStringsAreEqual) {
  auto definition = ParseTokenizerJson(File().dump(), "tokenizer.json");
  ASSERT_TRUE(definition.ok()) << definition.status();
  const auto tokenizer = Tokenizer::Create(*std::move(definition));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (recorded_.contains("cases")) {
    for (size_t i = 0; i < strings_.size(); ++i) {
      const auto ids = (*tokenizer)->Encode(strings_[i], {.add_special = i % 2 == 0, .parse_special = i % 3 != 0});
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, recorded_["cases"][i].get<std::vector<int32_t>>()) << strings_[i];
    }
  }
  ASSERT_EQ(recorded_["digests"].size(), 100u);
  for (size_t block = 0; block < 100; ++block) {
    const auto digest = DigestOfReferenceBlock(**tokenizer, block, strings_, (*tokenizer)->AddedContents());
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(*digest, recorded_["digests"][block].get<std::string>()) << "strings from " << block * kReferenceBlock;
  }
}

// Small vocabularies have few tokens across the borders of pieces, by which expressions would differ in ids.
TEST_P(ReferenceTest, PiecesAreEqual) {
  const auto definition = ParseTokenizerJson(File().dump(), "tokenizer.json");
  ASSERT_TRUE(definition.ok()) << definition.status();
  if (recorded_.contains("pieces")) {
    EXPECT_EQ(DigestOfPieces(definition->pre_tokenizer, strings_), recorded_["pieces"].get<std::string>());
  } else {
    EXPECT_TRUE(definition->pre_tokenizer.empty());
  }
}

// A stream gives the same text as decoding at once.
TEST_P(ReferenceTest, StreamsAreWholeCharacters) {
  auto definition = ParseTokenizerJson(File().dump(), "tokenizer.json");
  ASSERT_TRUE(definition.ok()) << definition.status();
  const auto tokenizer = Tokenizer::Create(*std::move(definition));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  StreamDecoder decoder(**tokenizer, /*skip_special=*/false);
  for (const std::string& text : strings_) {
    const auto ids = (*tokenizer)->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    std::string streamed;
    for (const int32_t id : *ids) {
      const std::string part = decoder.Add(id);
      EXPECT_EQ(FindInvalidUtf8(part), std::string::npos);
      streamed += part;
    }
    streamed += decoder.Finish();
    EXPECT_EQ(streamed, (*tokenizer)->Decode(*ids));
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, ReferenceTest,
                         ::testing::Values("smollm", "gpt-2", "prefix", "llama-bpe", "qwen2", "deepseek-r1-qwen",
                                           "tekken", "deepseek-coder", "deepseek-v3", "whitespace", "llama-2",
                                           "metaspace"));

// The rules that GGUF files name are those of tokenizer.json.
TEST(PartsReferenceTest, FamiliesAreThoseOfTokenizerJson) {
  const nlohmann::json recorded = Read("recorded.json");
  const nlohmann::json vocabulary = Read("byte-level.json");
  const auto strings = ReadReferenceStrings(absl::StrCat(kFolder, "/strings.txt"));
  ASSERT_TRUE(strings.ok());
  for (const char* name :
       {"smollm", "gpt-2", "llama-bpe", "qwen2", "deepseek-r1-qwen", "tekken", "deepseek-coder", "deepseek-v3"}) {
    const nlohmann::json& one = recorded[name];
    nlohmann::json file = one["file"];
    file["model"].update(vocabulary);
    const auto expected = Tokenizer::Create(*ParseTokenizerJson(file.dump(), name));
    ASSERT_TRUE(expected.ok()) << expected.status();
    TokenizerParts parts;
    parts.model = "gpt2";
    parts.pre_tokenizer = name;
    parts.merges = vocabulary["merges"].get<std::vector<std::string>>();
    parts.tokens.resize(vocabulary["vocab"].size());
    for (const auto& [token, id] : vocabulary["vocab"].items()) parts.tokens[id.get<size_t>()] = token;
    const auto tokenizer = MakeTokenizer(parts);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    TokenizerDefinition family;
    ASSERT_TRUE(SetFamily(name, &family).ok());
    EXPECT_EQ(DigestOfPieces(family.pre_tokenizer, *strings), one["pieces"].get<std::string>()) << name;
    const EncodeOptions options{.add_special = false, .parse_special = false};
    for (uint64_t i = 0; i < 20'000; ++i) {
      const std::string text = MakeReferenceString(i, *strings, {});
      // Added tokens that are not special are tokens anyway.
      if (text.find("wordzq") != std::string::npos || text.find("<think>") != std::string::npos ||
          text.find("<|tool|>") != std::string::npos || text.find("caf\xC3\xA9!") != std::string::npos) {
        continue;
      }
      ASSERT_EQ(*(*tokenizer)->Encode(text, options), *(*expected)->Encode(text, options)) << name << ": " << text;
    }
  }
}

TEST(PartsReferenceTest, ScoresMergeAsSentencePieceDoes) {
  const nlohmann::json recorded = Read("recorded.json")["sentencepiece"];
  const nlohmann::json vocabulary = Read("metaspace.json")["vocab"];
  const auto strings = ReadReferenceStrings(absl::StrCat(kFolder, "/strings.txt"));
  ASSERT_TRUE(strings.ok());
  TokenizerParts parts;
  parts.model = "llama";
  parts.tokens.resize(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) parts.tokens[id.get<size_t>()] = token;
  parts.scores = recorded["scores"].get<std::vector<float>>();
  parts.types.assign(parts.tokens.size(), 1);
  parts.types[0] = 2;
  parts.types[1] = parts.types[2] = 3;
  std::fill_n(parts.types.begin() + 3, 256, 6);
  parts.unknown = 0;
  const auto tokenizer = MakeTokenizer(parts);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (uint64_t block = 0; block < 100; ++block) {
    Sha256 hash;
    for (uint64_t i = block * kReferenceBlock; i < (block + 1) * kReferenceBlock; ++i) {
      const auto ids = (*tokenizer)->Encode(MakeReferenceString(i, *strings, {}), {.parse_special = false});
      ASSERT_TRUE(ids.ok()) << ids.status();
      for (const int32_t id : *ids) hash.Update(absl::StrCat(id, " "));
      hash.Update(absl::StrCat("\n", (*tokenizer)->Decode(*ids), "\n"));
    }
    EXPECT_EQ(ToHex(hash.Finish()).substr(0, 16), recorded["digests"][block].get<std::string>()) << "block " << block;
  }
}

}  // namespace
}  // namespace bowline
