#include "runtime/serve/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/Unit/Base/temp_directory.h"

namespace bowline::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteWholeFile(directory_ / "tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [{"id": 2, "content": "<|eot_id|>", "special": true}, {"id": 3, "content": "<s>", "special": true}],
      "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": null,
      "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  }

  absl::StatusOr<ModelFiles> With(const std::string& generation, const std::string& config = "{}") {
    WriteWholeFile(directory_ / "generation_config.json", generation);
    WriteWholeFile(directory_ / "config.json", config);
    return OpenModelFiles(directory_.path());
  }
  std::string RefusalOf(const std::string& generation) { return std::string(With(generation).status().message()); }

  TempDirectory directory_;
};

TEST_F(ModelFilesTest, GenerationConfig) {
  // As Llama 3.2 has it.
  const auto files = With(R"({"bos_token_id": 3, "do_sample": true, "eos_token_id": [1, 2], "temperature": 0.6,
    "top_p": 0.9, "top_k": 20, "max_new_tokens": 2048, "transformers_version": "4.45.0"})",
                          R"({"eos_token_id": 0})");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->end_tokens, ElementsAre(1, 2, 0));
  EXPECT_EQ(files->defaults.do_sample, true);
  EXPECT_EQ(files->defaults.temperature, 0.6);
  EXPECT_EQ(files->defaults.top_p, 0.9);
  EXPECT_EQ(files->defaults.top_k, 20);
  EXPECT_EQ(files->defaults.max_new_tokens, 2048);
}

TEST_F(ModelFilesTest, DefaultsMayBeAbsentOrNull) {
  for (const char* text : {"{}", R"({"do_sample": null, "temperature": null, "top_p": null, "top_k": null,
                                     "max_new_tokens": null, "eos_token_id": null})"}) {
    const auto files = With(text);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(files->end_tokens, ElementsAre(2)) << "that which ends turns";
    EXPECT_EQ(files->defaults.do_sample, std::nullopt);
    EXPECT_EQ(files->defaults.temperature, std::nullopt);
    EXPECT_EQ(files->defaults.top_p, std::nullopt);
    EXPECT_EQ(files->defaults.top_k, std::nullopt);
    EXPECT_EQ(files->defaults.max_new_tokens, std::nullopt);
  }
}

TEST_F(ModelFilesTest, RefusesWhatCannotBe) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"do_sample": 1})", "\"do_sample\" should be true or false"},
      {R"({"temperature": -0.1})", "\"temperature\" should be a number of at least 0"},
      {R"({"temperature": "hot"})", "\"temperature\" should be"},
      {R"({"temperature": [1]})", "\"temperature\" should be"},
      {R"({"top_p": 0})", "\"top_p\" should be"},
      {R"({"top_p": 1.5})", "\"top_p\" should be"},
      {R"({"top_k": -1})", "\"top_k\" should be an integer from 0"},
      {R"({"top_k": 2.5})", "\"top_k\" should be"},
      {R"({"top_k": 18446744073709551615})", "\"top_k\" should be"},
      {R"({"max_new_tokens": 0})", "\"max_new_tokens\" should be an integer from 1"},
      {R"({"max_new_tokens": 9223372036854775807})", "\"max_new_tokens\" should be"},
      {R"({"eos_token_id": 4})", "eos_token_id is neither"},
      {R"({"eos_token_id": -1})", "eos_token_id is neither"},
      {R"({"eos_token_id": 18446744073709551615})", "eos_token_id is neither"},
      {R"({"eos_token_id": [1, [2]]})", "eos_token_id is neither"},
      {R"({"eos_token_id": "<s>"})", "eos_token_id is neither"},
      {R"([])", "should hold a JSON object"},
      {R"({"top_k": 1, "top_k": 2})", "top_k"},
      {"{", "generation_config.json"},
  };
  for (const auto& [text, says] : refused) {
    EXPECT_THAT(RefusalOf(text), HasSubstr(says)) << text;
    EXPECT_THAT(RefusalOf(text), HasSubstr("generation_config.json")) << text;
  }
}

}  // namespace
}  // namespace bowline::serve
