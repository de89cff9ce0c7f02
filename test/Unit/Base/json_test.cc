#include "runtime/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text, JsonLimits limits = {}) {
  const auto parsed = ParseJson(text, "'f.json'", limits);
  EXPECT_FALSE(parsed.ok()) << text;
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
  return std::string(parsed.status().message());
}

TEST(JsonTest, BuildsTheSameDocumentAsTheLibrary) {
  for (const char* text :
       {"1", "-3", "1.5e3", "null", "true", R"("a\u00e9\n")", "[]", "{}", "[1,[2,[3]],{}]", "18446744073709551615",
        R"({"a":{"b":[1,2,{"c":null}],"d":"x"},"e":[[],[{}]],"f":false})", " [ 1 , 2 ] "}) {
    const auto parsed = ParseJson(text, "x");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, nlohmann::json::parse(text)) << text;
  }
}

TEST(JsonTest, SyntaxErrorsSayWhere) {
  EXPECT_THAT(ErrorOf("{\n  \"a\": }"), AllOf(HasSubstr("'f.json'"), HasSubstr("line 2, column 8")));
  EXPECT_THAT(ErrorOf(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(ErrorOf("{} x"), HasSubstr("column 4"));
  EXPECT_THAT(ErrorOf("[1, 2"), HasSubstr("unexpected end of input"));
  EXPECT_THAT(ErrorOf("\"\xff\""), HasSubstr("UTF-8"));
}

TEST(JsonTest, NumbersBeyondF64AreErrors) { EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("1e999")); }

TEST(JsonTest, ADuplicateKeyIsAnError) {
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": {"a": 1, "a": 2}})"), HasSubstr("key \"a\" appears twice"));
}

TEST(JsonTest, DepthIsBounded) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("nested more than 32 deep"));
  EXPECT_TRUE(ParseJson("[[[]]]", "x", {.max_depth = 3}).ok());
  EXPECT_THAT(ErrorOf("[[[]]]", {.max_depth = 2}), HasSubstr("nested more than 2 deep"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("nested more than 32 deep"));
}

TEST(JsonTest, TheNumberOfValuesIsBounded) {
  EXPECT_TRUE(ParseJson("[1,2,3]", "x", {.max_values = 4}).ok());
  EXPECT_THAT(ErrorOf("[1,2,3]", {.max_values = 3}), HasSubstr("more than 3 values"));
}

TEST(JsonTest, FilesThatCannotBeRead) {
  const TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(ReadJsonFile(directory / "none").status()));
  WriteWholeFile(directory / "empty", "");
  EXPECT_THAT(std::string(ReadJsonFile(directory / "empty").status().message()), HasSubstr("is empty"));
  WriteWholeFile(directory / "large", "[1,2,3]");
  EXPECT_THAT(std::string(ReadJsonFile(directory / "large", 6).status().message()), HasSubstr("at most 6"));
  EXPECT_EQ((*ReadJsonFile(directory / "large"))[2], 3);
}

}  // namespace
}  // namespace bowline
