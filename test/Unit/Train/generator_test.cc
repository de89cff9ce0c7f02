#include "runtime/train/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "runtime/train/token_sampling.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/toy_plan.h"

namespace bowline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::ReadTensor;
using testing::WriteTensor;

const std::atomic<bool> kNeverStop{false};

// A generation session with random parameters, different for each seed.
std::unique_ptr<Session> RandomSession(const ToyShape& shape, uint32_t seed) {
  auto session = ToySession(ToyGeneratePlan(shape));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const char* key : {kToyEmbedKey, kToyHeadKey}) {
    std::vector<float> values(ReadTensor<float>(*session, session->State(key)).size());
    for (float& value : values) value = normal(random);
    WriteTensor(*session, session->State(key), values);
  }
  return session;
}

absl::StatusOr<std::string> GenerateText(Session& session, absl::string_view prompt, const GenerateOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(Generator generator, Generator::Create(&session));
  std::string text;
  const auto append = [&](absl::string_view bytes) {
    text.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  };
  BOWLINE_RETURN_IF_ERROR(generator.Generate(prompt, options, append, kNeverStop));
  return text;
}

// The greedy continuation by the model in double, which sees the last `sequence` tokens.
std::string GreedyReference(const ToyShape& shape, const Session& session, const std::string& prompt, int count) {
  const ToyReference reference(shape, session);
  std::vector<int32_t> text;
  for (char c : prompt) text.push_back(static_cast<uint8_t>(c));
  std::string result;
  for (int i = 0; i < count; ++i) {
    const size_t seen = std::min(text.size(), static_cast<size_t>(shape.sequence));
    std::vector<double> logits = reference.Logits({text.data() + text.size() - seen, seen});
    logits.resize(std::min<size_t>(logits.size(), 256));
    text.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    result.push_back(static_cast<char>(text.back()));
  }
  return result;
}

TEST(GeneratorTest, GreedyEqualsTheModelInDoubleBeyondTheContext) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(seed);
  for (int64_t vocabulary : {97, 256, 300}) {
    const ToyShape shape = {.vocabulary = vocabulary, .sequence = 7, .width = 5};
    const auto session = RandomSession(shape, seed);
    for (const std::string prompt : {"A", "a b c", "a prompt that is longer than what the model can see"}) {
      std::string lowered = prompt;
      for (char& c : lowered) c = static_cast<char>(c % 97);
      const auto text = GenerateText(*session, lowered, {.max_new_tokens = 30, .temperature = 0});
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, GreedyReference(shape, *session, lowered, 30)) << vocabulary << " " << prompt;
    }
  }
}

TEST(GeneratorTest, TheSeedDecidesTheText) {
  const ToyShape shape = {.vocabulary = 256, .sequence = 8};
  const auto session = RandomSession(shape, 5);
  const auto text = [&](uint64_t seed) {
    return *GenerateText(*session, "x", {.max_new_tokens = 40, .temperature = 1, .seed = seed});
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
  EXPECT_EQ(text(3).size(), 40u);
  // Every byte can come out, also those that are no UTF-8.
  const std::string four = text(4);
  EXPECT_TRUE(std::any_of(four.begin(), four.end(), [](char c) { return static_cast<uint8_t>(c) >= 0x80; }));
}

TEST(GeneratorTest, EachTextBeginsWithEmptyCaches) {
  const ToyShape shape = {.vocabulary = 97, .cache = true};
  const auto session = ToySession(ToyGeneratePlan(shape));
  const auto cache = [&] { return ReadTensor<float>(*session, session->State(kToyCacheKey)); };
  WriteTensor(*session, session->State(kToyCacheKey), std::vector<float>{5, 5});
  for (int text : {0, 1}) {
    ASSERT_TRUE(GenerateText(*session, "A", {.max_new_tokens = 0}).ok());
    EXPECT_THAT(cache(), Each(kToyEmpty)) << text;
    ASSERT_TRUE(GenerateText(*session, "A", {.max_new_tokens = 2}).ok());
    EXPECT_THAT(cache(), Each(kToyUsed)) << text;
  }
  fbs::PlanT without = ToyGeneratePlan(shape), training = ToyGeneratePlan(shape);
  without.entries.pop_back();
  EXPECT_THAT(GenerateText(*ToySession(std::move(without)), "A", {.max_new_tokens = 1}).status().ToString(),
              HasSubstr("lacks, beside it, an entry of kind Init that sets the states of a request and no weights"));
  auto step = std::make_unique<fbs::EntryT>(*training.entries[1]);
  step->name = "step";
  step->kind = fbs::EntryKind::TrainStep;
  training.entries.push_back(std::move(step));
  EXPECT_THAT(GenerateText(*ToySession(std::move(training)), "A", {.max_new_tokens = 1}).status().ToString(),
              HasSubstr("an entry of kind Init that sets the states of a request and no weights"));
}

TEST(GeneratorTest, BadInput) {
  const ToyShape shape = {.vocabulary = 97};
  const auto session = RandomSession(shape, 5);
  EXPECT_THAT(GenerateText(*session, "", {.max_new_tokens = 1}).status().ToString(), HasSubstr("the prompt is empty"));
  EXPECT_THAT(GenerateText(*session, "A\xc3", {.max_new_tokens = 1}).status().ToString(),
              HasSubstr("byte 1 of the prompt has the value 195, but the model's vocabulary has 97 ids"));
  std::vector<float> head = ReadTensor<float>(*session, session->State(kToyHeadKey));
  head[40] = std::numeric_limits<float>::quiet_NaN();
  WriteTensor(*session, session->State(kToyHeadKey), head);
  EXPECT_THAT(GenerateText(*session, "AB", {.max_new_tokens = 1}).status().ToString(),
              HasSubstr("the logits after token 2 are not finite"));
  const auto training = ToySession(ToyTrainPlan());
  EXPECT_THAT(
      GenerateText(*training, "A", {.max_new_tokens = 1}).status().ToString(),
      HasSubstr(
          "has no entry of kind Generate; it has 'run.Init', 'run.TrainStep', 'run.EvalStep'; compile the model again "
          "with --mode generate"));
  fbs::PlanT plan = ToyGeneratePlan(shape);
  plan.entries[0]->outputs[0]->name = "scores";
  const auto renamed = ToySession(std::move(plan));
  EXPECT_THAT(GenerateText(*renamed, "A", {.max_new_tokens = 1}).status().ToString(),
              HasSubstr("lacks the output 'logits'"));
}

TEST(GeneratorTest, EndsWhenWritingFailsOrItIsStopped) {
  const auto session = RandomSession({.vocabulary = 97}, 5);
  auto generator = Generator::Create(session.get());
  ASSERT_TRUE(generator.ok());
  int written = 0;
  std::atomic<bool> stop{false};
  const auto write = [&](absl::string_view) {
    if (++written == 3) stop = true;
    return absl::OkStatus();
  };
  EXPECT_EQ(generator->Generate("A", {.max_new_tokens = 10}, write, stop), absl::OkStatus());
  EXPECT_EQ(written, 3);
  const auto fail = [&](absl::string_view) { return absl::ResourceExhaustedError("full"); };
  EXPECT_EQ(generator->Generate("A", {.max_new_tokens = 10}, fail, kNeverStop).message(), "full");
}

TEST(TokenSamplingTest, ZeroTemperatureTakesTheFirstOfTheLargest) {
  EXPECT_EQ(SampleToken({1, 3, 3, 2}, 0, 1, 1), 1);
  EXPECT_EQ(SampleToken({-5}, 0, 1, 1), 0);
  // Vanishing and huge temperatures neither overflow nor divide by zero.
  for (uint64_t draw = 0; draw < 100; ++draw) {
    EXPECT_EQ(SampleToken({1, 3, 2, -3e38f}, 1e-300, 1, draw), 1);
    EXPECT_LT(SampleToken({3e38f, -3e38f}, 1e300, 1, draw), 2);
  }
}

}  // namespace
}  // namespace bowline
