// Every way in which a safetensors file can be wrong, and the message for each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/base/safetensors.h"
#include "test/Unit/Base/safetensors_bytes.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status StatusOfBytes(const std::string& bytes) {
  return SafetensorsFile::FromBytes(AsBytes(bytes), "m.safetensors").status();
}

std::string ErrorOf(const std::string& header, size_t data_bytes = 0) {
  const absl::Status status = StatusOfBytes(SafetensorsBytes(header, std::string(data_bytes, 'x')));
  EXPECT_FALSE(status.ok()) << header;
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'m.safetensors'"));
  return std::string(status.message());
}

// A header with the one tensor "t".
std::string Tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(SafetensorsBadInputTest, TooShortForItsHeader) {
  EXPECT_TRUE(absl::IsDataLoss(StatusOfBytes("")));
  EXPECT_THAT(std::string(StatusOfBytes(std::string(7, '\1')).message()), HasSubstr("has 7 bytes"));
  EXPECT_THAT(std::string(StatusOfBytes("1234567").message()), HasSubstr("it is text, and begins with '1234567'"));
  std::string bytes = SafetensorsBytes("{}", "");
  bytes[0] = 3;
  const absl::Status status = StatusOfBytes(bytes);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("header length 3 runs beyond the file of 10 bytes"));
}

TEST(SafetensorsBadInputTest, OversizedHeader) {
  EXPECT_THAT(std::string(StatusOfBytes(std::string(8, '\xff')).message()),
              HasSubstr("header length 18446744073709551615 is above the limit 100000000"));
}

TEST(SafetensorsBadInputTest, HeaderIsNoJsonObject) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf("{\"t\":"), HasSubstr("header: not valid JSON"));
  EXPECT_THAT(ErrorOf(R"({"t": 1})"), HasSubstr("tensor 't': should be an object but is an integer"));
  EXPECT_THAT(ErrorOf("{\"a\":[[[1]]]}"), HasSubstr("nested more than 3 deep"));
}

TEST(SafetensorsBadInputTest, MetadataIsNoMapOfStrings) {
  EXPECT_THAT(ErrorOf(R"({"__metadata__": [1]})"), HasSubstr("\"__metadata__\" should be an object"));
  EXPECT_THAT(ErrorOf(R"({"__metadata__": {"k": 1}})"), HasSubstr("the value of \"k\" should be a string"));
}

TEST(SafetensorsBadInputTest, DuplicateName) {
  const std::string value = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(ErrorOf("{\"t\":" + value + ",\"t\":" + value + "}"), HasSubstr("key \"t\" appears twice"));
}

TEST(SafetensorsBadInputTest, KeysAreMissingOrUnknown) {
  EXPECT_THAT(ErrorOf(R"({"t":{"shape":[],"data_offsets":[0,4]}})", 4), HasSubstr("\"dtype\" should be a string"));
  EXPECT_THAT(ErrorOf(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", 4), HasSubstr("\"shape\" should be an array"));
  EXPECT_THAT(ErrorOf(R"({"t":{"dtype":"F32","shape":[]}})", 4), HasSubstr("\"data_offsets\" should be an array"));
  EXPECT_THAT(ErrorOf(R"({"t":{"dtype":"F32","shape":[],"data_offsets":[0,4],"scale":1}})", 4),
              HasSubstr("unknown key \"scale\""));
}

TEST(SafetensorsBadInputTest, Dtype) {
  EXPECT_THAT(ErrorOf(Tensor("\"F8_E4M3\"", "[4]", "[0,4]"), 4),
              AllOf(HasSubstr("tensor 't': dtype \"F8_E4M3\" is not supported"), HasSubstr("F32, F64, BF16, F16")));
  EXPECT_THAT(ErrorOf(Tensor("7", "[4]", "[0,4]"), 4), HasSubstr("\"dtype\" should be a string"));
}

TEST(SafetensorsBadInputTest, Shape) {
  for (const char* shape : {"[-1]", "[1.5]", "[\"1\"]", "[9223372036854775808]", "[18446744073709551616]", "[null]"}) {
    EXPECT_THAT(ErrorOf(Tensor("\"F32\"", shape, "[0,4]"), 4), HasSubstr("\"shape\" should hold integers from 0 on"));
  }
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "4", "[0,4]"), 4), HasSubstr("\"shape\" should be an array"));
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[4294967296,4294967296]", "[0,0]")), HasSubstr("63 bits"));
  // 2^62 elements of 4 bytes wrap to 0.
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[4611686018427387904]", "[0,0]")), HasSubstr("63 bits"));
  std::string long_shape = "[1";
  for (int i = 0; i < 64; ++i) long_shape += ",1";
  EXPECT_THAT(ErrorOf(Tensor("\"U8\"", long_shape + "]", "[0,1]"), 1), HasSubstr("has 65 dimensions"));
}

TEST(SafetensorsBadInputTest, Offsets) {
  for (const char* offsets : {"[0]", "[0,4,8]", "[0,-4]", "[0,4.0]", "{}", "[0,1e30]"}) {
    EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[1]", offsets), 4), HasSubstr("\"data_offsets\" should be an array of two"));
  }
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[1]", "[4,0]"), 4), HasSubstr("data_offsets [4, 0] run backwards"));
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[2]", "[0,4]"), 4), HasSubstr("hold 4 bytes, but F32 [2] needs 8"));
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[2]", "[0,8]"), 7), HasSubstr("beyond the end of the file"));
  EXPECT_THAT(ErrorOf(Tensor("\"F32\"", "[1]", "[18446744073709551608,18446744073709551612]"), 4),
              HasSubstr("beyond the end of the file"));
}

TEST(SafetensorsBadInputTest, OverlapAndHoles) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_THAT(ErrorOf(two("[0,4]", "[3,7]"), 7), HasSubstr("data of tensor 'b' overlaps that of tensor 'a'"));
  EXPECT_THAT(ErrorOf(two("[0,4]", "[0,4]"), 4), HasSubstr("overlaps"));
  EXPECT_THAT(ErrorOf(two("[0,4]", "[5,9]"), 9), HasSubstr("1 bytes before the data of tensor 'b'"));
  EXPECT_THAT(ErrorOf(two("[0,4]", "[4,8]"), 10), HasSubstr("2 bytes at the end belong to no tensor"));
  EXPECT_THAT(ErrorOf("{}", 3), HasSubstr("3 bytes at the end"));
  // An empty tensor inside of another one's data.
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                      4),
              HasSubstr("overlaps"));
}

// Whatever happens to a good file on its way, the reader answers.
TEST(SafetensorsBadInputTest, EveryTruncationIsAnErrorAndNoBitFlipHurts) {
  const std::string good = SafetensorsBytes(
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[16,19]}})",
      std::string(19, 'x'));
  ASSERT_TRUE(StatusOfBytes(good).ok());
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(StatusOfBytes(good.substr(0, length)).ok());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const auto file = SafetensorsFile::FromBytes(AsBytes(bad), "x");
    if (!file.ok()) continue;
    for (const SafetensorsTensor& tensor : file->tensors()) {
      std::vector<float> out(static_cast<size_t>(tensor.elements));
      EXPECT_TRUE(file->ReadF32(tensor, absl::MakeSpan(out)).ok());
    }
  }
}

}  // namespace
}  // namespace bowline
