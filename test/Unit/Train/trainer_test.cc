// Training through the executor, against the model computed in double.

#include "runtime/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <tuple>

#include "runtime/base/safetensors.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/model_state.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/token_files.h"
#include "test/Unit/Train/toy_run.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool SameBits(const StepResult& a, const StepResult& b) {
  return a.loss == b.loss && a.grad_norm == b.grad_norm && a.lr == b.lr;
}

TEST(TrainerTest, StepsEqualTheModelInDouble) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(seed);
  // One of everything; primes; several microbatches; a data set that wraps around.
  const std::vector<ToyShape> shapes = {{.sequence = 1, .rows = 1, .microbatches = 1, .width = 1},
                                        {.vocabulary = 13, .sequence = 7, .rows = 3, .microbatches = 5, .width = 11},
                                        {.vocabulary = 5, .sequence = 2, .microbatches = 1, .threads = 2}};
  for (const ToyShape& shape : shapes) {
    const ToyData data(101, shape.vocabulary, seed);
    ToyRun run(shape, data);
    ToyReference reference(shape, *run.session);
    for (int64_t step = 0; step < 20; ++step) {
      std::vector<int32_t> tokens, labels;
      SequentialBatch(data.tokens, shape, step, &tokens, &labels);
      const ToyReference::Result expected = reference.Step(tokens, labels);
      const StepResult result = run.Step();
      EXPECT_NEAR(result.loss, expected.loss, 1e-5 * (1 + std::abs(expected.loss))) << step;
      EXPECT_NEAR(result.grad_norm, expected.squared_norm, 1e-5 * (1 + expected.squared_norm)) << step;
      EXPECT_FLOAT_EQ(result.lr, static_cast<float>(expected.lr)) << step;
      EXPECT_EQ(ReadStepState(*run.session)->value(), step + 1);
      EXPECT_EQ(run.trainer->steps_done(), step + 1);
    }
    EXPECT_EQ(run.trainer->tokens_per_step(), shape.batch() * shape.sequence);
  }
}

TEST(TrainerTest, ResumedRunsGoOnBitForBit) {
  const ToyShape shape = {.vocabulary = 13, .sequence = 4, .rows = 2, .microbatches = 3, .width = 7};
  const ToyData data(97, shape.vocabulary, TestSeed());
  for (DataOrder order : {DataOrder::kSequential, DataOrder::kShuffle}) {
    ToyRun whole(shape, data, order);
    std::vector<StepResult> expected;
    for (int i = 0; i < 12; ++i) expected.push_back(whole.Step());
    for (int stop : {0, 1, 5, 11}) {
      const TempDirectory directory;
      {
        ToyRun first(shape, data, order);
        for (int i = 0; i < stop; ++i) EXPECT_TRUE(SameBits(first.Step(), expected[i]));
        const auto saved = first.trainer->Save(directory.path());
        ASSERT_TRUE(saved.ok()) << saved.status();
      }
      ToyRun second(shape, data, order);
      second.Step();  // resuming replaces whatever the session holds
      const auto checkpoint = Checkpoint::Open(directory.path());
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      ASSERT_EQ(second.trainer->Resume(*checkpoint), absl::OkStatus());
      EXPECT_EQ(second.trainer->steps_done(), stop);
      for (int i = stop; i < 12; ++i) {
        EXPECT_TRUE(SameBits(second.Step(), expected[i])) << NameOf(order) << ", from " << stop << ", step " << i + 1;
      }
    }
    // The orders are different, so the comparison above had something to find.
    if (order == DataOrder::kShuffle) EXPECT_FALSE(SameBits(expected[0], ToyRun(shape, data).Step()));
  }
}

// The batch of the next step is written while one runs: the same bits, also after a resumption and evaluations between.
TEST(TrainerTest, WritesAheadWhereRunsOverlap) {
  const ToyShape shape = {.vocabulary = 13, .sequence = 4, .rows = 2, .microbatches = 3, .width = 7};
  const ToyData data(397, shape.vocabulary, TestSeed());
  fbs::PlanT overlapping = ToyTrainPlan(shape);
  for (const auto& entry : overlapping.entries) {
    if (entry->kind != fbs::EntryKind::Init) testing::AllowTwoRuns(overlapping, *entry);
  }
  for (const hal::StreamMode compute : {hal::StreamMode::kInline, hal::StreamMode::kWorker}) {
    ToyRun plain(shape, data, DataOrder::kShuffle);
    SessionOptions options;
    options.compute = compute;
    const auto session = ToySession(overlapping, options);
    auto ahead = Trainer::Create(session.get(), data.dataset.get(), DataOrder::kShuffle);
    ASSERT_TRUE(ahead.ok()) << ahead.status();
    ASSERT_EQ(ahead->Initialize(), absl::OkStatus());
    auto evaluator = Evaluator::Create(session.get(), data.dataset.get(), 5);
    auto plain_evaluator = Evaluator::Create(plain.session.get(), data.dataset.get(), 5);
    ASSERT_TRUE(evaluator.ok() && plain_evaluator.ok());
    const TempDirectory directory;
    for (int step = 0; step < 10; ++step) {
      if (step == 6) {
        const auto checkpoint = Checkpoint::Open(directory.path());
        ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
        ASSERT_EQ(ahead->Step().status(), absl::OkStatus());  // inputs that were written ahead of it are of no use then
        ASSERT_EQ(ahead->Resume(*checkpoint), absl::OkStatus());
      }
      const absl::StatusOr<StepResult> result = ahead->Step();
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(SameBits(*result, plain.Step())) << "step " << step + 1;
      if (step % 3 == 2) {
        const auto one = evaluator->Evaluate(), other = plain_evaluator->Evaluate();
        ASSERT_TRUE(one.ok() && other.ok());
        EXPECT_EQ(*one, *other);
      }
      if (step == 5) ASSERT_TRUE(ahead->Save(directory.path()).ok());
    }
  }
}

TEST(TrainerTest, CheckpointsAreHuggingFaceDirectories) {
  const ToyShape shape;
  const ToyData data(50, shape.vocabulary, 1);
  ToyRun run(shape, data);
  run.Step();
  const TempDirectory directory;
  const auto path = run.trainer->Save(directory.path());
  ASSERT_TRUE(path.ok()) << path.status();
  const auto model = SafetensorsDirectory::Open(*path);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (const auto& [name, entry] : model->tensors()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre(kToyHeadKey, kToyEmbedKey));
  EXPECT_EQ(ReadWholeFile(*path + "/config.json"), "{\"model_type\": \"toy\"}");
}

TEST(TrainerTest, CheckpointsLackWhatIsPerRequestAndResumedRunsBeginItAnew) {
  const ToyShape shape = {.cache = true};
  const ToyData data(50, shape.vocabulary, 1);
  const auto cache = [](const ToyRun& run) {
    return testing::ReadTensor<float>(*run.session, run.session->State(kToyCacheKey));
  };
  ToyRun run(shape, data);
  EXPECT_THAT(cache(run), ElementsAre(kToyEmpty, kToyEmpty));
  run.Step();
  ASSERT_THAT(cache(run), ElementsAre(kToyUsed, kToyUsed));
  const TempDirectory directory;
  const auto path = run.trainer->Save(directory.path());
  ASSERT_TRUE(path.ok()) << path.status();
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    const auto saved = SafetensorsFile::Open(*path + file);
    ASSERT_TRUE(saved.ok()) << saved.status();
    for (const auto& tensor : saved->tensors()) EXPECT_NE(tensor.name, kToyCacheKey) << file;
  }

  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ToyRun resumed(shape, data), plain({}, data);
  resumed.Step();
  ASSERT_EQ(resumed.trainer->Resume(*checkpoint), absl::OkStatus());
  EXPECT_THAT(cache(resumed), ElementsAre(kToyEmpty, kToyEmpty));
  // All else is as the checkpoint has it, which serves a plan without the cache as well.
  ASSERT_EQ(plain.trainer->Resume(*checkpoint), absl::OkStatus());
  const StepResult expected = run.Step();
  EXPECT_TRUE(SameBits(resumed.Step(), expected));
  EXPECT_TRUE(SameBits(plain.Step(), expected));

  // A checkpoint that does not fit touches nothing, nor does it begin anything anew.
  ToyRun wider({.width = 6, .cache = true}, data);
  wider.Step();
  EXPECT_EQ(wider.trainer->Resume(*checkpoint).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(cache(wider), ElementsAre(kToyUsed, kToyUsed));
}

TEST(TrainerTest, ResumeRefusesWhatWouldNotGoOn) {
  const ToyShape shape;
  const ToyData data(50, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  run.Step();
  ASSERT_TRUE(run.trainer->Save(directory.path()).ok());
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();

  ToyShape other_seed = shape, other_model = shape, other_batch = shape, other_sequence = shape;
  other_seed.seed = 12;
  other_model.width = 6;
  other_batch.rows = 3;
  other_sequence.sequence = 4;
  const ToyData longer(51, shape.vocabulary, 1), another(50, shape.vocabulary, 2);
  ToyRun shuffled(shape, data, DataOrder::kShuffle), seeded(other_seed, data), grown(shape, longer),
      exchanged(shape, another), wider(other_model, data), larger(other_batch, data), deeper(other_sequence, data);
  for (const auto& [trainer, message] :
       {std::pair{&shuffled, "order    sequential  shuffle"}, std::pair{&seeded, "seed     11          12"},
        std::pair{&grown, "data     50 tokens of toy.bin, digest "}, std::pair{&wider, "but the plan has"},
        std::pair{&exchanged, "  50 tokens of toy.bin, digest "}, std::pair{&larger, "batch    4           6"},
        std::pair{&deeper, "seq      3           4"}}) {
    const auto embedding = [session = trainer->session.get()] {
      return testing::ReadTensor<float>(*session, session->State(kToyEmbedKey));
    };
    const std::vector<float> before = embedding();
    const absl::Status status = trainer->trainer->Resume(*checkpoint);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_EQ(embedding(), before);
  }
}

TEST(TrainerTest, ResumeComparesRecipes) {
  const ToyShape shape = {.recipe = R"({"optimizer": "adamw", "lr": 0.1, "beta1": 0.9})"};
  ToyShape other = shape, rounded = shape, larger = shape, none = shape;
  other.recipe = R"({"optimizer": "adamw", "lr": 0.01, "min-lr": 0, "beta1": 0.9})";
  rounded.recipe = R"({"optimizer": "adamw", "lr": 0.10000000149, "beta1": 0.9})";
  larger.rows = 3;
  larger.recipe = other.recipe;
  none.recipe = "";
  const ToyData data(97, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  run.trainer->SetRun("abc");
  run.Step();
  const auto path = run.trainer->Save(directory.path());
  ASSERT_TRUE(path.ok()) << path.status();
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::string header = "and would not go on as it began:\n  setting  checkpoint  this run\n";
  const auto resume = [&](const ToyShape& with, const std::vector<std::string>& allowed) {
    ToyRun resumed(with, data);
    const absl::Status status = resumed.trainer->Resume(*checkpoint, allowed);
    if (status.ok()) EXPECT_EQ(resumed.trainer->run(), "abc");
    return std::pair(status, resumed.trainer->changes());
  };
  EXPECT_EQ(resume(shape, {}).first, absl::OkStatus());
  EXPECT_THAT(resume(rounded, {}).second, ::testing::IsEmpty());
  for (const auto& [with, allowed, table, flags] :
       {std::tuple{other, std::vector<std::string>{}, "  lr       0.1         0.01\n  min-lr   -           0\n",
                   "lr,min-lr"},
        {other, {"lr"}, "  lr       0.1         0.01\n  min-lr   -           0\n", "lr,min-lr"},
        {larger,
         {"lr", "min-lr"},
         "  lr       0.1         0.01\n  min-lr   -           0\n  batch    4           6\n",
         "lr,min-lr,batch"}}) {
    const absl::Status status = resume(with, allowed).first;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(header + table));
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("--allow-changes ", flags, ",")));
  }
  const auto [status, changes] = resume(larger, {"batch", "lr", "min-lr"});
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(changes, ElementsAre(SettingChange{"lr", "0.1", "0.01"}, SettingChange{"min-lr", "-", "0"},
                                   SettingChange{"batch", "4", "6"}));
  EXPECT_THAT(std::string(resume(other, {"learning-rate"}).first.message()),
              HasSubstr("--allow-changes learning-rate is no setting of this run; it may name batch, beta1, data, lr"));
  // A plan or a checkpoint of before has none.
  EXPECT_EQ(resume(none, {}).first, absl::OkStatus());
  std::string state = ReadWholeFile(*path + "/trainer_state.json");
  state.replace(state.find("\"recipe\""), 8, "\"other\"");
  // As files of before, which name no run either.
  state.replace(state.find("\"run\""), 5, "\"old\"");
  WriteWholeFile(*path + "/trainer_state.json", state);
  ToyRun resumed(other, data);
  EXPECT_EQ(resumed.trainer->Resume(*Checkpoint::Open(directory.path())), absl::OkStatus());
}

// Where draws of the checkpoint mean other samples, the data begin anew.
TEST(TrainerTest, AllowedChangesOfTheDataBeginItAnew) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1), other(61, shape.vocabulary, 2);
  const TempDirectory directory;
  ToyRun run(shape, data);
  for (int i = 0; i < 3; ++i) run.Step();
  ASSERT_TRUE(run.trainer->Save(directory.path()).ok());
  const auto checkpoint = Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok());
  ToyRun resumed(shape, other);
  ASSERT_EQ(resumed.trainer->Resume(*checkpoint, {"data"}), absl::OkStatus());
  EXPECT_EQ(resumed.trainer->steps_done(), 3);
  EXPECT_EQ(resumed.trainer->Content().state.next_draw, 0);
  ToyRun larger({.rows = 3}, data);
  ASSERT_EQ(larger.trainer->Resume(*checkpoint, {"batch"}), absl::OkStatus());
  EXPECT_EQ(larger.trainer->Content().state.next_draw, 12);
}

TEST(TrainerTest, ResumeNoticesAContradiction) {
  const ToyShape shape;
  const ToyData data(50, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  run.Step();
  const auto path = run.trainer->Save(directory.path());
  ASSERT_TRUE(path.ok());
  std::string state = ReadWholeFile(*path + "/trainer_state.json");
  const auto resume = [&](const std::string& from, const std::string& to) {
    std::string changed = state;
    changed.replace(changed.find(from), from.size(), to);
    WriteWholeFile(*path + "/trainer_state.json", changed);
    return run.trainer->Resume(*Checkpoint::Open(directory.path()));
  };
  EXPECT_EQ(resume("\"step\": 1", "\"step\": 1"), absl::OkStatus());
  EXPECT_THAT(resume("\"step\": 1", "\"step\": 2").ToString(), HasSubstr("was saved at step 1, not at step 2"));
  EXPECT_THAT(resume("\"next_draw\": 4", "\"next_draw\": 9223372036854775807").ToString(),
              HasSubstr("is beyond any run"));
}

TEST(TrainerTest, CreateRefusesPlansAndDataThatDoNotFit) {
  const ToyShape shape;
  const ToyData data(50, shape.vocabulary, 1), little(3, shape.vocabulary, 1);
  const auto create = [&](fbs::PlanT plan, const ToyData& with) {
    const auto session = ToySession(std::move(plan));
    return Trainer::Create(session.get(), with.dataset.get(), DataOrder::kSequential).status();
  };
  const absl::Status generates = create(ToyGeneratePlan(shape), data);
  EXPECT_EQ(generates.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(generates.ToString(),
              HasSubstr("has no entry of kind TrainStep; it has 'run.Generate'; compile the model "
                        "again with --mode train"));
  fbs::PlanT unnamed = ToyTrainPlan(shape);
  unnamed.entries[1]->inputs[0]->name = "words";
  EXPECT_THAT(create(std::move(unnamed), data).ToString(), HasSubstr("lacks the inputs 'tokens' and 'labels'"));
  EXPECT_EQ(create(ToyTrainPlan(shape), little).code(), absl::StatusCode::kInvalidArgument);
  fbs::PlanT renamed = ToyTrainPlan(shape);
  renamed.entries[1]->outputs[1]->name = "norm";
  EXPECT_THAT(create(std::move(renamed), data).ToString(), HasSubstr("lacks the output 'grad_norm'"));
  fbs::PlanT unequal = ToyTrainPlan(shape);
  unequal.entries[1]->inputs[1]->buffer = unequal.entries[2]->inputs[1]->buffer;
  EXPECT_THAT(create(std::move(unequal), data).ToString(),
              HasSubstr("has labels i32[2, 3] x 1 for tokens i32[2, 3] x 2"));
}

TEST(TrainerTest, ATokenBeyondTheVocabularyIsFoundBeforeTheFirstStep) {
  const ToyShape shape;
  const std::string file = LlmcFile({1, 2, 3, 7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1});
  auto dataset = TokenDatasetFromBytes(AsBytes(file), "bad.bin", {.vocabulary = shape.vocabulary});
  ASSERT_TRUE(dataset.ok());
  const auto session = ToySession(ToyTrainPlan(shape));
  auto trainer = Trainer::Create(session.get(), dataset->get(), DataOrder::kSequential);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_THAT(trainer->FillNext().ToString(), AllOf(HasSubstr("'bad.bin'"), HasSubstr("token 3"), HasSubstr("7")));
  EXPECT_THAT(trainer->Step().status().ToString(), HasSubstr("step 1: "));
  EXPECT_EQ(trainer->steps_done(), 0);
}

TEST(EvaluatorTest, MeanLossEqualsTheModelInDoubleAndChangesNothing) {
  const ToyShape shape = {.vocabulary = 11, .sequence = 3, .rows = 2, .microbatches = 3, .width = 5};
  const ToyData data(60, shape.vocabulary, TestSeed());
  ToyRun run(shape, data), undisturbed(shape, data);
  ToyReference reference(shape, *run.session);
  for (int64_t batches : {0, 1, 4}) {
    auto evaluator = Evaluator::Create(run.session.get(), data.dataset.get(), batches);
    ASSERT_TRUE(evaluator.ok()) << evaluator.status();
    // 59 / 3 = 19 samples: 9 batches of 2, and one sample.
    EXPECT_EQ(evaluator->batches(), batches == 0 ? 10 : batches);
    EXPECT_EQ(evaluator->tokens(), batches == 0 ? 57 : batches * 6);
    double sum = 0;
    for (int64_t i = 0; i < evaluator->tokens(); ++i) {
      sum += reference.LossSum({int32_t{data.tokens[i]}}, {int32_t{data.tokens[i + 1]}});
    }
    const auto loss = evaluator->Evaluate();
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss, sum / static_cast<double>(evaluator->tokens()), 1e-5);
    EXPECT_TRUE(SameBits(run.Step(), undisturbed.Step()));
    reference = ToyReference(shape, *run.session);
  }
  EXPECT_THAT(Evaluator::Create(run.session.get(), data.dataset.get(), 11).status().ToString(),
              AllOf(HasSubstr("has 19 samples of 3 tokens"), HasSubstr("fewer batches")));
}

// 19 samples in batches of which the last one is short: one that repeats its samples evenly, and others; and batches
// that are larger than the whole file.
TEST(EvaluatorTest, EverySampleCountsOnceWhateverTheBatch) {
  ToyShape shape = {.vocabulary = 11, .sequence = 3, .microbatches = 1, .width = 5};
  const ToyData data(60, shape.vocabulary, TestSeed());
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 16, 18, 19, 20, 25, 38, 40}) {
    shape.rows = rows;
    const ToyRun run(shape, data);
    const ToyReference reference(shape, *run.session);
    auto evaluator = Evaluator::Create(run.session.get(), data.dataset.get());
    ASSERT_TRUE(evaluator.ok()) << evaluator.status();
    EXPECT_EQ(evaluator->batches(), (19 + rows - 1) / rows);
    EXPECT_EQ(evaluator->tokens(), 57);
    double sum = 0;
    for (size_t i = 0; i < 57; ++i) {
      sum += reference.LossSum({int32_t{data.tokens[i]}}, {int32_t{data.tokens[i + 1]}});
    }
    for (int again = 0; again < 2; ++again) {
      const auto loss = evaluator->Evaluate();
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_NEAR(*loss, sum / 57, 1e-5) << rows << " rows";
    }
    const int64_t batches = (19 + rows - 1) / rows;
    EXPECT_TRUE(Evaluator::Create(run.session.get(), data.dataset.get(), batches).ok());
    EXPECT_FALSE(Evaluator::Create(run.session.get(), data.dataset.get(), batches + 1).ok());
  }
}

}  // namespace
}  // namespace bowline
