#include "runtime/train/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/token_files.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> ReadAll(const TokenDataset& dataset) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.size()));
  EXPECT_TRUE(dataset.Read(0, dataset.size(), tokens.data()).ok());
  return tokens;
}

TEST(DatasetTest, Llmc) {
  const TempDirectory directory;
  WriteWholeFile(directory / "d.bin", LlmcFile({5, 0, 65535, 7}));
  const auto dataset = OpenTokenDataset(directory / "d.bin");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(ReadAll(**dataset), ElementsAre(5, 0, 65535, 7));
  EXPECT_EQ((*dataset)->description(), "llm.c, u16");
  EXPECT_EQ((*dataset)->max_possible_id(), 65535);
  int32_t middle[2];
  ASSERT_TRUE((*dataset)->Read(1, 2, middle).ok());
  EXPECT_EQ(middle[1], 65535);
  EXPECT_TRUE((*dataset)->Read(4, 0, nullptr).ok());
}

TEST(DatasetTest, Npy) {
  const std::string u16 = NpyFile(NpyDictionary("<u2", 3), BytesOf<uint16_t>({1, 2, 65535}));
  const std::string i32 = NpyFile(NpyDictionary("<i4", 2), BytesOf<int32_t>({9, 2147483647}), 2);
  EXPECT_THAT(ReadAll(**TokenDatasetFromBytes(AsBytes(u16), "x")), ElementsAre(1, 2, 65535));
  const auto dataset = TokenDatasetFromBytes(AsBytes(i32), "x");
  EXPECT_THAT(ReadAll(**dataset), ElementsAre(9, 2147483647));
  EXPECT_EQ((*dataset)->description(), "npy, i32");
  EXPECT_EQ((*dataset)->max_possible_id(), 2147483647);
}

TEST(DatasetTest, NpyHeaderInAnyOrderAndQuoting) {
  for (const char* dictionary : {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<u2\"}",
                                 "{ 'fortran_order' : False , 'descr' : '<u2' , 'shape' : ( 2 , ) , }"}) {
    const std::string file = NpyFile(dictionary, BytesOf<uint16_t>({1, 2}));
    const auto dataset = TokenDatasetFromBytes(AsBytes(file), "x");
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT(ReadAll(**dataset), ElementsAre(1, 2));
  }
}

TEST(DatasetTest, MegatronUnderAnyOfItsNames) {
  const TempDirectory directory;
  WriteWholeFile(directory / "d.idx", MegatronIndexFile(8, 2, {2, 0, 1}));
  WriteWholeFile(directory / "d.bin", BytesOf<uint16_t>({4, 5, 65535}));
  for (const char* name : {"d.idx", "d.bin", "d"}) {
    const auto dataset = OpenTokenDataset(directory / name);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT(ReadAll(**dataset), ElementsAre(4, 5, 65535));
    EXPECT_EQ((*dataset)->description(), "Megatron, u16");
    EXPECT_TRUE((*dataset)->CheckIndex().ok());
  }
}

TEST(DatasetTest, MegatronTypes) {
  const auto read = [](uint8_t code, int64_t bytes, const std::string& tokens) {
    const std::string index = MegatronIndexFile(code, bytes, {1, 1});
    const auto dataset = MegatronDatasetFromBytes(AsBytes(index), AsBytes(tokens), "x");
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return ReadAll(**dataset);
  };
  EXPECT_THAT(read(1, 1, BytesOf<uint8_t>({3, 255})), ElementsAre(3, 255));
  EXPECT_THAT(read(2, 1, BytesOf<int8_t>({3, 127})), ElementsAre(3, 127));
  EXPECT_THAT(read(3, 2, BytesOf<int16_t>({3, 32767})), ElementsAre(3, 32767));
  EXPECT_THAT(read(4, 4, BytesOf<int32_t>({3, 1 << 30})), ElementsAre(3, 1 << 30));
  EXPECT_THAT(read(5, 8, BytesOf<int64_t>({3, 1 << 30})), ElementsAre(3, 1 << 30));
}

TEST(DatasetTest, MegatronWithModes) {
  const std::string index = MegatronIndexFile(8, 2, {1, 1}) + std::string(2, '\1');
  const std::string tokens = BytesOf<uint16_t>({1, 2});
  EXPECT_TRUE(MegatronDatasetFromBytes(AsBytes(index), AsBytes(tokens), "x").ok());
}

TEST(DatasetTest, ATokenOutsideOfTheVocabularyIsFoundWhereItIsRead) {
  const std::string file = LlmcFile({5, 255, 256, 7});
  const auto dataset = TokenDatasetFromBytes(AsBytes(file), "d.bin", {.vocabulary = 256});
  ASSERT_TRUE(dataset.ok());
  int32_t out[4];
  EXPECT_TRUE((*dataset)->Read(0, 2, out).ok());
  EXPECT_TRUE((*dataset)->Read(3, 1, out).ok());
  const absl::Status status = (*dataset)->Read(1, 3, out);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'d.bin': token 2 has the id 256, outside of the vocabulary [0, 256)"));
}

TEST(DatasetTest, NegativeAndHugeIdsAreOutsideOfEveryVocabulary) {
  const std::string negative = NpyFile(NpyDictionary("<i4", 1), BytesOf<int32_t>(-1));
  int32_t out;
  EXPECT_THAT(std::string((*TokenDatasetFromBytes(AsBytes(negative), "x"))->Read(0, 1, &out).message()),
              HasSubstr("the id -1"));
  const std::string index = MegatronIndexFile(5, 8, {1});
  const std::string huge = BytesOf<int64_t>(int64_t{1} << 31);
  EXPECT_THAT(std::string((*MegatronDatasetFromBytes(AsBytes(index), AsBytes(huge), "x"))->Read(0, 1, &out).message()),
              HasSubstr("the id 2147483648"));
}

TEST(DatasetTest, ReadsOutsideOfTheFileAreRefused) {
  const std::string file = LlmcFile({1, 2, 3});
  const auto dataset = TokenDatasetFromBytes(AsBytes(file), "x");
  int32_t out[4];
  for (auto [begin, count] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 1}, {0, 4}, {3, 1}, {4, 0}, {0, -1}, {1, INT64_MAX}, {INT64_MAX, 1}, {INT64_MIN, 1}}) {
    EXPECT_TRUE(absl::IsOutOfRange((*dataset)->Read(begin, count, out))) << begin << " " << count;
  }
}

TEST(DatasetTest, WideTokensOfLlmc) {
  for (const int32_t version : {1, 7}) {
    std::vector<int32_t> header(256);
    header[0] = 20240801;
    header[1] = version;
    header[2] = 3;
    const std::string file = BytesOf(header) + BytesOf<uint32_t>({5, 128000, 2147483647});
    const auto dataset = TokenDatasetFromBytes(AsBytes(file), "x");
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT(ReadAll(**dataset), ElementsAre(5, 128000, 2147483647));
    EXPECT_EQ((*dataset)->description(), "llm.c, u32");
  }
}

TEST(DatasetTest, NpyOfEveryInteger) {
  const auto read = [](const std::string& type, const std::string& tokens) {
    const std::string file = NpyFile(NpyDictionary(type, 2), tokens);
    const auto dataset = TokenDatasetFromBytes(AsBytes(file), "x");
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return ReadAll(**dataset);
  };
  EXPECT_THAT(read("|u1", BytesOf<uint8_t>({3, 255})), ElementsAre(3, 255));
  EXPECT_THAT(read("<u4", BytesOf<uint32_t>({3, 1u << 30})), ElementsAre(3, 1 << 30));
  EXPECT_THAT(read("<i8", BytesOf<int64_t>({3, 1 << 30})), ElementsAre(3, 1 << 30));
  EXPECT_THAT(read("<u8", BytesOf<uint64_t>({3, 1 << 30})), ElementsAre(3, 1 << 30));
  const std::string huge = NpyFile(NpyDictionary("<u8", 2), BytesOf<uint64_t>({3, UINT64_MAX}));
  const auto dataset = TokenDatasetFromBytes(AsBytes(huge), "x");
  EXPECT_THAT(std::string((*dataset)->CheckTokens(0, 2).message()),
              HasSubstr("token 1 has the id 18446744073709551615"));
}

TEST(DatasetTest, RawTokensAreNamedByAPrefixAndNothingElseIsTakenForThem) {
  const TempDirectory directory;
  WriteWholeFile(directory / "d", BytesOf<uint16_t>({4, 5, 65535}));
  const auto dataset = OpenTokenDataset("u16:" + (directory / "d"));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(ReadAll(**dataset), ElementsAre(4, 5, 65535));
  EXPECT_EQ((*dataset)->path(), directory / "d");
  for (const auto& [content, says] :
       std::vector<std::pair<std::string, std::string>>{{LlmcFile({1}), "leave out 'u16:'"},
                                                        {"\x8a\xd8\x34\1" + LlmcFile({1}).substr(4), "evaluation"},
                                                        {std::string(400, 'a'), "is text"},
                                                        {"\x1f\x8b----", "gzip"},
                                                        {"\x89HDF\r\n\x1a\n----", "an HDF5 file"},
                                                        {std::string("\5\0\0\0\0\0\0\0{\"a\":\0", 14), "a safetensors"},
                                                        {"SQLite format 3----", "an SQLite database"},
                                                        {"12345", "no multiple of 2"},
                                                        {"", "is empty"}}) {
    WriteWholeFile(directory / "e", content);
    EXPECT_THAT(std::string(OpenTokenDataset("u16:" + (directory / "e")).status().message()), HasSubstr(says));
  }
  // A token that two bytes of another format could be.
  WriteWholeFile(directory / "d", BytesOf<uint16_t>({0x0280, 5, 65535}));
  EXPECT_TRUE(OpenTokenDataset("u16:" + (directory / "d")).ok());
}

TEST(DatasetTest, ChecksFindTheFirstTokenOutside) {
  for (const int64_t place : {0, 4095, 4096, 9998}) {
    std::vector<int32_t> tokens(9999, 6);
    tokens[static_cast<size_t>(place)] = place % 2 == 0 ? -1 : 7;
    const std::string file = NpyFile(NpyDictionary("<i4", tokens.size()), BytesOf(tokens));
    const auto dataset = TokenDatasetFromBytes(AsBytes(file), "x", {.vocabulary = 7});
    EXPECT_THAT(std::string((*dataset)->CheckTokens(0, 9999).message()),
                HasSubstr("token " + std::to_string(place) + " has the id"));
    EXPECT_TRUE((*dataset)->CheckTokens(0, place).ok());
  }
}

TEST(DatasetTest, NamesTheFilesThatItReads) {
  const TempDirectory directory;
  const std::string index = directory / "m.idx", tokens = directory / "m.bin", plain = directory / "p.bin";
  WriteWholeFile(index, MegatronIndexFile(8, 2, {1, 2}));
  WriteWholeFile(tokens, BytesOf<uint16_t>({4, 5, 6}));
  WriteWholeFile(plain, LlmcFile({4, 5, 6}));
  for (const std::string& path : {index, tokens, directory / "m"}) {
    EXPECT_EQ((*OpenTokenDataset(path))->path(), index);
    EXPECT_THAT(FilesOfTokens(path), ::testing::ElementsAre(index, tokens)) << path;
  }
  EXPECT_THAT(FilesOfTokens(plain), ::testing::ElementsAre(plain));
  for (const char* prefix : {"u16:", "u32:"}) {
    EXPECT_THAT(FilesOfTokens(prefix + tokens), ::testing::ElementsAre(tokens));
    EXPECT_EQ(PrefixOfTokens(prefix + tokens), prefix);
  }
  EXPECT_EQ(PrefixOfTokens(plain), "");
  for (const char* none : {"nowhere", "nowhere.bin"}) {
    EXPECT_THAT(FilesOfTokens(directory / none), ::testing::ElementsAre(directory / none));
  }
}

}  // namespace
}  // namespace bowline
