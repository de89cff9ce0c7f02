// Every way in which a token file can be wrong, and the message for each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/data/dataset.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/token_files.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'d.bin'"));
  return std::string(status.message());
}

std::string ErrorOf(const std::string& file) {
  return MessageOf(TokenDatasetFromBytes(AsBytes(file), "d.bin").status());
}

std::string MegatronError(const std::string& index, const std::string& tokens) {
  return MessageOf(MegatronDatasetFromBytes(AsBytes(index), AsBytes(tokens), "d.bin").status());
}

template <typename T>
std::string Patched(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

TEST(DatasetBadInputTest, UnknownFormat) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf("some text"), HasSubstr("neither llm.c's magic 20240520 or 20240801 nor that of .npy"));
  EXPECT_THAT(ErrorOf(Patched(LlmcFile({1}), 0, int32_t{20240802})), HasSubstr("give it as u16:d.bin"));
  EXPECT_THAT(ErrorOf(Patched(LlmcFile({1}), 0, int32_t{20240522})), HasSubstr("questions for llm.c's evaluation"));
  EXPECT_THAT(ErrorOf(Patched(LlmcFile({1}), 0, int32_t{-1999096831})), HasSubstr("in big-endian order"));
}

TEST(DatasetBadInputTest, Llmc) {
  const std::string good = LlmcFile({1, 2, 3});
  EXPECT_THAT(ErrorOf(good.substr(0, 1023)), HasSubstr("less than the llm.c header's 1024"));
  EXPECT_THAT(ErrorOf(Patched(good, 4, int32_t{2})), HasSubstr("version 2; supported is version 1"));
  EXPECT_THAT(ErrorOf(good.substr(0, good.size() - 1)),
              HasSubstr("the header promises 3 tokens, 6 bytes, but 5 bytes follow it"));
  EXPECT_THAT(ErrorOf(good + "x"), HasSubstr("7 bytes follow"));
  EXPECT_THAT(ErrorOf(Patched(good, 8, int32_t{-1})), HasSubstr("promises 4294967295 tokens"));
}

TEST(DatasetBadInputTest, Npy) {
  const std::string data = BytesOf<uint16_t>({1, 2});
  const std::string good = NpyFile(NpyDictionary("<u2", 2), data);
  EXPECT_THAT(ErrorOf(good.substr(0, 7)), HasSubstr("ends before its version"));
  EXPECT_THAT(ErrorOf(good.substr(0, 9)), HasSubstr("ends before its header"));
  EXPECT_THAT(ErrorOf(good.substr(0, 30)), HasSubstr("runs beyond the end of the file"));
  EXPECT_THAT(ErrorOf(NpyFile(NpyDictionary("<u2", 2), data, 3)), HasSubstr("format version 3 is not supported"));
  for (const char* type : {">u2", "<f4", "|b1", "<c8"}) {
    EXPECT_THAT(ErrorOf(NpyFile(NpyDictionary(type, 2), data)), HasSubstr(std::string("array of type '") + type));
  }
  EXPECT_THAT(ErrorOf(NpyFile(NpyDictionary("<u2", 3), data)), HasSubstr("promises 3 elements of 2 bytes but 4 bytes"));
  EXPECT_THAT(ErrorOf(NpyFile(NpyDictionary("<u2", 2), data + "x")), HasSubstr("but 5 bytes follow"));
  EXPECT_THAT(ErrorOf(NpyFile("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }", data)),
              HasSubstr("array has 2 dimensions"));
  EXPECT_THAT(ErrorOf(NpyFile("{'descr': '<u2', 'fortran_order': False, 'shape': (), }", data.substr(2))),
              HasSubstr("array has 0 dimensions"));
  EXPECT_THAT(ErrorOf(NpyFile("{'descr': '<u2', 'fortran_order': True, 'shape': (2,), }", data)),
              HasSubstr("Fortran order"));
  // 2^63 elements of two bytes wrap to 0.
  EXPECT_THAT(ErrorOf(NpyFile("{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775808,), }", "")),
              HasSubstr("promises too many elements"));
}

TEST(DatasetBadInputTest, NpyHeaderSyntax) {
  for (const char* dictionary :
       {"", "[]", "{", "{}", "{'descr'}", "{'descr': '<u2'}", "{'descr': '<u2", "{'descr': [('a', '<u2')]}",
        "{'descr': '<u2', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': 2}", "{'descr': '<u2', 'fortran_order': False, 'shape': (2",
        "{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    EXPECT_THAT(ErrorOf(NpyFile(dictionary, "1234")), HasSubstr("is not a dictionary of descr")) << dictionary;
  }
}

TEST(DatasetBadInputTest, Megatron) {
  const std::string tokens = BytesOf<uint16_t>({4, 5, 6});
  const std::string good = MegatronIndexFile(8, 2, {2, 1});
  constexpr size_t kVersion = 9, kCode = 17, kSequences = 18, kDocuments = 26, kSizes = 34, kPointers = kSizes + 8;
  EXPECT_THAT(MegatronError("MMIDIDX", tokens), HasSubstr("index magic"));
  EXPECT_THAT(MegatronError(good.substr(0, 33), tokens), HasSubstr("less than the index header's 34"));
  EXPECT_THAT(MegatronError(Patched(good, kVersion, uint64_t{2}), tokens), HasSubstr("of version 2; supported is 1"));
  for (uint8_t code : {0, 6, 7, 9, 255}) {
    EXPECT_THAT(MegatronError(Patched(good, kCode, code), tokens),
                HasSubstr("type code " + std::to_string(code) + " is none of"));
  }
  EXPECT_THAT(MegatronError(good.substr(0, good.size() - 1), tokens), HasSubstr("do not fit the 47 bytes"));
  for (uint64_t count : {uint64_t{1}, uint64_t{3}, uint64_t{1} << 62, UINT64_MAX, uint64_t{0x1555555555555556}}) {
    EXPECT_THAT(MegatronError(Patched(good, kSequences, count), tokens), HasSubstr("promises"));
    if (count != 3) EXPECT_THAT(MegatronError(Patched(good, kDocuments, count), tokens), HasSubstr("promises"));
  }
  EXPECT_THAT(MegatronError(Patched(good, kPointers, int64_t{2}), tokens), HasSubstr("begins at byte 2, not at 0"));
  EXPECT_THAT(MegatronError(Patched(good, kPointers + 8, int64_t{-2}), tokens), HasSubstr("begins at byte -2"));
  EXPECT_THAT(MegatronError(Patched(good, kSizes + 4, int32_t{-1}), tokens), HasSubstr("has size -1"));
  EXPECT_THAT(MegatronError(good, tokens.substr(1)),
              HasSubstr("end at byte 6 but the .bin file beside it has 5 bytes"));
  EXPECT_THAT(MegatronError(good, ""), HasSubstr("has 0 bytes"));
}

TEST(DatasetBadInputTest, MegatronInteriorIsCheckedOnRequest) {
  const std::string tokens = BytesOf<uint16_t>({4, 5, 6});
  const std::string good = MegatronIndexFile(8, 2, {1, 1, 1});
  const auto check = [&](const std::string& index) {
    return MessageOf((*MegatronDatasetFromBytes(AsBytes(index), AsBytes(tokens), "d.bin"))->CheckIndex());
  };
  EXPECT_THAT(check(Patched(good, 34 + 12 + 8, int64_t{4})), HasSubstr("sequence 1 begins at byte 4"));
  EXPECT_THAT(check(Patched(good, 34, int32_t{-1})), HasSubstr("sequence 0 has size -1"));
  EXPECT_THAT(check(Patched(good, good.size() - 8, int64_t{1})), HasSubstr("document index 3 is 1"));
  EXPECT_THAT(check(Patched(good, good.size() - 8, int64_t{4})), HasSubstr("document index 3 is 4"));
}

TEST(DatasetBadInputTest, Files) {
  const TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(OpenTokenDataset(directory / "none").status()));
  EXPECT_EQ(ExitCode(OpenTokenDataset(directory.path()).status()), 1);
  WriteWholeFile(directory / "index", MegatronIndexFile(8, 2, {1}));
  EXPECT_THAT(std::string(OpenTokenDataset(directory / "index").status().message()), HasSubstr("name it .idx"));
  WriteWholeFile(directory / "d.idx", MegatronIndexFile(8, 2, {1}));
  EXPECT_THAT(std::string(OpenTokenDataset(directory / "d.idx").status().message()), HasSubstr("d.bin': No such file"));
}

}  // namespace
}  // namespace bowline
