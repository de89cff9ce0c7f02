#include "runtime/text/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/Unit/Base/gguf_bytes.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9;

std::string Texts(const std::vector<std::string>& texts) {
  std::string bytes = Little(kString) + Little<uint64_t>(texts.size());
  for (const std::string& text : texts) bytes += GgufString(text);
  return bytes;
}
template <typename T>
std::string Numbers(uint32_t type, const std::vector<T>& numbers) {
  std::string bytes = Little(type) + Little<uint64_t>(numbers.size());
  for (const T number : numbers) bytes += Little(number);
  return bytes;
}
std::string Key(const std::string& name, uint32_t type, const std::string& value) {
  return GgufKey("tokenizer.ggml." + name, type, value);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(const std::vector<std::string>& keys) {
  const std::string bytes = GgufBytes(keys, {}, "");
  const auto file = GgufFile::FromBytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "m.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  return OpenGgufTokenizer(*file);
}

// GPT-2's kind: "ab" is one token, and the text begins with <s>.
std::vector<std::string> BytePairs() {
  return {Key("model", kString, GgufString("gpt2")),
          Key("pre", kString, GgufString("gpt-2")),
          Key("tokens", kArray, Texts({"<s>", "</s>", "a", "b", "ab", "\xc4\xa0"})),
          Key("token_type", kArray, Numbers<int32_t>(kI32, {3, 3, 1, 1, 1, 1})),
          Key("merges", kArray, Texts({"a b"})),
          Key("bos_token_id", kU32, Little<uint32_t>(0)),
          Key("eos_token_id", kU32, Little<uint32_t>(1)),
          Key("add_bos_token", kBool, std::string(1, '\1'))};
}

TEST(GgufTokenizerTest, ReadsBytePairs) {
  const auto tokenizer = Open(BytePairs());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("ab b</s>"), ElementsAre(0, 4, 5, 3, 1));
  EXPECT_EQ((*tokenizer)->end_token(), 1);
  EXPECT_EQ((*tokenizer)->Decode(std::vector<int32_t>{4, 5, 3}), "ab b");
}

TEST(GgufTokenizerTest, ATextThatHasTheBeginTokenGetsNoOther) {
  const auto opened = Open(BytePairs());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Tokenizer& tokenizer = **opened;
  for (const bool rendered : {false, true}) {
    const EncodeOptions options = PromptOptions(tokenizer, rendered);
    EXPECT_THAT(*tokenizer.Encode("<s>ab", options), ElementsAre(0, 4));
    EXPECT_THAT(*tokenizer.Encode("<s><s>ab<s><s>", options), ElementsAre(0, 4, 0, 0));
  }
  EXPECT_THAT(*tokenizer.Encode("ab", PromptOptions(tokenizer, /*rendered=*/false)), ElementsAre(0, 4));
  EXPECT_THAT(*tokenizer.Encode("ab", PromptOptions(tokenizer, /*rendered=*/true)), ElementsAre(4));
  EXPECT_THAT(*tokenizer.Encode("<s>ab"), ElementsAre(0, 0, 4));  // as the reference does
  // A tokenizer that adds no tokens leaves a text as it is.
  std::vector<std::string> keys = BytePairs();
  keys.pop_back();
  const auto plain = Open(keys);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(*(*plain)->Encode("<s><s>ab", PromptOptions(**plain, /*rendered=*/false)), ElementsAre(0, 0, 4));
}

TEST(GgufTokenizerTest, ATextOfMoreTokensThanTheMostIsRefused) {
  const auto opened = Open(BytePairs());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EncodeOptions options = {.most = 4};
  EXPECT_THAT(*(*opened)->Encode("ab b", options), ElementsAre(0, 4, 5, 3));
  for (const char* text : {"ab ba", "ab b</s>", "</s></s></s></s>", "aaaa"}) {
    const absl::Status status = (*opened)->Encode(text, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("more than 4 tokens"));
  }
}

// A piece may be refused for its length, and never wrongly.
TEST(GgufTokenizerTest, ATextOfTheMostTokensIsEncodedWhateverItsBytes) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(absl::StrFormat("<0x%02X>", byte));
    types.push_back(6);
  }
  for (const char* token : {"a", "aa", "aaaa"}) {
    tokens.emplace_back(token);
    types.push_back(1);
  }
  const auto opened =
      Open({Key("model", kString, GgufString("llama")), Key("tokens", kArray, Texts(tokens)),
            Key("scores", kArray, Numbers<float>(kF32, std::vector<float>(tokens.size(), 0.0F))),
            Key("token_type", kArray, Numbers<int32_t>(kI32, types)), Key("bos_token_id", kU32, Little<uint32_t>(1))});
  ASSERT_TRUE(opened.ok()) << opened.status();
  for (size_t length = 1; length < 40; ++length) {
    const std::string text(length, 'a');
    const std::vector<int32_t> all = *(*opened)->Encode(text);
    EXPECT_LT(all.size(), 5 + length / 4 + 3);
    EXPECT_EQ(*(*opened)->Encode(text, {.most = all.size()}), all);
    EXPECT_EQ((*opened)->Encode(text, {.most = all.size() - 1}).status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(GgufTokenizerTest, ReadsScores) {
  // The begin token is added unless the file says otherwise, and so is a space.
  std::vector<std::string> keys = {Key("model", kString, GgufString("llama")),
                                   Key("tokens", kArray,
                                       Texts({"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a",
                                              "\xe2\x96\x81"
                                              "a"})),
                                   Key("scores", kArray, Numbers<float>(kF32, {0, 0, 0, -3, -2, -1})),
                                   Key("token_type", kArray, Numbers<int32_t>(kI32, {2, 3, 3, 1, 1, 1})),
                                   Key("bos_token_id", kU32, Little<uint32_t>(1)),
                                   Key("eos_token_id", kU32, Little<uint32_t>(2)),
                                   Key("unknown_token_id", kU32, Little<uint32_t>(0))};
  const auto tokenizer = Open(keys);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("a a"), ElementsAre(1, 5, 5));
}

TEST(GgufTokenizerTest, WhatIsMissingOrOfAnotherTypeIsNamed) {
  const struct {
    size_t key;
    std::string instead;
    const char* says;
  } kCases[] = {
      {0, "", "tokenizer.ggml.model"},
      {2, "", "'tokenizer.ggml.tokens' is no array of strings"},
      {2, Key("tokens", kArray, Numbers<int32_t>(kI32, {1})), "'tokenizer.ggml.tokens' is no array of strings"},
      {3, Key("token_type", kArray, Texts({"x"})), "'tokenizer.ggml.token_type' is no array of i32"},
      {5, Key("bos_token_id", kI32, Little<int32_t>(-7)), "'tokenizer.ggml.bos_token_id' is no id of a token"},
      {5, Key("bos_token_id", kString, GgufString("x")), "tokenizer.ggml.bos_token_id"},
  };
  for (const auto& test : kCases) {
    std::vector<std::string> keys = BytePairs();
    if (test.instead.empty()) {
      keys.erase(keys.begin() + static_cast<ptrdiff_t>(test.key));
    } else {
      keys[test.key] = test.instead;
    }
    const auto tokenizer = Open(keys);
    ASSERT_FALSE(tokenizer.ok()) << test.says;
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("'m.gguf'"));
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(test.says));
  }
}

}  // namespace
}  // namespace bowline
