//===- StrategyTest.cpp - Strategies from flags and from files
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Strategy.h"
#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/Sharding/StrategyApplication.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

namespace {

class StrategyTest : public testing::Test {
protected:
  StrategyTest() { context.loadDialect<dist::DistDialect, graph::GraphDialect>(); }

  Strategy::EmitError error() { return emitter; }

  /// The message of a strategy that must fail.
  std::string messageOf(const StrategyFlags &flags) {
    EXPECT_TRUE(failed(Strategy::fromFlags(flags, error())));
    return std::exchange(message, "");
  }

  Strategy make(const StrategyFlags &flags) {
    FailureOr<Strategy> strategy = Strategy::fromFlags(flags, error());
    EXPECT_TRUE(succeeded(strategy)) << message;
    return succeeded(strategy) ? *strategy : Strategy();
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    return parseSourceString<ModuleOp>(text, ParserConfig(&context));
  }

  MLIRContext context;
  std::string message;

private:
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    message += diagnostic.str() + "\n";
                                    return success();
                                  }};
  std::function<InFlightDiagnostic()> emitter = [this] { return emitError(UnknownLoc::get(&context)); };
};

std::vector<std::pair<std::string, int64_t>> axesOf(const Strategy &strategy) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const Strategy::Axis &axis : strategy.mesh)
    axes.emplace_back(axis.name, axis.size);
  return axes;
}

std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

} // namespace

TEST_F(StrategyTest, AxesHaveTheirUsualRoles) {
  Strategy strategy = make({.mesh = "pp=2,dp=3, tp=4"});
  EXPECT_THAT(axesOf(strategy), ElementsAre(Pair("pp", 2), Pair("dp", 3), Pair("tp", 4)));
  EXPECT_EQ(strategy.stageAxis, "pp");
  EXPECT_THAT(strategy.batchAxes, ElementsAre("dp"));
  EXPECT_EQ(strategy.tensorAxis, "tp");
  EXPECT_THAT(strategy.sequenceAxis, IsEmpty());
  EXPECT_THAT(strategy.zeroAxis, IsEmpty());
  EXPECT_EQ(strategy.getSize("tp"), 4);
  EXPECT_EQ(strategy.getSize("ep"), 1);
}

TEST_F(StrategyTest, NothingSaidIsOneRank) { EXPECT_THAT(axesOf(make({})), ElementsAre(Pair("dp", 1))); }

TEST_F(StrategyTest, AllFlagsTogether) {
  Strategy strategy = make({.mesh = "pp=2,dp=2,tp=2",
                            .sequenceParallel = true,
                            .zero = 2,
                            .schedule = "interleaved:2",
                            .microbatches = 8,
                            .stages = "[0..0], [1..3],[4..4],[5..9]",
                            .recompute = "full"});
  EXPECT_EQ(strategy.sequenceAxis, "tp");
  EXPECT_EQ(strategy.zeroLevel, 2);
  EXPECT_EQ(strategy.zeroAxis, "dp");
  EXPECT_EQ(strategy.schedule, (ScheduleChoice{ScheduleKind::Interleaved, 2, ""}));
  EXPECT_EQ(strategy.microbatches, 8);
  EXPECT_THAT(strategy.stages, ElementsAre(Pair(0, 0), Pair(1, 3), Pair(4, 4), Pair(5, 9)));
  EXPECT_EQ(strategy.recompute, "full");
}

TEST_F(StrategyTest, AnAxisOfZeroMayHaveAnyName) {
  Strategy strategy = make({.mesh = "dp=2,shards=4", .zero = 3, .zeroAxis = "shards"});
  EXPECT_THAT(strategy.batchAxes, ElementsAre("dp"));
  EXPECT_EQ(strategy.zeroAxis, "shards");
}

TEST_F(StrategyTest, HybridShardingDividesTheBatchTwice) {
  Strategy strategy = make({.mesh = "dp=2,fsdp=4", .zero = 3});
  EXPECT_THAT(strategy.batchAxes, ElementsAre("dp", "fsdp"));
  EXPECT_EQ(strategy.zeroAxis, "fsdp");
  EXPECT_EQ(make({.mesh = "dp=2,fsdp=4", .zero = 1, .zeroAxis = "dp"}).zeroAxis, "dp");
  Strategy alone = make({.mesh = "fsdp=4,tp=2", .zero = 2});
  EXPECT_THAT(alone.batchAxes, ElementsAre("fsdp"));
  EXPECT_EQ(alone.zeroAxis, "fsdp");
}

TEST_F(StrategyTest, LongFormSaysWhatTheFlagsSay) {
  const StrategyFlags cases[] = {{.mesh = "dp=2"},
                                 {.mesh = "tp=2,dp=4", .sequenceParallel = true, .zero = 1},
                                 {.mesh = "pp=2,dp=1,tp=2", .schedule = "zb_h1", .microbatches = 4},
                                 {.mesh = "pp=2", .microbatches = 3, .stages = "[0..4],[5..5]"},
                                 {.mesh = "dp=2,fsdp=2", .zero = 3, .recompute = "auto"},
                                 {.mesh = "dp=2,shards=2", .zero = 3, .zeroAxis = "shards"}};
  for (const StrategyFlags &flags : cases) {
    Strategy strategy = make(flags);
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    auto builder = OpBuilder::atBlockBegin(module->getBody());
    dist::StrategyOp op = strategy.write(builder, module->getLoc(), "s");
    ASSERT_TRUE(succeeded(module->verify())) << message;
    FailureOr<Strategy> read = Strategy::fromOp(op);
    ASSERT_TRUE(succeeded(read)) << message;
    std::string text = print(op);
    op.erase();
    EXPECT_EQ(print(read->write(builder, module->getLoc(), "s")), text);
    EXPECT_EQ(axesOf(*read), axesOf(strategy));
    EXPECT_EQ(read->batchAxes, strategy.batchAxes);
    EXPECT_EQ(read->tensorAxis, strategy.tensorAxis);
    EXPECT_EQ(read->stageAxis, strategy.stageAxis);
    EXPECT_EQ(read->sequenceAxis, strategy.sequenceAxis);
    EXPECT_EQ(read->zeroAxis, strategy.zeroAxis);
    EXPECT_EQ(read->zeroLevel, strategy.zeroLevel);
    EXPECT_EQ(read->stages, strategy.stages);
    EXPECT_EQ(read->microbatches, strategy.microbatches);
    EXPECT_EQ(read->recompute, strategy.recompute);
  }
}

TEST_F(StrategyTest, RefusedFlagsNameTheNearestValidChoice) {
  EXPECT_THAT(messageOf({.mesh = "dp"}), HasSubstr("has 'dp'; each axis is NAME=SIZE, for instance 'dp=2'"));
  EXPECT_THAT(messageOf({.mesh = "tp=x"}), HasSubstr("for instance 'tp=2'"));
  EXPECT_THAT(messageOf({.mesh = "=4"}), HasSubstr("for instance 'dp=2'"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,"}), HasSubstr("has ''; each axis is NAME=SIZE"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tp=2,dp=2"}), HasSubstr("axis 'dp' twice"));
  EXPECT_THAT(messageOf({.mesh = "dp=0"}), HasSubstr("the nearest valid size is 1"));
  EXPECT_THAT(messageOf({.mesh = "dp=1048576,tp=2"}),
              HasSubstr("axis 'tp' of 2 ranks; the nearest valid size is 1, for 1048576 ranks in all"));
  EXPECT_THAT(messageOf({.mesh = "dp=9223372036854775807,tp=4"}), HasSubstr("the nearest valid size is 1048576"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tpx=2"}),
              HasSubstr("axis 'tpx', which nothing uses; the nearest that has a use is 'tp'"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tp=2", .zero = 1, .zeroAxis = "do"}),
              HasSubstr("no axis 'do' for ZeRO; the nearest is 'dp'"));
  EXPECT_THAT(messageOf({.mesh = "tp=2", .zero = 1}), HasSubstr("has no 'dp'; add one, or name another"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .zero = 4}), HasSubstr("no ZeRO level 4; the nearest of 0 to 3 is 3"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .sequenceParallel = true}), HasSubstr("has no 'tp'; add one"));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .microbatches = 0}), HasSubstr("the nearest valid number is 1"));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .schedule = "1f1f"}), HasSubstr("the nearest is '1f1b'"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .recompute = "fall"}), HasSubstr("the nearest is 'full'"));
}

TEST_F(StrategyTest, RefusedStagesNameTheNearestValidChoice) {
  auto with = [&](const char *stages) { return messageOf({.mesh = "pp=2", .stages = stages}); };
  EXPECT_THAT(with("balance"), HasSubstr("the nearest valid forms are 'balanced' and '[0..5],[6..11]'"));
  EXPECT_THAT(with("[0..5],[6..x]"), HasSubstr("have '[6..x]'"));
  EXPECT_THAT(with("[1..5],[6..7]"), HasSubstr("stage 0 begins with layer 1; the nearest valid one is 0"));
  EXPECT_THAT(with("[0..5],[5..7]"), HasSubstr("stage 1 begins with layer 5; the nearest valid one is 6"));
  EXPECT_THAT(with("[0..5],[6..4]"), HasSubstr("stage 1 ends with layer 4; the nearest valid one is 6"));
  EXPECT_THAT(with("[0..9223372036854775807]"), HasSubstr("stage 0 ends with layer 9223372036854775807"));
  EXPECT_THAT(with("[0..5]"), HasSubstr("are 1, but there must be 2: 2 ranks along \"pp\""));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .schedule = "interleaved:3", .stages = "[0..1],[2..3]"}),
              HasSubstr("are 2, but there must be 6: 2 ranks along \"pp\" with 3 stages each"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .stages = "[0..1],[2..3]"}), HasSubstr("for instance 'pp=2'"));
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

class PatternTest : public StrategyTest {
protected:
  /// The shardings of the parameters below under a strategy with these lines, or the diagnostics.
  std::string apply(const std::string &lines) {
    OwningOpRef<ModuleOp> module = parse(R"(
      dist.strategy @s { mesh @mesh ["dp", "tp"] [2, 2]
)" + lines + R"(
      }
      graph.param @layers.0.attn.wq : tensor<4x6xf32> init(#graph.fill<0.0>) key("a")
      graph.param @layers.1.attn.wk : tensor<4x6xf32> init(#graph.fill<0.0>) key("b")
      graph.param @layers.10.mlp.w_up : tensor<3x6xf32> init(#graph.fill<0.0>) key("c")
      graph.param @norm : tensor<6xf32> init(#graph.fill<0.0>) key("d")
    )");
    if (!module)
      return std::exchange(message, "");
    FailureOr<Strategy> strategy = Strategy::fromOp(*module->getOps<dist::StrategyOp>().begin());
    if (failed(strategy) || failed(StrategyApplication(*module, *strategy).run()))
      return std::exchange(message, "");
    std::string result;
    for (auto param : module->getOps<graph::ParamOp>()) {
      auto sharding = param->getAttrOfType<dist::ShardingAttr>(dist::DistDialect::kShardingAttr);
      for (dist::DimAttr dim : sharding.getDims())
        result += dim.getAxes().empty() ? "-" : dim.getAxes().front().str();
      result += " ";
    }
    message.clear(); // remarks
    return result;
  }
};

} // namespace

TEST_F(PatternTest, GlobsMatchNames) {
  EXPECT_EQ(apply(""), "-- -- -- - ");
  EXPECT_EQ(apply(R"(shard "layers.*" as <[{}, {"tp"}]>)"), "-tp -tp -tp - ");
  EXPECT_EQ(apply(R"(shard "layers.*.attn.w{q,v}" as <[{"tp"}, {}]>)"), "tp- -- -- - ");
  EXPECT_EQ(apply(R"(shard "layers.?.*" as <[{}, {"tp"}]>)"), "-tp -tp -- - ");
  EXPECT_EQ(apply(R"(shard "layers.[1-9]*" as <[{}, {"tp"}]>)"), "-- -tp -tp - ");
  EXPECT_EQ(apply(R"(shard "norm" as <[{"dp"}]>)"), "-- -- -- dp ");
}

TEST_F(PatternTest, TheLastMatchCounts) {
  EXPECT_EQ(apply(R"(shard "layers.*" as <[{}, {"tp"}]>
                     shard "*.wk" as <[{"dp"}, {}]>)"),
            "-tp dp- -tp - ");
  EXPECT_EQ(apply(R"(shard "*.wk" as <[{"dp"}, {}]>
                     shard "layers.*" as <[{}, {"tp"}]>)"),
            "-tp -tp -tp - ");
}

TEST_F(PatternTest, RefusedPatternsNameTheNearestValidChoice) {
  EXPECT_THAT(apply(R"(shard "layers.*.attn.wp" as <[{}, {}]>)"),
              HasSubstr("pattern \"layers.*.attn.wp\" matches no parameter; the nearest is 'layers.0.attn.wq'"));
  EXPECT_THAT(apply(R"(shard "norms" as <[{}]>)"), HasSubstr("the nearest is 'norm'"));
  EXPECT_THAT(apply(R"(shard "layers.0*" as <[{"dp", "tp"}, {}]>
                       shard "norm" as <[{}, {}]>)"),
              HasSubstr("matches 'norm' with 'tensor<6xf32>', which needs 1 dimensions in its sharding, not 2"));
}
