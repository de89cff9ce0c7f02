//===- RandomStrategies.cpp - Random models on random meshes train as on one rank
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Draws strategies that are allowed, and compares each with one rank: losses and gradient norms, equal results on all
// ranks, the use of memory, all proofs of the checker; and the bits of a few steps on another driver with those on the
// cpu. After a failure it prints the command that repeats it. Combinations that chance alone would rarely bring
// together are drawn in turns (kCombinations).
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "test/Execution/StrategyCase.h"
#include "test/Support/test_seed.h"

#include <algorithm>
#include <functional>
#include <iterator>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kSteps = 20, kStepsOnDriver = 4;

/// The number of ranks along each axis, for tests that ask for a kind of strategy.
struct Ranks {
  int64_t pp = 1, dp = 1, fsdp = 1, tp = 1;
  int64_t count() const { return pp * dp * fsdp * tp; }
};

/// As the mesh of a case says.
Ranks ranksOf(const StrategyCase &c) {
  Ranks ranks;
  for (auto [name, size] : {std::pair("pp", &ranks.pp), std::pair("dp", &ranks.dp), std::pair("fsdp", &ranks.fsdp),
                            std::pair("tp", &ranks.tp)})
    for (absl::string_view axis : absl::StrSplit(c.mesh, ','))
      if (absl::ConsumePrefix(&axis, absl::StrCat(name, "=")))
        EXPECT_TRUE(absl::SimpleAtoi(axis, size)) << c.mesh;
  return ranks;
}

using Combination = std::function<bool(const StrategyCase &, const Ranks &)>;

Combination scheduled(const std::string &schedule, std::function<bool(const StrategyCase &, const Ranks &)> also) {
  return [=](const StrategyCase &c, const Ranks &ranks) {
    return ranks.pp > 1 && c.schedule.starts_with(schedule) && also(c, ranks);
  };
}

bool sharesKeys(const StrategyCase &c, const Ranks &ranks) { return c.sizes.keyHeads < ranks.tp; }
bool isLong(const StrategyCase &, const Ranks &ranks) { return ranks.pp > 2; }
bool hasZero(const StrategyCase &c, const Ranks &) { return c.zero > 0; }
bool gathersOnce(const StrategyCase &c, const Ranks &) { return c.zeroOnce; }
bool dividesBackward(const std::string &schedule) { return schedule.starts_with("zb_") || schedule == "dualpipe_v"; }
/// Chunks are of sequences: a rank that has one in a microbatch divides nothing.
bool isChunked(const StrategyCase &c, const Ranks &ranks) {
  int64_t sequences = c.batch / (c.microbatches * ranks.dp * ranks.fsdp);
  return c.overlapChunks > 1 && ranks.tp > 1 && sequences >= 2;
}
bool isBF16(const StrategyCase &c, const Ranks &ranks) { return c.dtype == "bf16" && ranks.count() > 1; }

/// Each strategy is one of these, in turns.
const Combination kCombinations[] = {
    [](const StrategyCase &, const Ranks &) { return true; },
    [](const StrategyCase &c, const Ranks &ranks) { return isBF16(c, ranks) && ranks.tp > 1; },
    [](const StrategyCase &c, const Ranks &ranks) { return isBF16(c, ranks) && ranks.pp > 1; },
    [](const StrategyCase &c, const Ranks &ranks) { return isBF16(c, ranks) && hasZero(c, ranks); },
    [](const StrategyCase &c, const Ranks &ranks) { return ranks.pp > 1 && sharesKeys(c, ranks); },
    [](const StrategyCase &c, const Ranks &ranks) { return c.model == "qwen2-tiny" && sharesKeys(c, ranks); },
    [](const StrategyCase &c, const Ranks &ranks) { return isChunked(c, ranks) && c.sequenceParallel; },
    [](const StrategyCase &c, const Ranks &ranks) { return isChunked(c, ranks) && ranks.pp > 1; },
    [](const StrategyCase &c, const Ranks &ranks) { return isChunked(c, ranks) && hasZero(c, ranks); },
    [](const StrategyCase &c, const Ranks &ranks) { return isChunked(c, ranks) && isBF16(c, ranks); },
    [](const StrategyCase &c, const Ranks &ranks) { return ranks.pp > 1 && c.recompute != "none"; },
    [](const StrategyCase &c, const Ranks &ranks) {
      return ranks.pp > 1 && dividesBackward(c.schedule) && c.recompute == "full";
    },
    [](const StrategyCase &c, const Ranks &ranks) { return ranks.pp == 1 && c.zeroOnce && c.microbatches > 1; },
    scheduled("gpipe", gathersOnce),
    scheduled("breadth_first", gathersOnce),
    scheduled("gpipe", hasZero),
    scheduled("breadth_first", hasZero),
    scheduled("zb_h2", hasZero),
    scheduled("dualpipe_v", hasZero),
    scheduled("gpipe", isLong),
    scheduled("1f1b", isLong),
    scheduled("interleaved", isLong),
    scheduled("breadth_first", isLong),
    scheduled("zb_h1", isLong),
    scheduled("zb_h2", isLong),
    scheduled("zb_v", isLong),
    scheduled("dualpipe_v", isLong),
};

/// Draws strategies that the compiler accepts, however odd they are.
class StrategyGenerator {
public:
  explicit StrategyGenerator(std::mt19937_64 &engine) : engine(engine) {}

  StrategyCase draw() {
    const Combination &combination = kCombinations[next++ % std::size(kCombinations)];
    while (true) {
      StrategyCase strategy = drawAny();
      if (combination(strategy, {pp, dp, fsdp, tp}))
        return strategy;
    }
  }

private:
  StrategyCase drawAny() {
    StrategyCase c;
    c.model = pick<std::string>({"llama-tiny", "llama-tied", "qwen2-tiny", "qwen3-tiny", "mistral-tiny", "gpt2-tiny"});
    drawMesh(c);
    drawSizes(c);
    c.microbatches = integer(1, 4);
    if (pp > 1)
      drawPipeline(c);
    if (tp > 1)
      c.sequenceParallel = flip();
    // Sequences of a microbatch are divided among the ranks, and positions where activations are.
    c.batch = c.microbatches * dp * fsdp * integer(1, 2);
    c.seq = c.sequenceParallel ? tp * integer(1, 12 / tp) : integer(3, 13);
    if (dp * fsdp > 1)
      c.zero = integer(0, 3);
    if (c.zero > 0 && dp > 1 && fsdp > 1)
      c.zeroAxis = pick<std::string>({"", "dp", "fsdp"});
    c.bucketBytes = pick<int64_t>({0, 700, 4096, 1 << 20});
    c.prefetch = integer(0, 3);
    c.overlapChunks = pick<int64_t>({0, 1, 1, 2, 3});
    c.zeroOnce = c.zero == 3 && flip();
    c.recompute = pick<std::string>({"none", "none", "selective", "full"});
    c.dtype = pick<std::string>({"f32", "f32", "f32", "bf16"});
    c.optimizer = pick<std::string>({"adamw", "adamw", "adamw", "sgd"});
    return c;
  }

  int64_t integer(int64_t low, int64_t highInclusive) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(highInclusive - low + 1));
  }
  bool flip() { return integer(0, 1) == 1; }
  template <typename T> T pick(std::vector<T> choices) {
    return choices[static_cast<size_t>(integer(0, static_cast<int64_t>(choices.size()) - 1))];
  }

  /// Up to 8 ranks, axes in any order, also of size 1.
  void drawMesh(StrategyCase &c) {
    pp = dp = fsdp = tp = 1;
    std::vector<std::pair<std::string, int64_t *>> axes = {{"pp", &pp}, {"dp", &dp}, {"fsdp", &fsdp}, {"tp", &tp}};
    std::shuffle(axes.begin(), axes.end(), engine);
    int64_t ranks = 1;
    for (auto &[name, size] : axes) {
      if (integer(0, 3) == 0)
        continue;
      // Mostly small, so that there is room for the next one.
      *size = std::min(pick<int64_t>({1, 2, 2, 2, 2, 3, 4, 5, 8}), 8 / ranks);
      if (name == "tp" && 8 % *size != 0) // heads
        *size = 2;
      ranks *= *size;
      c.mesh += (c.mesh.empty() ? "" : ",") + name + "=" + std::to_string(*size);
    }
    if (c.mesh.empty())
      c.mesh = "dp=1";
  }

  /// At least a layer for each stage.
  void drawPipeline(StrategyCase &c) {
    c.schedule = pick<std::string>(
        {"gpipe", "1f1b", "interleaved:2", "interleaved:3", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"});
    int64_t chunks = c.schedule.ends_with(":3") ? 3 : c.schedule.ends_with(":2") || c.schedule.ends_with("_v") ? 2 : 1;
    c.sizes.layers = pp * chunks + integer(0, 3);
    if (c.schedule.starts_with("interleaved"))
      c.microbatches = pp * integer(1, 2);
    else if (c.schedule == "dualpipe_v")
      c.microbatches = 2 * pp + integer(0, 2);
    else
      c.microbatches = integer(1, 2 * pp);
  }

  /// Heads divide among the ranks, and key heads, or ranks among those; nothing else need divide.
  void drawSizes(StrategyCase &c) {
    c.sizes.vocabulary = integer(17, 41);
    c.sizes.intermediate = integer(9, 33);
    c.sizes.heads = std::max<int64_t>(2, tp) * integer(1, 8 / std::max<int64_t>(4, tp));
    c.sizes.headDim = pick<int64_t>({4, 6});
    c.sizes.keyHeads = c.sizes.heads;
    if (c.model != "gpt2-tiny")
      do
        c.sizes.keyHeads = integer(1, c.sizes.heads);
      while (c.sizes.heads % c.sizes.keyHeads != 0 || (c.sizes.keyHeads % tp != 0 && tp % c.sizes.keyHeads != 0));
  }

  std::mt19937_64 &engine;
  size_t next = 0; // of kCombinations
  int64_t pp = 1, dp = 1, fsdp = 1, tp = 1;
};

class RandomStrategy : public testing::Test {
public:
  RandomStrategy(StrategyCase strategy, std::string program, std::string driver)
      : strategy(std::move(strategy)), program(std::move(program)), driver(std::move(driver)) {}

  void TestBody() override {
    std::vector<std::string> remarks;
    std::unique_ptr<fbs::PlanT> plan = expectTrainsAsOneRank(strategy, kSteps, &remarks);
    if (isChunked(strategy, ranksOf(strategy)))
      for (const std::string &remark : remarks)
        EXPECT_EQ(remark.find("nothing is divided"), std::string::npos) << remark;
    if (plan && !driver.empty())
      expectTrainsAlikeOn(driver, *plan, strategy.sizes.vocabulary, kStepsOnDriver);
    if (HasFailure())
      std::printf("to repeat it: %s%s '%s'\n", program.c_str(), driver.empty() ? "" : (" --also-on " + driver).c_str(),
                  strategy.text().c_str());
  }

private:
  StrategyCase strategy;
  std::string program, driver;
};

/// `driver` as in --driver NAME[:KEY=VALUE,...], with one more setting.
std::string withSeed(const std::string &driver, uint64_t seed) {
  return driver + (driver.find(':') == std::string::npos ? ":" : ",") + "seed=" + std::to_string(seed);
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  CLI::App app("Compares random strategies on 1 to 8 ranks with one rank");
  int count = 200;
  uint64_t seed = TestSeed();
  std::vector<std::string> texts;
  std::string driver;
  uint64_t driverSeed = 0;
  app.add_option("--count", count, "How many strategies")->capture_default_str();
  app.add_option("--seed", seed, "Of the choices")->capture_default_str();
  app.add_option("--also-on", driver, "Compare the bits of a few steps on this driver and on the cpu, too");
  // Which streams a `discrete` device lets wait depends on its seed: no one of them finds every missing event.
  CLI::Option *seedsOfDriver =
      app.add_option("--driver-seed", driverSeed,
                     "Setting `seed` of that driver for the first strategy; each strategy after it has the next one");
  app.add_option("STRATEGY", texts, "Instead of random ones, for instance 'model=llama-tiny mesh=dp=2,tp=2 zero=1'");
  CLI11_PARSE(app, argc, argv);
  std::vector<StrategyCase> strategies;
  for (const std::string &text : texts) {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    if (!strategy)
      return 1;
    strategies.push_back(*strategy);
  }
  if (texts.empty()) {
    std::mt19937_64 engine(seed);
    StrategyGenerator generator(engine);
    for (int i = 0; i < count; ++i)
      strategies.push_back(generator.draw());
    std::printf("%d strategies; to repeat them: %s --count %d --seed %llu\n", count, argv[0], count,
                static_cast<unsigned long long>(seed));
  }
  for (size_t i = 0; i < strategies.size(); ++i)
    testing::RegisterTest("RandomStrategies", (std::to_string(i) + "_" + strategies[i].name()).c_str(), nullptr,
                          nullptr, __FILE__, __LINE__,
                          [strategy = strategies[i], program = std::string(argv[0]),
                           driver = seedsOfDriver->count() == 0 ? driver : withSeed(driver, driverSeed + i)] {
                            return new RandomStrategy(strategy, program, driver);
                          });
  return RUN_ALL_TESTS();
}
