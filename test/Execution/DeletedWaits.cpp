//===- DeletedWaits.cpp - Each wait of a plan is needed, or the checker says that it is not
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Deletes each wait for an event of a plan in turn. Where the checker still calls the plan sound, the wait is
// redundant, and runs on the driver `discrete` have to give the same bits. Where it does not, one of 50 seeds has to
// give other bits, or an error, and the plan with the wait the same bits with that seed. So checker and driver judge
// each other. A run that dies says nothing about either, and is counted apart.
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "checker/PlanChecker.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_writer.h"
#include "test/Execution/StrategyCase.h"

#include <algorithm>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kSteps = 2;

/// How many seeds the waits are tried with that the checker calls redundant: each way in which the driver is late.
constexpr int kSeedsOfRedundant = 3;

/// Small ones of every kind whose streams run beside each other.
const char *const kStrategies[] = {
    "model=llama-tiny mesh=dp=2",
    "model=mistral-tiny mesh=dp=2 microbatches=2 recompute=selective",
    "model=gpt2-tiny mesh=dp=2 zero=1",
    "model=llama-tied mesh=dp=2 zero=2 microbatches=2",
    "model=llama-tiny mesh=fsdp=2 zero=3 recompute=full",
    "model=qwen2-tiny mesh=dp=4 zero=3 prefetch=2",
    "model=qwen3-tiny mesh=tp=2",
    "model=llama-tiny mesh=tp=2 sequence_parallel=1 dtype=bf16",
    "model=llama-tiny mesh=tp=2 overlap_chunks=2",
    "model=llama-tiny mesh=dp=2,tp=2 zero=1",
    "model=llama-tiny mesh=pp=3 microbatches=4 schedule=zb_h2 layers=3",
    "model=gpt2-tiny mesh=pp=2 microbatches=4 schedule=gpipe",
    "model=llama-tied mesh=pp=2 microbatches=4 schedule=1f1b",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=zb_h1 optimizer=sgd",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=zb_v layers=4",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=interleaved:2 layers=4",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=dualpipe_v layers=4",
    "model=llama-tiny mesh=pp=2,dp=2 microbatches=4 schedule=breadth_first:2 layers=4 zero=1",
    "model=llama-tiny mesh=pp=2,tp=2 microbatches=2",
    "model=llama-tiny mesh=pp=2,dp=2,tp=2 microbatches=2 zero=1",
};

struct Options {
  int seeds = 50;
  int every = 1; // of the waits
  int only = -1; // the number of a wait
};

TrainOutcome runOn(const fbs::PlanT &plan, const TokenDataset &tokens, const std::string &driver) {
  TrainOutcome outcome;
  fbs::PlanT copy = plan;
  auto bytes = WritePlan(copy);
  if (!bytes.ok()) {
    outcome.status = bytes.status();
    return outcome;
  }
  TrainRun run{kSteps};
  run.driver = driver;
  run.evaluate = true;
  return tryOnRanks({bytes->data(), bytes->size()}, tokens, run);
}

enum class Outcome { Right, Wrong, Crashed };

/// Runs `body` in a process of its own, since a plan without a wait may do anything: whether it returned true.
template <typename Body> Outcome inAProcess(Body body) {
  constexpr int kRight = 0, kWrong = 17; // which no library exits with
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0)
    _exit(body() ? kRight : kWrong);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return Outcome::Crashed;
  return WEXITSTATUS(status) == kRight   ? Outcome::Right
         : WEXITSTATUS(status) == kWrong ? Outcome::Wrong
                                         : Outcome::Crashed;
}

/// How many waits of all plans some seed was wrong without.
int foundInAll = 0;

absl::Status check(const fbs::PlanT &plan) {
  fbs::PlanT copy = plan;
  return CertifyPlan(copy);
}

/// Whether the plan can be loaded: one that cannot says nothing about the order of its commands.
absl::Status load(const fbs::PlanT &plan) {
  fbs::PlanT copy = plan;
  auto bytes = WritePlan(copy);
  return bytes.ok() ? LoadedPlan::FromBytes({bytes->data(), bytes->size()}).status() : bytes.status();
}

class DeletedWaits : public testing::Test {
public:
  DeletedWaits(std::string text, Options options) : text(std::move(text)), options(options) {}

  void TestBody() override {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    ASSERT_TRUE(strategy);
    tokens = randomDataset(strategy->sizes.vocabulary);
    plan = compileStrategy(*strategy);
    ASSERT_TRUE(tokens && plan);
    expected = runOn(*plan, *tokens, "");
    ASSERT_TRUE(expected.status.ok()) << expected.status;

    for (auto &program : plan->programs)
      for (auto &segment : program->segments)
        for (size_t i = 0; i < segment->commands.size(); ++i) {
          if (segment->commands[i]->body.type != fbs::CommandBody::Wait)
            continue;
          int number = waits++;
          if (options.only >= 0 ? number != options.only : number % options.every != 0)
            continue;
          std::unique_ptr<fbs::CommandT> wait = std::move(segment->commands[i]);
          segment->commands.erase(segment->commands.begin() + i);
          judge(number, "wait " + std::to_string(number) + ", " + program->name + ", segment " + segment->name +
                            ", command " + std::to_string(i) + ", of '" + text + "'");
          segment->commands.insert(segment->commands.begin() + i, std::move(wait));
        }
    EXPECT_GT(waits, 0) << "nothing waits in '" << text << "'; choose a strategy whose streams run beside each other";
    // The driver found something because of the wait, and not because nothing is right on it.
    for (int seed : usedSeeds)
      EXPECT_EQ(outcome(seed), Outcome::Right) << "the whole plan is wrong with seed " << seed << ": '" << text << "'";
    std::printf(
        "%s: %d waits, %d of them tried, %d redundant, %d wrong without it after %d seeds in all, at most %d for "
        "wait %d; %d runs crashed\n",
        text.c_str(), waits, tried, redundant, found, seedsNeeded, mostSeeds, hardest, crashes);
    EXPECT_EQ(redundant + found, tried) << text;
    if (options.every == 1 && options.only < 0)
      EXPECT_GT(found, 0) << "no wait of '" << text << "' is needed";
    foundInAll += found;
  }

private:
  /// The plan, which lacks the wait of this number, at `place`.
  void judge(int number, const std::string &place) {
    ++tried;
    absl::Status loaded = load(*plan);
    ASSERT_TRUE(loaded.ok()) << place << ": " << loaded;
    absl::Status proven = check(*plan);
    if (proven.ok()) {
      ++redundant;
      for (int seed = 0; seed < kSeedsOfRedundant; ++seed)
        EXPECT_EQ(outcome(seed), Outcome::Right) << "the checker calls the wait redundant, and seed " << seed
                                                 << " gives wrong results without it: " << place;
      return;
    }
    ASSERT_TRUE(absl::IsAborted(proven)) << "no counterexample, but " << proven << ": " << place;
    int seed = 0;
    while (seed < options.seeds && outcome(seed) != Outcome::Wrong)
      ++seed;
    seedsNeeded += seed + 1;
    if (seed >= mostSeeds) {
      mostSeeds = seed + 1;
      hardest = number;
    }
    EXPECT_LT(seed, options.seeds) << "the checker calls the wait needed: " << place << ": " << proven;
    if (seed == options.seeds)
      return;
    ++found;
    usedSeeds.insert(seed);
  }

  Outcome outcome(int seed) {
    std::string driver = "discrete:seed=" + std::to_string(seed);
    Outcome outcome = inAProcess([&] { return runOn(*plan, *tokens, driver).equals(expected); });
    crashes += outcome == Outcome::Crashed;
    return outcome;
  }

  std::string text;
  Options options;
  std::unique_ptr<TokenDataset> tokens;
  std::unique_ptr<fbs::PlanT> plan;
  TrainOutcome expected;
  std::set<int> usedSeeds;
  int waits = 0, tried = 0, redundant = 0, found = 0, crashes = 0, seedsNeeded = 0, mostSeeds = 0, hardest = -1;
};

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  CLI::App app("Deletes each wait of compiled plans in turn, and runs what is left on the driver `discrete`");
  Options options;
  std::vector<std::string> strategies(std::begin(kStrategies), std::end(kStrategies));
  app.add_option("STRATEGY", strategies, "Instead of 20, for instance 'model=llama-tiny mesh=dp=2'");
  app.add_option("--only", options.only, "Only the wait of this number");
  app.add_option("--every", options.every, "Only every N-th wait")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--seeds", options.seeds, "How many seeds are tried")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  for (const std::string &text : strategies) {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    if (!strategy)
      return 1;
    testing::RegisterTest("DeletedWaits", strategy->name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [text, options] { return new DeletedWaits(text, options); });
  }
  int status = RUN_ALL_TESTS();
  if (status == 0 && foundInAll == 0 && options.only < 0) {
    std::printf("no wait was needed in any plan: nothing was judged\n");
    return 1;
  }
  return status;
}
