#include "runtime/train/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/safetensors_writer.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/model_state.h"
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

// Of a plan of one parameter, with the config.json that it was compiled from, the keys that its family read, and the
// tensors that it does not read.
std::unique_ptr<Session> SessionOf(const std::string& config, const std::string& function_keys = "{}",
                                   const std::string& ignored_tensors = "{}") {
  PlanBuilder builder("parameters", 0, 1);
  builder.State("w", kParameterFlags, fbs::DType::F32, {3, 5});
  builder.BeginProgram("nothing");
  builder.BeginSegment("nothing");
  builder.Call();
  builder.Entry(fbs::EntryKind::Generate, {}, {});
  fbs::PlanT plan = builder.Take();
  for (const auto& [name, text] : {std::pair(kConfigAttachment, config),
                                   {kFunctionKeysAttachment, function_keys},
                                   {kIgnoredTensorsAttachment, ignored_tensors}}) {
    auto attachment = std::make_unique<fbs::AttachmentT>();
    attachment->name = name;
    attachment->text = text;
    plan.attachments.push_back(std::move(attachment));
  }
  return ToySession(std::move(plan));
}

TEST(WeightsTest, WhatAModelHasAndThePlanDoesNotIsRefused) {
  const TempDirectory directory;
  const std::string bytes = Encode(ElementType::kF32, ExactValues(15));
  const auto session = SessionOf("{}", "{}", R"({"lm_head.weight": "w", "h.1.attn.bias": ""})");
  const auto load = [&](const std::string& other) {
    WriteWeights(directory / "model.safetensors",
                 {{"w", ElementType::kF32, {3, 5}, bytes}, {other, ElementType::kF32, {3, 5}, bytes}});
    return LoadWeights(*session, directory.path());
  };
  for (const char* ignored : {"lm_head.weight", "h.1.attn.bias"}) {
    const auto loaded = load(ignored);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_THAT(loaded->unused, ElementsAre(ignored));
  }
  for (const char* other : {"model.layers.2.mlp.up_proj.weight", "h.2.attn.bias", "score"}) {
    const absl::Status status = load(other).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("'", other, "' is F32 [3, 5]")), HasSubstr("would ignore it")));
  }
}

TEST(WeightsTest, AParameterThatTheIndexAloneHasIsNamed) {
  const TempDirectory directory;
  const auto session = SessionOf("{}", "{}", "{}");
  WriteWeights(directory / "1.safetensors",
               {{"w", ElementType::kF32, {3, 5}, Encode(ElementType::kF32, ExactValues(15))}});
  WriteWholeFile(directory / "model.safetensors.index.json",
                 R"({"weight_map": {"w": "1.safetensors", "head": "1.safetensors"}})");
  const auto loaded = LoadWeights(*session, directory.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  WriteWeights(directory / "1.safetensors",
               {{"head", ElementType::kF32, {3, 5}, Encode(ElementType::kF32, ExactValues(15))}});
  const absl::Status status = LoadWeights(*session, directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'w', which '"), HasSubstr("index.json' lists in '"),
                    HasSubstr("1.safetensors', but that"), HasSubstr("; the plan needs F32 [3, 5]")));
}

TEST(WeightsTest, TheHeadOfATiedModelIsItsEmbedding) {
  const auto session = SessionOf("{}", "{}", R"({"lm_head.weight": "w"})");
  const std::vector<float> values = ExactValues(15);
  std::vector<float> others = values;
  others[14] += 1;
  const struct {
    ElementType type;
    std::vector<int64_t> shape;
    const std::vector<float>& values;
    bool is_copy;
  } heads[] = {{ElementType::kF32, {3, 5}, values, true},
               {ElementType::kF32, {3, 5}, others, false},
               {ElementType::kF32, {5, 3}, values, false},
               {ElementType::kF16, {3, 5}, values, false}};
  for (const auto& head : heads) {
    const TempDirectory directory;
    WriteWeights(directory / "model.safetensors",
                 {{"w", ElementType::kF32, {3, 5}, Encode(ElementType::kF32, values)},
                  {"lm_head.weight", head.type, head.shape, Encode(head.type, head.values)}});
    const absl::Status status = LoadWeights(*session, directory.path()).status();
    if (head.is_copy) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("'lm_head.weight' differs from 'w', which the plan uses"));
    }
  }
}

TEST(WeightsTest, ConfigurationsOfTheSameFunctionAreEqual) {
  const struct {
    const char *plan, *weights;
    std::vector<std::string> differences;
  } cases[] = {
      {R"({"rope_theta": 10000.0, "rms_norm_eps": 1e-05})",
       R"({"rope_theta": 10000, "rms_norm_eps": 9.9999997e-06})",
       {}},
      {R"({"rope_theta": 5e5, "rope_scaling": null})",
       R"({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}})",
       {}},
      {R"({"use_cache": true, "n_head": 4})", R"({"n_head": 4, "temperature": 2})", {}},
      {R"({"use_sliding_window": false, "sliding_window": 9})",
       R"({"use_sliding_window": true, "sliding_window": 9})",
       {"\"use_sliding_window\" is true, but false in the plan"}},
      // Windows that hide nothing.
      {R"({"use_sliding_window": false})", R"({"use_sliding_window": true, "sliding_window": null})", {}},
      {R"({"use_sliding_window": true, "max_window_layers": 4, "num_hidden_layers": 4})",
       R"({"use_sliding_window": false})",
       {}},
      {R"({"use_sliding_window": false})",
       R"({"use_sliding_window": true, "sliding_window": 9, "max_position_embeddings": 9})",
       {}},
      {R"({"use_sliding_window": false})",
       R"({"use_sliding_window": true, "sliding_window": 8, "max_position_embeddings": 9})",
       {"\"use_sliding_window\" is true, but false in the plan"}},
      // Scalings that scale nothing.
      {R"({"rope_scaling": null})", R"({"rope_scaling": {"rope_type": "default", "factor": 1.0}})", {}},
      {R"({})", R"({"rope_parameters": {"type": "linear", "factor": 1, "beta_fast": null}})", {}},
      // A key that no family has: it is compared if the plan names it.
      {R"({"logit_cap": 30})", R"({"logit_cap": 50})", {"\"logit_cap\" is 50, but 30 in the plan"}},
      {R"({"logit_cap": null})", R"({"logit_cap": 50})", {}},
      // An absent key counts as its default in comparisons.
      {R"({})", R"({"rms_norm_eps": 1e-06})", {}},
      {R"({"rms_norm_eps": 1e-06})", R"({"rms_norm_eps": null})", {}},
      {R"({})", R"({"rms_norm_eps": 0.5})", {"\"rms_norm_eps\" is 0.5, but 1e-06 in the plan"}},
      {R"({"rope_theta": 5e5})", R"({})", {"\"rope_theta\" is 10000.0, but 500000.0 in the plan"}},
      {R"({})", R"({"rope_parameters": {"rope_theta": 5e5}})", {"\"rope_theta\" is 500000.0, but 10000.0 in the plan"}},
      {R"({"rope_scaling": {"type": "linear", "factor": 2.0}})",
       R"({"rope_scaling": {"rope_type": "linear", "factor": 2}})",
       {}},
      {R"({"num_attention_heads": 8})",
       R"({"num_attention_heads": 4})",
       {"\"num_attention_heads\" is 4, but 8 in the plan"}},
      {R"({"rope_theta": 10000.0})",
       R"({"rope_parameters": {"rope_theta": 5e5}})",
       {"\"rope_theta\" is 500000.0, but 10000.0 in the plan"}},
      {R"({"rms_norm_eps": 1e-05, "sliding_window": null})",
       R"({"rms_norm_eps": 1e-06, "sliding_window": 64})",
       {"\"rms_norm_eps\" is 1e-06, but 1e-05 in the plan", "\"sliding_window\" is 64, but null in the plan"}},
      {R"({"rope_scaling": {"rope_type": "linear", "factor": 2}})",
       R"({"rope_scaling": {"rope_type": "linear", "factor": 4}})",
       {"\"rope_scaling.factor\" is 4, but 2 in the plan"}},
      {R"({})",
       R"({"rope_scaling": {"rope_type": "linear"}})",
       {"\"rope_scaling\" is {\"rope_type\":\"linear\"}, but {} in the plan"}},
  };
  const std::string bytes = Encode(ElementType::kF32, ExactValues(15));
  for (const auto& c : cases) {
    const TempDirectory directory;
    WriteWeights(directory / "model.safetensors", {{"w", ElementType::kF32, {3, 5}, bytes}});
    WriteWholeFile(directory / "config.json", c.weights);
    const auto session = SessionOf(c.plan, R"({"logit_cap": {"null": false}, "n_head": {"null": false},
        "num_attention_heads": {"null": false}, "rms_norm_eps": {"null": false, "absent": 1e-6},
        "rope_theta": {"null": false, "absent": 10000.0}, "sliding_window": {"null": true},
        "use_sliding_window": {"null": false}})");
    const auto reported = LoadWeights(*session, directory.path(), OtherConfig::kReport);
    ASSERT_TRUE(reported.ok()) << reported.status();
    EXPECT_EQ(reported->config_differences, c.differences) << c.plan;
    const absl::Status status = LoadWeights(*session, directory.path()).status();
    EXPECT_EQ(status.ok(), c.differences.empty()) << status;
    for (const std::string& difference : c.differences) {
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(directory / "config.json"), HasSubstr(difference)));
    }
  }
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
