#include "runtime/base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "runtime/base/safetensors_writer.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/safetensors_bytes.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

TEST(SafetensorsTest, ReadsAFileThatAnotherProgramWrote) {
  const std::string bytes = SafetensorsBytes(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
      R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"none":{"dtype":"I64","shape":[3,0],"data_offsets":[10,10]}}   )",
      std::string("\x80\x3f", 2) + Floats({1.5f, -2}));
  const auto file = SafetensorsFile::FromBytes(AsBytes(bytes), "x");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata(), ElementsAre(Pair("format", "pt")));
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[0].name, "a");  // in the order of the data

  const SafetensorsTensor* a = file->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, ElementType::kBF16);
  EXPECT_THAT(a->shape, ElementsAre());
  EXPECT_EQ(a->elements, 1);
  float scalar = 0;
  ASSERT_TRUE(file->ReadF32(*a, {&scalar, 1}).ok());
  EXPECT_EQ(scalar, 1.0f);

  std::vector<float> b(2);
  ASSERT_TRUE(file->ReadF32(*file->Find("b"), absl::MakeSpan(b)).ok());  // at an odd address
  EXPECT_THAT(b, ElementsAre(1.5f, -2));
  EXPECT_EQ(file->Find("none")->elements, 0);
  EXPECT_TRUE(file->ReadF32(*file->Find("none"), {}).ok());
  EXPECT_EQ(file->Find("c"), nullptr);
  EXPECT_FALSE(file->ReadF32(*file->Find("b"), {&scalar, 1}).ok());
}

TEST(SafetensorsTest, AFileWithoutTensors) {
  const std::string bytes = SafetensorsBytes("{}", "");
  EXPECT_TRUE(SafetensorsFile::FromBytes(AsBytes(bytes), "x")->tensors().empty());
}

TEST(SafetensorsTest, RandomSlicesEqualIndexing) {
  std::mt19937 random(TestSeed());
  const TempDirectory directory;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> shape(random() % 5);
    for (int64_t& size : shape) size = 1 + static_cast<int64_t>(random() % 5);
    const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<int32_t> data(static_cast<size_t>(elements));
    for (int32_t& value : data) value = static_cast<int32_t>(random() % 100'000);
    const SafetensorsSource source = {{"t", ElementType::kI32, shape}, data.data()};
    ASSERT_TRUE(WriteSafetensors(directory / "t", {&source, 1}).ok());
    const auto file = SafetensorsFile::Open(directory / "t");
    ASSERT_TRUE(file.ok()) << file.status();

    std::vector<int64_t> starts, sizes;
    int64_t count = 1;
    for (int64_t size : shape) {
      starts.push_back(static_cast<int64_t>(random()) % (size + 1));
      sizes.push_back(random() % 2 ? size - starts.back()
                                   : static_cast<int64_t>(random()) % (size - starts.back() + 1));
      count *= sizes.back();
    }
    std::vector<float> slice(static_cast<size_t>(count), -1);
    ASSERT_TRUE(file->ReadSliceF32(*file->Find("t"), starts, sizes, absl::MakeSpan(slice)).ok());
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, element = 0, stride = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        element += (starts[d] + rest % sizes[d]) * stride;
        rest /= sizes[d];
        stride *= shape[d];
      }
      ASSERT_EQ(slice[static_cast<size_t>(i)], static_cast<float>(data[static_cast<size_t>(element)]));
    }
  }
}

TEST(SafetensorsTest, SlicesOutsideAreRefused) {
  const std::string bytes =
      SafetensorsBytes(R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", std::string(24, '\0'));
  const auto file = SafetensorsFile::FromBytes(AsBytes(bytes), "x");
  const SafetensorsTensor& tensor = *file->Find("t");
  std::vector<float> out(6);
  const auto read = [&](std::vector<int64_t> starts, std::vector<int64_t> sizes, size_t count) {
    return file->ReadSliceF32(tensor, starts, sizes, absl::MakeSpan(out).subspan(0, count));
  };
  EXPECT_TRUE(read({0, 0}, {2, 3}, 6).ok());
  EXPECT_TRUE(read({2, 3}, {0, 0}, 0).ok());
  EXPECT_FALSE(read({0, 0}, {2, 3}, 5).ok());
  EXPECT_FALSE(read({0}, {2}, 2).ok());
  EXPECT_FALSE(read({0, -1}, {1, 1}, 1).ok());
  EXPECT_FALSE(read({0, 1}, {1, -1}, 1).ok());
  EXPECT_FALSE(read({0, 1}, {2, INT64_MAX}, 6).ok());
  EXPECT_THAT(std::string(read({1, 1}, {1, 3}, 3).message()), HasSubstr("tensor 't' F32 [2, 3]: slice from [1, 1]"));
}

TEST(SafetensorsTest, WritingIsDeterministicSortedAndAligned) {
  const TempDirectory directory;
  const std::vector<float> floats = {1, 2, 3};
  const std::vector<int64_t> longs = {-7};
  const std::vector<uint16_t> halves = {0x3c00};
  std::vector<SafetensorsSource> sources = {{{"h", ElementType::kF16, {1}}, halves.data()},
                                            {{"z", ElementType::kF32, {3, 1}}, floats.data()},
                                            {{"a", ElementType::kF32, {}}, floats.data()},
                                            {{"n", ElementType::kI64, {}}, longs.data()},
                                            {{"empty", ElementType::kF32, {0, 5}}, nullptr}};
  ASSERT_TRUE(WriteSafetensors(directory / "1", sources, {{"k", "v"}}).ok());
  std::reverse(sources.begin(), sources.end());
  ASSERT_TRUE(WriteSafetensors(directory / "2", sources, {{"k", "v"}}).ok());
  EXPECT_EQ(ReadWholeFile(directory / "1"), ReadWholeFile(directory / "2"));

  const auto file = SafetensorsFile::Open(directory / "1");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata(), ElementsAre(Pair("k", "v")));
  EXPECT_EQ(file->tensors().front().name, "n");
  EXPECT_EQ(file->tensors().front().offset % 64, 0u);
  for (const SafetensorsTensor& tensor : file->tensors()) EXPECT_EQ(tensor.offset % SizeOf(tensor.type), 0u);
  for (const SafetensorsSource& source : sources) {
    const SafetensorsTensor* tensor = file->Find(source.spec.name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shape, source.spec.shape);
    EXPECT_EQ(tensor->type, source.spec.type);
    EXPECT_TRUE(tensor->bytes == 0 || std::memcmp(file->Bytes(*tensor).data(), source.data, tensor->bytes) == 0);
  }
}

TEST(SafetensorsTest, TheWriterRefusesWhatItCannotWriteAndLeavesNothing) {
  const TempDirectory directory;
  const float value = 1;
  const auto write = [&](std::vector<SafetensorsSpec> specs) {
    std::vector<SafetensorsSource> sources;
    for (const auto& spec : specs) sources.push_back({spec, &value});
    return WriteSafetensors(directory / "f", sources);
  };
  EXPECT_THAT(std::string(write({{"a"}, {"a"}}).message()), HasSubstr("'a' is used twice"));
  EXPECT_THAT(std::string(write({{"__metadata__"}}).message()), HasSubstr("reserved"));
  EXPECT_THAT(std::string(write({{"a", ElementType::kF32, {-1}}}).message()), HasSubstr("negative"));
  EXPECT_THAT(std::string(write({{"a", ElementType::kF32, {INT64_MAX, 4}}}).message()), HasSubstr("63 bits"));
  EXPECT_EQ(ExitCode(write({{"\xff"}})), 1);
  auto writer = SafetensorsWriter::Create(directory / "f", {{"a"}});
  ASSERT_TRUE(writer.ok());
  EXPECT_THAT(std::string(writer->Finish().message()), HasSubstr("its header promises"));
  {
    auto destroyed = std::move(writer);
  }
  EXPECT_TRUE(directory.List().empty());
}

}  // namespace
}  // namespace bowline
