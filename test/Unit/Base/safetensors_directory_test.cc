#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/safetensors.h"
#include "runtime/base/safetensors_writer.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

class SafetensorsDirectoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::vector<std::string>& names) {
    std::vector<SafetensorsSource> sources;
    for (const std::string& name : names) sources.push_back({{name, ElementType::kF32, {2}}, values_});
    ASSERT_TRUE(WriteSafetensors(directory_ / file, sources).ok());
  }
  void WriteIndex(const std::string& text) { WriteWholeFile(directory_ / "model.safetensors.index.json", text); }
  std::string Error() {
    const absl::Status status = SafetensorsDirectory::Open(directory_.path()).status();
    EXPECT_EQ(ExitCode(status), 1);
    return std::string(status.message());
  }

  TempDirectory directory_;
  float values_[2] = {3, 4};
};

TEST_F(SafetensorsDirectoryTest, OneFile) {
  Write("model.safetensors", {"a", "b"});
  const auto weights = SafetensorsDirectory::Open(directory_.path());
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->tensors().size(), 2u);
  const auto* entry = weights->Find("b");
  ASSERT_NE(entry, nullptr);
  float out[2];
  ASSERT_TRUE(entry->file->ReadF32(*entry->tensor, out).ok());
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(weights->Find("c"), nullptr);
}

TEST_F(SafetensorsDirectoryTest, Shards) {
  Write("1.safetensors", {"a", "b"});
  Write("2.safetensors", {"c"});
  WriteIndex(
      R"({"metadata":{"total_size":24},"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}})");
  auto opened = SafetensorsDirectory::Open(directory_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsDirectory weights = std::move(*opened);
  EXPECT_EQ(weights.files().size(), 2u);
  EXPECT_EQ(weights.Find("c")->file->path(), directory_ / "2.safetensors");
}

TEST_F(SafetensorsDirectoryTest, NothingThere) {
  EXPECT_THAT(Error(), HasSubstr("holds neither model.safetensors nor"));
  EXPECT_THAT(std::string(SafetensorsDirectory::Open(directory_ / "none").status().message()),
              HasSubstr("there is no directory"));
}

TEST_F(SafetensorsDirectoryTest, OtherWeightsAreNamed) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"x.pt", "holds x.pt and no model.safetensors; weights that torch.save wrote"},
      {"consolidated.00.pth", "holds consolidated.00.pth and"},
      {"tf_model.h5", "holds tf_model.h5 and no model.safetensors; weights of this format are not read"},
      {"small.gguf", "holds small.gguf and no model.safetensors; give the file itself"},
      {"model.fp16.safetensors", "holds model.fp16.safetensors and no model.safetensors; call the file"},
      {"model-00001-of-00002.safetensors", "model.safetensors.index.json, which lists them, is missing"},
      {"adapter_model.safetensors", "an adapter is no whole model"},
      {"pytorch_model.bin", "holds pytorch_model.bin and"},
  };
  for (const auto& [name, says] : kCases) {
    WriteWholeFile(directory_ / name, "");
    EXPECT_THAT(Error(), HasSubstr(says));
    std::filesystem::remove(directory_ / name);
  }
  std::filesystem::create_directory(directory_ / "checkpoint-4");
  EXPECT_THAT(Error(), HasSubstr("holds checkpoint-4 and no model.safetensors; give that directory"));
  std::filesystem::create_symlink("../blobs/1", directory_ / "model.safetensors");
  EXPECT_THAT(Error(), HasSubstr("model.safetensors' is a link to '../blobs/1', which is not there"));
}

TEST_F(SafetensorsDirectoryTest, BadIndex) {
  WriteIndex("");
  EXPECT_THAT(Error(), HasSubstr("index.json' is empty"));
  WriteIndex("{");
  EXPECT_THAT(Error(), HasSubstr("not valid JSON"));
  for (const char* text : {"[]", "{}", "1", R"({"weight_map":[]})"}) {
    WriteIndex(text);
    EXPECT_THAT(Error(), HasSubstr("\"weight_map\", itself an object"));
  }
  for (const char* name : {"1", "\"\"", "\"../1.safetensors\"", "\"/etc/passwd\"", "\"..\"", "\"a\\u0000b\""}) {
    WriteIndex(std::string(R"({"weight_map":{"a":)") + name + "}}");
    EXPECT_THAT(Error(), HasSubstr("the value of \"a\" should be the name of a file beside it"));
  }
}

TEST_F(SafetensorsDirectoryTest, MissingShard) {
  WriteIndex(R"({"weight_map":{"a":"1.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("names the shard '1.safetensors', which is not there"));
}

TEST_F(SafetensorsDirectoryTest, WhatTheIndexAloneHasIsMissing) {
  Write("1.safetensors", {"a"});
  Write("2.safetensors", {"c"});
  WriteIndex(R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors","d":"2.safetensors"}})");
  const auto weights = SafetensorsDirectory::Open(directory_.path());
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->tensors().size(), 2u);
  EXPECT_EQ(weights->Find("b"), nullptr);
  EXPECT_EQ(weights->missing().size(), 2u);
  EXPECT_EQ(weights->DescribeMissing("d"),
            absl::StrCat("which '", directory_ / "model.safetensors.index.json", "' lists in '",
                         directory_ / "2.safetensors", "', but that shard does not have it"));
  for (const char* name : {"a", "e", ""}) EXPECT_EQ(weights->DescribeMissing(name), "") << name;
}

TEST_F(SafetensorsDirectoryTest, IndexAndShardsDisagree) {
  Write("1.safetensors", {"a"});
  Write("2.safetensors", {"b"});
  WriteIndex(R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("1.safetensors'; correct the index"));
  Write("1.safetensors", {"a", "c"});
  WriteIndex(R"({"weight_map":{"a":"1.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("does not name the tensor 'c'"));
  Write("2.safetensors", {"a", "b"});
  WriteIndex(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"1.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("tensor 'a' is in both"));
}

TEST_F(SafetensorsDirectoryTest, DamagedShardIsNamed) {
  WriteWholeFile(directory_ / "1.safetensors", std::string(5, '\1'));
  WriteIndex(R"({"weight_map":{"a":"1.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("1.safetensors' has 5 bytes"));
}

}  // namespace
}  // namespace bowline
