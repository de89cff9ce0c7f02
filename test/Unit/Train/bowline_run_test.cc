// The command bowline-run, as a person calls it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "test/Unit/Train/run_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BowlineRunTest : public RunFixture {};

TEST_F(BowlineRunTest, TrainsWithMetricsEvaluationAndCheckpoints) {
  const Outcome outcome =
      Run("$D/x.plan --data $D/d.bin --steps 5 --metrics $D/m --eval-data $D/d.bin --eval-every 2 --save $D/s "
          "--save-every 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("step 1/5  loss"), HasSubstr("step 5/5  loss"),
                                    HasSubstr("step 4: evaluation loss"), HasSubstr("/s/step-00000005\n")));
  EXPECT_THAT(directory_.List(), ElementsAre("d.bin", "g.plan", "m", "s", "x.plan"));
  std::vector<std::string> order, saves;
  for (const nlohmann::json& line : Metrics("m")) {
    std::set<std::string> keys;
    for (const auto& [key, value] : line.items()) keys.insert(key);
    EXPECT_EQ(keys.erase("run"), order.empty() ? 1u : 0u);
    if (keys == std::set<std::string>({"step", "save_s", "save_stall_s"})) {
      EXPECT_LE(line["save_stall_s"], line["save_s"]);
      saves.push_back(line["step"].dump());
      continue;
    }
    const bool evaluation = line.contains("eval_loss");
    EXPECT_EQ(keys, evaluation ? std::set<std::string>({"step", "eval_loss"})
                               : std::set<std::string>({"step", "loss", "grad_norm", "lr", "tokens_per_s", "step_ms"}));
    order.push_back((evaluation ? "e" : "t") + line["step"].dump());
  }
  EXPECT_THAT(order, ElementsAre("t1", "t2", "e2", "t3", "t4", "e4", "t5"));
  EXPECT_THAT(saves, ElementsAre("2", "4", "5"));

  // Saved states can be evaluated, generated from and trained further.
  const Outcome evaluation = Run("$D/x.plan --eval-data $D/d.bin --weights $D/s/step-00000004 --metrics $D/e");
  EXPECT_EQ(evaluation.exit_code, 0) << evaluation.output;
  EXPECT_THAT(evaluation.output, HasSubstr("over 300 tokens"));
  EXPECT_EQ(Metrics("e")[0]["eval_loss"], TimelessMetrics("m")[5]["eval_loss"]);
  EXPECT_EQ(Run("$D/g.plan --weights $D/s --prompt abc --max-new-tokens 3").exit_code, 0);
  EXPECT_EQ(Run("$D/x.plan --data $D/d.bin --steps 1 --weights $D/s").exit_code, 0);
}

TEST_F(BowlineRunTest, TwoRunsGiveTheSameLosses) {
  for (const char* order : {"sequential", "shuffle"}) {
    const std::string run = std::string("$D/x.plan --data $D/d.bin --steps 8 --order ") + order;
    EXPECT_EQ(Run(run + " --quiet --metrics $D/a").output, "");
    EXPECT_EQ(Run(run + " --quiet --metrics $D/b").output, "");
    EXPECT_EQ(Metrics("a").size(), 8u);
    EXPECT_EQ(TimelessMetrics("a"), TimelessMetrics("b"));
    for (const char* name : {"a", "b"}) std::filesystem::remove(directory_ / name);
  }
}

TEST_F(BowlineRunTest, ResumingEqualsNeverStopping) {
  const std::string run = "$D/x.plan --data $D/d.bin --eval-data $D/d.bin --eval-every 3 --save-every 4";
  ASSERT_EQ(Run(run + " --steps 20 --order shuffle --save $D/a --metrics $D/ma").exit_code, 0);
  ASSERT_EQ(Run(run + " --steps 10 --order shuffle --save $D/b --metrics $D/mb").exit_code, 0);
  // Without --order it is the one of the checkpoint.
  const Outcome resumed = Run(run + " --steps 20 --save $D/b --resume $D/b --metrics $D/mb");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("after step 10"));
  EXPECT_EQ(TimelessMetrics("ma"), TimelessMetrics("mb"));
  // From an older checkpoint: the lines behind it are replaced by the same ones.
  ASSERT_EQ(Run(run + " --steps 20 --resume $D/a/step-00000008 --save $D/c --metrics $D/ma").exit_code, 0);
  EXPECT_EQ(TimelessMetrics("ma"), TimelessMetrics("mb"));
  for (const char* file : {"model", "optimizer"}) {
    EXPECT_EQ(ReadWholeFile(directory_ / ("a/step-00000020/" + std::string(file) + ".safetensors")),
              ReadWholeFile(directory_ / ("c/step-00000020/" + std::string(file) + ".safetensors")));
  }
  const Outcome done =
      Run("$D/x.plan --data $D/d.bin --save-every 4 --steps 20 --resume $D/a --save $D/a --metrics $D/ma");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_THAT(done.output, HasSubstr("nothing to do: step 20 is done"));
  EXPECT_EQ(TimelessMetrics("ma"), TimelessMetrics("mb"));
}

TEST_F(BowlineRunTest, AFinishedRunThatIsResumedWithDataToEvaluateEvaluates) {
  const std::string run = "$D/x.plan --data $D/d.bin --steps 6 --save $D/s --metrics $D/m";
  ASSERT_EQ(Run(run).exit_code, 0);
  // Once into the metrics, which lack it.
  for (int i = 0; i < 2; ++i) {
    const Outcome resumed = Run(run + " --resume $D/s --eval-data $D/d.bin");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
    EXPECT_THAT(resumed.output, HasSubstr("step 6: evaluation loss"));
    const std::vector<nlohmann::json> lines = TimelessMetrics("m");
    ASSERT_EQ(lines.size(), 7u);
    EXPECT_TRUE(lines.back().contains("eval_loss"));
  }
  ASSERT_EQ(Run("$D/x.plan --eval-data $D/d.bin --weights $D/s --metrics $D/e").exit_code, 0);
  EXPECT_EQ(TimelessMetrics("m").back()["eval_loss"], TimelessMetrics("e").back()["eval_loss"]);
}

// The last token of a file is the first one of the next, which one file has once: the labels are the same.
TEST_F(BowlineRunTest, FilesFollowEachOther) {
  std::vector<uint16_t> whole = RandomTokens(101, shape_.vocabulary, 2);
  WriteWholeFile(directory_ / "whole", LlmcFile(whole));
  WriteWholeFile(directory_ / "a", LlmcFile({whole.begin(), whole.begin() + 36}));
  WriteWholeFile(directory_ / "b.npy",
                 NpyFile(NpyDictionary("<u2", 66), BytesOf(std::vector<uint16_t>(whole.begin() + 35, whole.end()))));
  ASSERT_EQ(Run("$D/x.plan --data $D/whole --eval-data $D/whole --steps 8 --quiet --metrics $D/m").exit_code, 0);
  const std::string files = "--data $D/a --data $D/b.npy --eval-data=$D/a --eval-data=$D/b.npy ";
  for (const std::string& arguments : {"$D/x.plan " + files, files + "$D/x.plan "}) {
    const Outcome outcome = Run(arguments + "--steps 8 --quiet --metrics $D/n");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(TimelessMetrics("n"), TimelessMetrics("m"));
    std::filesystem::remove(directory_ / "n");
  }
}

TEST_F(BowlineRunTest, ABlendGoesOnAsItWouldHave) {
  WriteWholeFile(directory_ / "a", LlmcFile(RandomTokens(101, shape_.vocabulary, 2)));
  WriteWholeFile(directory_ / "b", BytesOf(RandomTokens(21, shape_.vocabulary, 3)));
  const std::string run = "$D/x.plan --quiet --order shuffle ";
  const std::string blend = "--data 0.7:$D/a --data 0.3:u16:$D/b ";
  ASSERT_EQ(Run(run + blend + "--steps 20 --metrics $D/m").exit_code, 0);
  ASSERT_EQ(Run(run + blend + "--steps 9 --metrics $D/n --save $D/s").exit_code, 0);
  // The shares count, however they are written.
  const Outcome resumed = Run(run + "--data 7:$D/a --data 3:u16:$D/b --steps 20 --metrics $D/n --resume $D/s");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(TimelessMetrics("n"), TimelessMetrics("m"));
  for (const char* other : {"--data 0.6:$D/a --data 0.4:u16:$D/b", "--data 0.3:u16:$D/b --data 0.7:$D/a",
                            "--data $D/a --data u16:$D/b", "--data $D/a"}) {
    const Outcome refused = Run(run + other + " --steps 20 --resume $D/s");
    EXPECT_EQ(refused.exit_code, 1) << other;
    EXPECT_THAT(refused.output, HasSubstr("data")) << other;
  }
}

// An id that no step draws is found too, before the first step, and its file needs no second look.
TEST_F(BowlineRunTest, IdsOutsideOfTheVocabularyAreFoundBeforeTheFirstStep) {
  std::vector<uint16_t> tokens = RandomTokens(5003, shape_.vocabulary, 2);
  WriteWholeFile(directory_ / "good", LlmcFile(tokens));
  tokens.back() = 128;
  WriteWholeFile(directory_ / "bad", LlmcFile(tokens));
  const std::string cache = "export BOWLINE_CACHE_DIR=$D/cache;", run = "$D/x.plan --steps 2 --save $D/s ";
  for (const char* data :
       {"--data $D/bad", "--data $D/good --eval-data $D/bad", "--data $D/good --data $D/bad",
        "--data 0.9999:$D/good --data 0.0001:$D/bad", "--data $D/good --eval-data $D/bad --eval-batches 1"}) {
    const Outcome outcome = Run(run + data, cache);
    EXPECT_EQ(outcome.exit_code, 1) << data;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("/bad': token 5002 has the id 128, outside of the vocabulary [0, 128)"),
                                      Not(HasSubstr("step 1"))))
        << data;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "s")) << data;
  }
  std::filesystem::remove_all(directory_ / "cache");
  ASSERT_EQ(Run(run + "--data $D/good", cache).exit_code, 0);
  const auto kept = [&] {
    const std::filesystem::directory_iterator files(directory_ / "cache/scans");
    return std::distance(begin(files), end(files));
  };
  EXPECT_EQ(kept(), 1);
  std::filesystem::remove_all(directory_ / "s");
  ASSERT_EQ(Run(run + "--data $D/good --eval-data $D/d.bin", cache).exit_code, 0);
  EXPECT_EQ(kept(), 2);
}

TEST_F(BowlineRunTest, GeneratesText) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 2 --save $D/s --quiet").exit_code, 0);
  const std::string run = "$D/g.plan --weights $D/s --prompt 'Tell me' --max-new-tokens 40 --quiet";
  const Outcome one = Run(run + " --seed 3");
  EXPECT_EQ(one.exit_code, 0) << one.output;
  EXPECT_EQ(one.output.size(), 40u);
  EXPECT_EQ(Run(run + " --seed 3").output, one.output);
  EXPECT_NE(Run(run + " --seed 4").output, one.output);
  EXPECT_EQ(Run(run + " --seed 3 --echo").output, "Tell me" + one.output);
  EXPECT_EQ(Run(run + " --temperature 0 --seed 3").output, Run(run + " --temperature 0 --seed 4").output);
  const Outcome full = Run(run + " > /dev/full");
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.output, HasSubstr("cannot write to the standard output"));
}

// "Tell me" as ids, and back.
TEST_F(BowlineRunTest, GeneratesIds) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 2 --save $D/s --quiet").exit_code, 0);
  const std::string run = "$D/g.plan --weights $D/s --quiet --seed 3 --echo --max-new-tokens 9 ";
  const std::string prompt = "84,101,108,108,32,109,101";
  const Outcome text = Run(run + "--prompt 'Tell me'"), ids = Run(run + "--prompt 'Tell me' --print tokens");
  EXPECT_EQ(ids.exit_code, 0) << ids.output;
  std::string read;
  for (const absl::string_view id : absl::StrSplit(absl::StripSuffix(ids.output, "\n"), ',')) {
    int value = 0;
    ASSERT_TRUE(absl::SimpleAtoi(id, &value)) << ids.output;
    read.push_back(static_cast<char>(value));
  }
  EXPECT_EQ(read, text.output);
  EXPECT_EQ(Run(run + "--prompt-tokens " + prompt).output, ids.output);
  EXPECT_EQ(Run(run + "--print text --prompt-tokens " + prompt).output, text.output);
}

TEST_F(BowlineRunTest, GenerationPicksEveryIdAndTakesTextsOfBytesAlone) {
  ToyShape large = shape_;
  large.vocabulary = 400;
  large.sequence = 16;
  Write("large-x.plan", ToyTrainPlan(large));
  Write("large.plan", ToyGeneratePlan(large));
  WriteWholeFile(directory_ / "large.bin", LlmcFile(RandomTokens(301, large.vocabulary, 1)));
  ASSERT_EQ(Run("$D/large-x.plan --data $D/large.bin --steps 1 --save $D/l --quiet").exit_code, 0);
  const std::string run = "$D/large.plan --weights $D/l --max-new-tokens 40 --quiet ";
  const Outcome ids = Run(run + "--prompt-tokens 399,1");
  ASSERT_EQ(ids.exit_code, 0) << ids.output;
  int largest = 0;
  for (const absl::string_view id : absl::StrSplit(absl::StripSuffix(ids.output, "\n"), ',')) {
    int value = 0;
    ASSERT_TRUE(absl::SimpleAtoi(id, &value)) << ids.output;
    largest = std::max(largest, value);
  }
  EXPECT_GE(largest, 256);
  for (const char* text : {"--prompt A", "--prompt-tokens 1 --print text"}) {
    const Outcome refused = Run(run + text);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, AllOf(HasSubstr("are no bytes: its vocabulary has 400 ids"),
                                      HasSubstr("--prompt-tokens 1,2,3 with --print tokens")));
  }
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 1 --save $D/s --quiet").exit_code, 0);
  WriteWholeFile(directory_ / "s/tokenizer.json", "{}");
  EXPECT_THAT(Run("$D/g.plan --weights $D/s --prompt A --max-new-tokens 3").output,
              HasSubstr("its tokenizer is '" + directory_ / "s/tokenizer.json" + "'"));
}

TEST_F(BowlineRunTest, TextsLongerThanWhatThePlanSeesAreNoted) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 1 --save $D/s --quiet").exit_code, 0);
  const std::string run = "$D/g.plan --weights $D/s --prompt ABCD --max-new-tokens ",
                    note = "longer than the 16 tokens";
  EXPECT_THAT(Run(run + "13").output, Not(HasSubstr(note)));
  EXPECT_THAT(Run(run + "14").output, HasSubstr(note));
}

TEST_F(BowlineRunTest, TheDriverNullSaysThatItComputesNothing) {
  const std::string run = "$D/x.plan --data $D/d.bin --steps 1 --driver null ";
  EXPECT_THAT(Run(run).output, HasSubstr("note: the driver null computes nothing"));
  const Outcome saved = Run(run + "--save $D/s");
  EXPECT_EQ(saved.exit_code, 1);
  EXPECT_THAT(saved.output, HasSubstr("the driver null computes nothing that --save could keep"));
  EXPECT_THAT(directory_.List(), Not(::testing::Contains("s")));
}

TEST_F(BowlineRunTest, AFirstLossThatIsNoNumberIsTheWeights) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 1 --save $D/s --quiet").exit_code, 0);
  const std::string file = directory_ / "s/step-00000001/model.safetensors";
  std::string bytes = ReadWholeFile(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (size_t i = 8 + header; i < bytes.size(); ++i) bytes[i] = '\x7f';  // 3.4e38
  WriteWholeFile(file, bytes);
  const Outcome outcome = Run("$D/x.plan --data $D/d.bin --steps 9 --weights $D/s");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("before anything was trained: the weights in '"), HasSubstr("/s' hold"),
                                    Not(HasSubstr("learning rate"))));
}

// A run that generated all of these tokens would take days.
TEST_F(BowlineRunTest, GenerationEndsQuietlyWhenNobodyReadsOn) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 2 --save $D/s --quiet").exit_code, 0);
  const Outcome outcome =
      Run("$D/g.plan --weights $D/s --prompt A --max-new-tokens 1000000000000 --quiet | head -c 10 | wc -c");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "10\n");
}

TEST_F(BowlineRunTest, ProfilePrintsEveryKernel) {
  const Outcome outcome = Run("$D/x.plan --data $D/d.bin --steps 3 --quiet --profile");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("launches"), ::testing::ContainsRegex("gather_rows +24 "),
                    ::testing::ContainsRegex("scatter_add_rows +18 "), HasSubstr("copy"), HasSubstr("GFLOP/s")));
}

TEST_F(BowlineRunTest, MetricsMayGoIntoAPipe) {
  const Outcome outcome = Run("$D/x.plan --data $D/d.bin --steps 3 --quiet --metrics /dev/stdout | wc -l");
  EXPECT_EQ(std::stoi(outcome.output), 3);
}

TEST_F(BowlineRunTest, DataThatIsTruncatedWhileTrainingIsNamed) {
  ASSERT_EQ(RunShell("mkfifo '" + directory_ / "p" + "'").exit_code, 0);
  const Outcome outcome = Run("$D/x.plan --data $D/d.bin --steps 1000000000 --quiet --metrics $D/p",
                              "{ head -c 100 > /dev/null; : > $D/d.bin; cat > /dev/null; } < $D/p &");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
  EXPECT_THAT(outcome.output,
              ::testing::ContainsRegex("bowline-run: error: step [0-9]+: '.*/d.bin' cannot be read any more"));
}

// Each ends in one message, the documented code and no file.
TEST_F(BowlineRunTest, BadInput) {
  const std::string train = "$D/x.plan --data $D/d.bin --steps 3 ", text = "--prompt A --max-new-tokens 3 ";
  ASSERT_EQ(Run(train + "--save $D/s --quiet").exit_code, 0);
  WriteWholeFile(directory_ / "short.bin", LlmcFile({1, 2, 3}));
  WriteWholeFile(directory_ / "magic.bin", std::string(2000, 'x'));
  WriteWholeFile(directory_ / "beyond.bin", LlmcFile(RandomTokens(100, 40'000, 2)));
  WriteWholeFile(directory_ / "broken.plan", ReadWholeFile(directory_ / "x.plan").substr(0, 3000));
  WriteWholeFile(directory_ / "text", "no metrics\n");
  std::string flipped = ReadWholeFile(directory_ / "x.plan");
  flipped[flipped.size() / 2] ^= 4;
  WriteWholeFile(directory_ / "flipped.plan", flipped);
  fbs::PlanT foreign = ToyTrainPlan(shape_);
  foreign.target->arch = "riscv64";
  Write("foreign.plan", std::move(foreign));
  ToyShape other = shape_;
  other.width = 9;
  Write("other.plan", ToyTrainPlan(other));
  const std::string data = ReadWholeFile(directory_ / "d.bin");
  std::filesystem::create_symlink("d.bin", directory_ / "link");
  const std::vector<std::string> before = directory_.List();

  const std::vector<std::tuple<std::string, int, std::string>> cases = {
      {"", 1, "PLAN is required"},
      {"$D/none.plan", 1, "No such file"},
      {"$D/broken.plan --data $D/d.bin --steps 3", 1, "broken.plan"},
      {"$D/flipped.plan --data $D/d.bin --steps 3", 1, "flipped.plan"},
      {"$D/foreign.plan --data $D/d.bin --steps 3 --metrics $D/m", 1, "riscv64"},
      {"$D/d.bin --data $D/d.bin --steps 3", 1, "d.bin"},
      {"$D/x.plan --steps 3", 1, "training needs --data FILE"},
      {"$D/x.plan --data $D/d.bin $D/d.bin --steps 3", 1, "not expected.*--data takes one value each time; repeat it"},
      {"--data $D/d.bin $D/d.bin $D/x.plan --steps 3", 1, "not expected.*--data takes one value each time; repeat it"},
      {train + "--eval-data 0.7 $D/d.bin", 1, "not expected.*--eval-data takes one value each time; repeat it"},
      {"$D/x.plan --data 0.7 --data $D/d.bin --steps 3", 1, "'0.7' is a weight without a data file; .* 0.7:FILE"},
      {"$D/x.plan --data 0.7:$D/d.bin --data $D/link --steps 3", 1, "/link' has no weight, but others have one"},
      {"$D/x.plan --data -1:$D/d.bin --steps 3", 1, "the weight '-1' of data is not a number above 0"},
      {train + "--eval-data 1:$D/d.bin", 1, "--eval-data takes each sample once; leave out the weights"},
      {train + "--data $D/short.bin", 1, "short.bin' is too short"},
      {train + "--data $D/short.bin --metrics $D/short.bin", 1, "--metrics and --data name the same file"},
      {"$D/x.plan --data $D/d.bin", 1, "training needs --steps N"},
      {"$D/x.plan --data $D/d.bin --steps 0", 1, "--steps: 0 is not a number from 1 on"},
      {"$D/x.plan --data $D/d.bin --steps -1", 1, "--steps"},
      {"$D/x.plan --data $D/d.bin --steps x", 1, "--steps"},
      {train + "--order backwards", 1, "--order"},
      {train + "--timeout 5 --link latency=1us", 1, "is for one rank, .*leave out --link, --timeout"},
      {train + "--local-rank 0", 1, "leave out --local-rank"},
      {"$D/x.plan --eval-data $D/d.bin --weights $D/s --order shuffle", 1, "--order is that of training"},
      {"$D/g.plan --weights $D/s --max-new-tokens 3 --prompt A --prompt-tokens 1", 1, "give one of them"},
      {"$D/g.plan --weights $D/s --max-new-tokens 3 --prompt-tokens 1,x", 1, "--prompt-tokens.*is no id of a token"},
      {"$D/g.plan --weights $D/s --max-new-tokens 3 --prompt-tokens -1", 1, "--prompt-tokens"},
      {"$D/g.plan --weights $D/s --max-new-tokens 3 --prompt-tokens 128", 1, "token 0 .* has the value 128"},
      {train + text, 1, "is a plan that trains; it has no use for --prompt, --max-new-tokens"},
      {train + "--seed 3", 1, "it has no use for --seed"},
      {train + "--eval-every 2", 1, "--eval-every needs --eval-data"},
      {train + "--eval-batches 2", 1, "--eval-batches needs --eval-data"},
      {train + "--save-every 2", 1, "--save-every needs --save"},
      {train + "--keep 2", 1, "--keep needs --save"},
      {train + "--weights $D/s --resume $D/s", 1, "give one of them"},
      {train + "--weights $D", 1, "holds neither model.safetensors"},
      {train + "--resume $D", 1, "holds no checkpoint"},
      {train + "--resume $D/none --save $D/new", 1, "none"},
      {train + "--resume $D/s --order shuffle", 1, "order    sequential  shuffle"},
      {"$D/other.plan --data $D/d.bin --steps 9 --resume $D/s --metrics $D/m", 1, "but the plan has"},
      {"$D/other.plan --data $D/d.bin --steps 9 --weights $D/s --metrics $D/m", 1, "do not fit"},
      {train + "--driver gpu", 1,
       "there is no driver 'gpu'; this build has cpu, null, and libbowline_gpu.so is not in"},
      {train + "--metrics $D/none/m --save $D/new", 1, "cannot write '.*none/m': No such file"},
      {train + "--metrics $D --save $D/new", 1, "Is a directory"},
      {"$D/x.plan --data $D/d.bin --steps 9 --metrics $D/text --resume $D/s", 1, "text' exists and holds no metrics"},
      {train + "--metrics $D/text", 1, "text' exists and holds no metrics"},
      {train + "--metrics $D/link", 1,
       "--metrics and --data name the same file, '.*/link', which would be overwritten"},
      {train + "--metrics $D/x.plan", 1, "--metrics and PLAN name the same file"},
      {train + "--eval-data $D/short.bin --metrics $D/short.bin", 1, "--metrics and --eval-data name the same file"},
      {train + "--metrics $D/m --trace $D/m", 1, "--trace and --metrics name the same file"},
      {train + "--trace $D/d.bin", 1, "--trace and --data name the same file"},
      {train + "--weights $D/s --trace $D/s/step-00000003/model.safetensors", 1, "a file of --weights '.*/s'"},
      {train + "--save $D/d.bin --metrics $D/m", 1, "d.bin"},
      {train + "--save /proc/none --metrics $D/m", 1, "/proc/none"},
      {train + "--eval-data $D/short.bin --metrics $D/m", 1, "short.bin"},
      {train + "--eval-data $D/d.bin --eval-batches 100 --metrics $D/m", 1, "has 60 samples"},
      {"$D/x.plan --data $D/none.bin --steps 3 --metrics $D/m", 1, "none.bin"},
      {"$D/x.plan --data $D/short.bin --steps 3 --metrics $D/m", 1, "short.bin"},
      {"$D/x.plan --data $D/magic.bin --steps 3 --metrics $D/m", 1, "magic.bin"},
      {"$D/x.plan --data $D/beyond.bin --steps 3 --metrics $D/m --save $D/new", 1, "beyond.bin.*has the id"},
      {"$D/g.plan --data $D/d.bin --steps 3", 1, "generates text; it has no use for --data, --steps"},
      {"$D/g.plan " + text, 1, "generation needs --weights DIR"},
      {"$D/g.plan --weights $D/s --max-new-tokens 3", 1, "generation needs --prompt TEXT"},
      {"$D/g.plan --weights $D/s --prompt A", 1, "generation needs --max-new-tokens N"},
      {"$D/g.plan --weights $D/s --prompt '' --max-new-tokens 3", 1, "--prompt has an empty value"},
      {"$D/g.plan --weights $D/s --prompt \"$(printf 'A\\377')\" --max-new-tokens 3 --echo", 1, "has the value 255"},
      {"$D/g.plan --weights $D/s --temperature -1 " + text, 1, "--temperature"},
      {"$D/g.plan --weights $D/s --temperature nan " + text, 1, "--temperature"},
      {"$D/g.plan --weights $D/s --seed -1 " + text, 1, "--seed"},
      {"$D/x.plan --eval-data $D/d.bin", 1, "evaluation needs --weights DIR"},
      {"$D/x.plan --eval-data $D/d.bin --weights $D/s --save $D/new", 1, "belong to training"},
  };
  for (const auto& [arguments, code, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, ::testing::ContainsRegex(message)) << arguments;
    EXPECT_EQ(directory_.List(), before) << arguments;
  }
  EXPECT_EQ(ReadWholeFile(directory_ / "text"), "no metrics\n");
  EXPECT_EQ(ReadWholeFile(directory_ / "d.bin"), data);
}

TEST_F(BowlineRunTest, AFullDiskWhileSavingKeepsTheLastCheckpoint) {
  ASSERT_EQ(Run("$D/x.plan --data $D/d.bin --steps 2 --save $D/s --quiet").exit_code, 0);
  // A file size limit, in blocks of 1024 bytes, stands for a full disk.
  const Outcome outcome = Run("$D/x.plan --data $D/d.bin --steps 4 --resume $D/s --save $D/s --quiet", "ulimit -f 3;");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("checkpoint of step 4 was not saved"));
  const Outcome resumed = Run("$D/x.plan --data $D/d.bin --steps 4 --resume $D/s --save $D/s");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("after step 2"));
}

TEST_F(BowlineRunTest, ALossThatIsNoNumberNamesItsStep) {
  ToyShape steep = shape_;
  steep.lr = 1e30;
  Write("steep.plan", ToyTrainPlan(steep));
  const std::string run = "$D/steep.plan --data $D/d.bin --steps 9 --metrics $D/m --save $D/s ";
  const Outcome outcome = Run(run);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, ::testing::ContainsRegex("error: step [0-9]+: the loss is "));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "s/latest"));
  std::filesystem::remove(directory_ / "m");
  const Outcome allowed = Run(run + "--allow-non-finite");
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_THAT(allowed.output, HasSubstr("is not finite from element [0, 0] on; saved all the same"));
  EXPECT_EQ(TimelessMetrics("m").size(), 9u);
  EXPECT_TRUE(TimelessMetrics("m").back()["loss"].is_null());
}

TEST_F(BowlineRunTest, HelpNamesEveryFlag) {
  const Outcome help = Run("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag :
       {"--data",         "--steps", "--weights",    "--order", "--metrics", "--eval-data", "--eval-every",
        "--eval-batches", "--save",  "--save-every", "--keep",  "--resume",  "--prompt",    "--max-new-tokens",
        "--temperature",  "--seed",  "--echo",       "--quiet", "--profile", "--driver",    "--allow-non-finite",
        "Exit codes"}) {
    EXPECT_THAT(help.output, HasSubstr(flag));
  }
  EXPECT_THAT(help.output, Not(HasSubstr("error")));
}

}  // namespace
}  // namespace bowline
