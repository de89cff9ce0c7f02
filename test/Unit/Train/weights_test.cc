#include "runtime/train/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/safetensors_writer.h"
#include "runtime/train/model_state.h"
#include "runtime/train/save_checkpoint.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/plan_builder.h"
#include "test/Unit/Train/toy_plan.h"
#include "types/half.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Stored {
  std::string name;
  ElementType type;
  std::vector<int64_t> shape;
  std::string bytes;
};

void WriteWeights(const std::string& path, const std::vector<Stored>& tensors) {
  std::vector<SafetensorsSource> sources;
  for (const Stored& t : tensors) sources.push_back({{t.name, t.type, t.shape}, t.bytes.data()});
  const absl::Status status = WriteSafetensors(path, sources, {});
  ASSERT_TRUE(status.ok()) << status;
}

template <typename T, typename Convert>
std::string Encode(const std::vector<float>& values, Convert convert) {
  std::string bytes;
  for (float value : values) {
    const T element = convert(value);
    bytes.append(reinterpret_cast<const char*>(&element), sizeof(T));
  }
  return bytes;
}

std::string Encode(ElementType type, const std::vector<float>& values) {
  switch (type) {
    case ElementType::kF64:
      return Encode<double>(values, [](float v) { return double{v}; });
    case ElementType::kF16:
      return Encode<uint16_t>(values, F32ToF16);
    case ElementType::kBF16:
      return Encode<uint16_t>(values, F32ToBf16);
    default:
      return Encode<float>(values, [](float v) { return v; });
  }
}

// Multiples of 1/8 below 16: exact in every type.
std::vector<float> ExactValues(size_t count) {
  static std::mt19937 random(TestSeed());
  std::vector<float> values(count);
  for (float& value : values) value = (static_cast<float>(random() % 256) - 128) / 8;
  return values;
}

// One parameter "w" of each of these types, [3, 5], and nothing to run.
std::unique_ptr<Session> ParametersSession(const std::vector<std::pair<std::string, fbs::DType>>& parameters) {
  PlanBuilder builder("parameters", 0, 1);
  for (const auto& [name, dtype] : parameters) builder.State(name, kParameterFlags, dtype, {3, 5});
  builder.BeginProgram("nothing");
  builder.BeginSegment("nothing");
  builder.Call();
  builder.Entry(fbs::EntryKind::Generate, {}, {});
  return ToySession(builder.Take());
}

TEST(WeightsTest, ConvertsEveryPairOfFloatingTypes) {
  for (ElementType from : {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
    for (fbs::DType to : {fbs::DType::F32, fbs::DType::F16, fbs::DType::BF16}) {
      const TempDirectory directory;
      const std::vector<float> values = ExactValues(15);
      WriteWeights(directory / "model.safetensors", {{"w", from, {3, 5}, Encode(from, values)}});
      const auto session = ParametersSession({{"w", to}});
      const auto loaded = LoadWeights(*session, directory.path());
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(loaded->tensors, 1);
      const std::vector<char> stored = testing::ReadTensor<char>(*session, session->State("w"));
      EXPECT_EQ(std::string(stored.begin(), stored.end()), Encode(ElementTypeOf(to), values));
    }
  }
}

TEST(WeightsTest, RoundsToTheNearest) {
  const TempDirectory directory;
  std::vector<float> values(15, 1.00390625f + 0.001f);  // just above the midpoint of two bf16
  WriteWeights(directory / "model.safetensors", {{"w", ElementType::kF32, {3, 5}, Encode(ElementType::kF32, values)}});
  const auto session = ParametersSession({{"w", fbs::DType::BF16}});
  ASSERT_TRUE(LoadWeights(*session, directory.path()).ok());
  EXPECT_EQ(testing::ReadTensor<uint16_t>(*session, session->State("w"))[7], F32ToBf16(1.0078125f));
}

TEST(WeightsTest, FindsOldNamesOfGpt2AndReportsWhatIsUnused) {
  const TempDirectory directory;
  const std::vector<float> values = ExactValues(15);
  WriteWeights(directory / "model.safetensors",
               {{"h.0.attn.w", ElementType::kF32, {3, 5}, Encode(ElementType::kF32, values)},
                {"h.0.attn.bias", ElementType::kU8, {1}, "x"}});
  const auto session = ParametersSession({{"transformer.h.0.attn.w", fbs::DType::F32}});
  const auto loaded = LoadWeights(*session, directory.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->unused, ElementsAre("h.0.attn.bias"));
  EXPECT_THAT(testing::ReadTensor<float>(*session, session->State("transformer.h.0.attn.w")),
              ::testing::ElementsAreArray(values));
}

TEST(WeightsTest, NamesEveryTensorThatDoesNotFitAndTouchesNothing) {
  const TempDirectory directory;
  const std::string bytes = Encode(ElementType::kF32, ExactValues(15));
  WriteWeights(directory / "model.safetensors", {{"good", ElementType::kF32, {3, 5}, bytes},
                                                 {"turned", ElementType::kF32, {5, 3}, bytes},
                                                 {"whole", ElementType::kI32, {3, 5}, bytes}});
  const auto session = ParametersSession({{"good", fbs::DType::F32},
                                          {"turned", fbs::DType::F32},
                                          {"whole", fbs::DType::F32},
                                          {"absent", fbs::DType::BF16}});
  const std::vector<float> before(15, 3.0f);
  testing::WriteTensor(*session, session->State("good"), before);
  const absl::Status status = LoadWeights(*session, directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'turned' is F32 [5, 3] in"), HasSubstr("'whole' is I32 [3, 5] in"),
                    HasSubstr("'absent' is missing; the plan needs BF16 [3, 5]"), Not(HasSubstr("'good'"))));
  EXPECT_EQ(testing::ReadTensor<float>(*session, session->State("good")), before);
}

TEST(WeightsTest, ADirectoryOfCheckpointsStandsForItsLatest) {
  const TempDirectory directory;
  std::vector<float> values = ExactValues(15);
  for (int64_t step : {3, 7}) {
    values[0] = static_cast<float>(step);
    ASSERT_TRUE(SaveCheckpoint(
                    directory.path(), {.step = step},
                    {{"w", CheckpointRole::kParameter, ElementType::kF32, {3, 5}, HostTensorMemory(values.data())}}, "")
                    .ok());
  }
  const auto session = ParametersSession({{"w", fbs::DType::F32}});
  const auto loaded = LoadWeights(*session, directory.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(testing::ReadTensor<float>(*session, session->State("w"))[0], 7);
}

TEST(WeightsTest, NoWeights) {
  const TempDirectory directory;
  const auto session = ParametersSession({{"w", fbs::DType::F32}});
  EXPECT_THAT(LoadWeights(*session, directory.path()).status().ToString(),
              HasSubstr("holds neither model.safetensors"));
  EXPECT_THAT(LoadWeights(*session, directory / "none").status().ToString(), HasSubstr("there is no directory"));
}

}  // namespace
}  // namespace bowline
