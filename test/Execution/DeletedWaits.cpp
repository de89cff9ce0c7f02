//===- DeletedWaits.cpp - Each wait of a plan is needed, or the checker says that it is not
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Deletes each wait for an event of a plan in turn. Where the checker still calls the plan sound, the wait is
// redundant, and a run on the driver `discrete` has to give the same bits. Where it does not, one of 50 seeds has to
// give other bits, or an error. So checker and driver judge each other.
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "compiler/Check/PlanChecker.h"
#include "runtime/plan/plan_writer.h"
#include "test/Execution/StrategyCase.h"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kSteps = 2;

/// Small ones of every kind whose streams run beside each other.
const char *const kStrategies[] = {
    "model=llama-tiny mesh=dp=2",
    "model=llama-tiny mesh=dp=2 microbatches=2",
    "model=gpt2-tiny mesh=dp=2 zero=1",
    "model=llama-tied mesh=dp=2 zero=2 microbatches=2",
    "model=llama-tiny mesh=dp=2 zero=3",
    "model=qwen2-tiny mesh=dp=4 zero=3 prefetch=2",
    "model=llama-tiny mesh=tp=2",
    "model=llama-tiny mesh=tp=2 sequence_parallel=1",
    "model=llama-tiny mesh=tp=2 overlap_chunks=2",
    "model=llama-tiny mesh=dp=2,tp=2 zero=1",
    "model=llama-tiny mesh=pp=2 microbatches=4",
    "model=gpt2-tiny mesh=pp=2 microbatches=4 schedule=gpipe",
    "model=llama-tied mesh=pp=2 microbatches=4 schedule=1f1b",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=zb_h1",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=zb_v layers=4",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=interleaved:2 layers=4",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=dualpipe_v layers=4",
    "model=llama-tiny mesh=pp=2,dp=2 microbatches=4 zero=1",
    "model=llama-tiny mesh=pp=2,tp=2 microbatches=2",
    "model=llama-tiny mesh=pp=2,dp=2,tp=2 microbatches=2 zero=1",
};

struct Options {
  int seeds = 50;
  int every = 1; // of the waits
  int waitMicroseconds = 300;
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
  return tryOnRanks({bytes->data(), bytes->size()}, tokens, run);
}

/// Runs `body` in a process of its own, since a plan without a wait may do anything: whether it returned true.
template <typename Body> bool returnsTrueInAProcess(Body body) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0)
    _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool isSound(const fbs::PlanT &plan) {
  fbs::PlanT copy = plan;
  return CertifyPlan(copy).ok();
}

class DeletedWaits : public testing::Test {
public:
  DeletedWaits(std::string text, Options options) : text(std::move(text)), options(options) {}

  void TestBody() override {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    ASSERT_TRUE(strategy);
    std::unique_ptr<TokenDataset> tokens = randomDataset(strategy->sizes.vocabulary);
    std::unique_ptr<fbs::PlanT> plan = compileStrategy(*strategy);
    ASSERT_TRUE(tokens && plan);
    TrainOutcome expected = runOn(*plan, *tokens, "");
    ASSERT_TRUE(expected.status.ok()) << expected.status;

    int waits = 0, redundant = 0, found = 0, seedsNeeded = 0;
    for (auto &program : plan->programs)
      for (auto &segment : program->segments)
        for (size_t i = 0; i < segment->commands.size(); ++i) {
          if (segment->commands[i]->body.type != fbs::CommandBody::Wait || waits++ % options.every != 0)
            continue;
          std::unique_ptr<fbs::CommandT> wait = std::move(segment->commands[i]);
          segment->commands.erase(segment->commands.begin() + i);
          std::string place = program->name + ", segment " + segment->name + ", command " + std::to_string(i);
          if (isSound(*plan)) {
            ++redundant;
            EXPECT_TRUE(isRight(*plan, *tokens, expected, 0)) << "the checker calls the wait redundant: " << place;
          } else {
            int seed = 0;
            while (seed < options.seeds && isRight(*plan, *tokens, expected, seed))
              ++seed;
            EXPECT_LT(seed, options.seeds) << "the checker calls the wait needed: " << place;
            ++found;
            seedsNeeded += seed + 1;
          }
          segment->commands.insert(segment->commands.begin() + i, std::move(wait));
        }
    std::printf("%s: %d waits, %d redundant, %d wrong without it after %d seeds in all\n", text.c_str(), waits,
                redundant, found, seedsNeeded);
  }

private:
  bool isRight(const fbs::PlanT &plan, const TokenDataset &tokens, const TrainOutcome &expected, int seed) {
    std::string driver =
        "discrete:seed=" + std::to_string(seed) + ",wait_us=" + std::to_string(options.waitMicroseconds);
    return returnsTrueInAProcess([&] { return runOn(plan, tokens, driver).equals(expected); });
  }

  std::string text;
  Options options;
};

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  CLI::App app("Deletes each wait of compiled plans in turn, and runs what is left on the driver `discrete`");
  Options options;
  size_t strategies = std::size(kStrategies);
  app.add_option("--strategies", strategies, "How many strategies")->capture_default_str();
  app.add_option("--every", options.every, "Only every N-th wait")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--seeds", options.seeds, "How many seeds are tried")->capture_default_str();
  app.add_option("--wait-us", options.waitMicroseconds, "The longest wait between two commands")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  for (size_t i = 0; i < std::min(strategies, std::size(kStrategies)); ++i)
    testing::RegisterTest("DeletedWaits", StrategyCase::parse(kStrategies[i])->name().c_str(), nullptr, nullptr,
                          __FILE__, __LINE__,
                          [text = std::string(kStrategies[i]), options] { return new DeletedWaits(text, options); });
  return RUN_ALL_TESTS();
}
