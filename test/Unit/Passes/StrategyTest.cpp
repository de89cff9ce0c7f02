//===- StrategyTest.cpp - Strategies from flags and from files
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Strategy/Strategy.h"
#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/Sharding/Assignment/StrategyApplication.h"
#include "passes/Strategy/StrategyFlags.h"
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

  /// The strategy that flags describe, in a module of its own.
  FailureOr<Strategy> read(const StrategyFlags &flags) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    if (failed(addStrategyFlags(*module, flags)))
      return failure();
    dist::StrategyOp op = dist::StrategyOp::of(*module);
    return op ? Strategy::fromOp(op) : FailureOr<Strategy>(Strategy());
  }

  /// The place and the message of a strategy that must fail.
  std::string messageOf(const StrategyFlags &flags) {
    EXPECT_TRUE(failed(read(flags)));
    return std::exchange(message, "");
  }

  Strategy make(const StrategyFlags &flags) {
    FailureOr<Strategy> strategy = read(flags);
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
                                    if (auto flag = dyn_cast<NameLoc>(diagnostic.getLocation()))
                                      message += flag.getName().str() + ": ";
                                    message += diagnostic.str() + "\n";
                                    return success();
                                  }};
};

std::vector<std::pair<std::string, int64_t>> axesOf(const Strategy &strategy) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const Strategy::Axis &axis : strategy.mesh)
    axes.emplace_back(axis.name, axis.size);
  return axes;
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

TEST_F(StrategyTest, NothingSaidIsOneRank) {
  EXPECT_THAT(axesOf(make({})), IsEmpty());
  EXPECT_EQ(make({.microbatches = 2}).countRanks(), 1);
}

TEST_F(StrategyTest, AllFlagsTogether) {
  Strategy strategy = make({.mesh = "pp=2,dp=2,tp=2",
                            .sequenceParallel = true,
                            .zero = 3,
                            .prefetch = 2,
                            .schedule = "interleaved:2",
                            .microbatches = 8,
                            .stages = "[0..0], [1..3],[4],[5..9]",
                            .recompute = "full"});
  EXPECT_EQ(strategy.sequenceAxis, "tp");
  EXPECT_EQ(strategy.zeroLevel, 3);
  EXPECT_EQ(strategy.zeroAxis, "dp");
  EXPECT_EQ(strategy.prefetch, 2);
  EXPECT_EQ(strategy.schedule, (ScheduleChoice{ScheduleKind::Interleaved, 2, ""}));
  EXPECT_EQ(strategy.microbatches, 8);
  EXPECT_THAT(strategy.stages, ElementsAre(Pair(0, 0), Pair(1, 3), Pair(4, 4), Pair(5, 9)));
  EXPECT_EQ(strategy.countRanks(), 8);
}

TEST_F(StrategyTest, HybridShardingDividesTheBatchTwice) {
  Strategy strategy = make({.mesh = "dp=2,fsdp=4", .zero = 3});
  EXPECT_THAT(strategy.batchAxes, ElementsAre("dp", "fsdp"));
  EXPECT_EQ(strategy.zeroAxis, "fsdp");
  EXPECT_EQ(make({.mesh = "dp=2,fsdp=4", .zero = 1, .zeroAxis = "dp"}).zeroAxis, "dp");
  Strategy alone = make({.mesh = "fsdp=4,tp=2", .zero = 2});
  EXPECT_THAT(alone.batchAxes, ElementsAre("fsdp"));
  EXPECT_EQ(alone.zeroAxis, "fsdp");
  // One rank has nobody to divide with.
  EXPECT_EQ(make({.mesh = "dp=2,fsdp=1", .zero = 3}).zeroAxis, "dp");
}

TEST_F(StrategyTest, RefusedFlagsAreNamedWithTheNearestValidChoice) {
  EXPECT_THAT(
      messageOf({.mesh = "dp"}),
      HasSubstr("--mesh dp: axes are NAME=SIZE, with commas between, for instance 'dp=N' of N ranks, and not 'dp'"));
  EXPECT_THAT(messageOf({.mesh = "tp=x"}), HasSubstr("for instance 'tp=N'"));
  EXPECT_THAT(messageOf({.mesh = "=4"}), HasSubstr("for instance 'dp=N'"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,"}),
              HasSubstr("axes are NAME=SIZE, with commas between, for instance 'dp=N' of N ranks, and not ''"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tp=2,dp=2"}), HasSubstr("axis \"dp\" is named twice; remove one"));
  EXPECT_THAT(messageOf({.mesh = "dp=0"}), HasSubstr("axis \"dp\" has size 0; the nearest valid one is 1"));
  EXPECT_THAT(messageOf({.mesh = "dp=1048576,tp=2"}),
              HasSubstr("axis \"tp\" has size 2; the nearest valid one is 1, for 1048576 ranks in all"));
  EXPECT_THAT(messageOf({.mesh = "dp=9223372036854775807,tp=4"}), HasSubstr("the nearest valid one is 262144"));
  EXPECT_THAT(messageOf({.mesh = "dp=9223372036854775807,tp=2097152"}), HasSubstr("give all of them fewer"));
  EXPECT_THAT(
      messageOf({.mesh = "dp=2,tpx=2"}),
      HasSubstr("--mesh dp=2,tpx=2: 'dist.mesh' op has axis 'tpx', which nothing uses; axes named 'pp', 'fsdp', "
                "'tp' have a use by themselves"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tp=2", .zero = 1, .zeroAxis = "do"}),
              HasSubstr("--zero 1: 'dist.zero' op names axis \"do\", which the mesh does not have; the nearest is "
                        "\"dp\""));
  EXPECT_THAT(
      messageOf({.mesh = "tp=2", .zero = 1}),
      HasSubstr("needs an axis of the batch, and the mesh has none; add one of N ranks, --mesh dp=N,tp=2, or in a "
                "file the axis \"dp\" of size N"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .zero = 4}), HasSubstr("has level 4; the nearest of 0 to 3 is 3"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .prefetch = 1}), HasSubstr("--prefetch 1: says how parameters"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .zero = 1, .prefetch = 1}), HasSubstr("prefetches with level 1"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .zero = 0, .prefetch = 1}), HasSubstr("prefetches with level 0"));
  EXPECT_THAT(messageOf({.mesh = "dp=2,tp=2", .zero = 0, .zeroAxis = "tp"}),
              HasSubstr("--zero 0: 'dist.zero' op names axis \"tp\" with level 0, which divides nothing along it; "
                        "remove it, or use level 1, 2 or 3"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .sequenceParallel = true}), HasSubstr("there is no axis \"tp\"; add one"));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .microbatches = 0}),
              HasSubstr("--microbatches 0: 'dist.microbatches' op has the number 0; the nearest valid one is 1"));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .schedule = "1f1f"}),
              HasSubstr("--schedule 1f1f: there is no schedule '1f1f'; the nearest is '1f1b'"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .recompute = "fall"}), HasSubstr("is \"full\""));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .bucketBytes = -1}), HasSubstr("the nearest valid one is 0"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .overlapChunks = -1}), HasSubstr("the nearest valid choices are 1 and auto"));
  EXPECT_THAT(messageOf({.bucketBytes = 4096}),
              HasSubstr("--bucket-bytes 4096: 'dist.bucket_bytes' op is about several "
                        "ranks, and the strategy has none; add a mesh"));
}

TEST_F(StrategyTest, RefusedStagesNameTheNearestValidChoice) {
  auto with = [&](const char *stages) { return messageOf({.mesh = "pp=2", .stages = stages}); };
  EXPECT_THAT(with("balance"), HasSubstr("the nearest valid forms are 'balanced' and '[0..5],[6..10],[11]'"));
  EXPECT_THAT(with("[0..5],[6..x]"), HasSubstr("has '[6..x]' in '[0..5],[6..x]'"));
  EXPECT_THAT(with("[0],[]"), HasSubstr("has '[]'"));
  EXPECT_THAT(with("[1..5],[6..7]"), HasSubstr("stage 0 begins with layer 1; the nearest valid one is 0"));
  EXPECT_THAT(with("[0],[2]"), HasSubstr("stage 1 begins with layer 2; the nearest valid one is 1"));
  EXPECT_THAT(with("[0..5],[5..7]"), HasSubstr("stage 1 begins with layer 5; the nearest valid one is 6"));
  EXPECT_THAT(with("[0..5],[6..4]"), HasSubstr("stage 1 ends with layer 4; the nearest valid one is 6"));
  EXPECT_THAT(with("[0..9223372036854775807]"), HasSubstr("stage 0 ends with layer 9223372036854775807"));
  EXPECT_THAT(with("[0..5]"), HasSubstr("has the layers of 1 stages, but there must be 2: 2 ranks along \"pp\""));
  EXPECT_THAT(messageOf({.mesh = "pp=2", .schedule = "interleaved:3", .stages = "[0..1],[2..3]"}),
              HasSubstr("of 2 stages, but there must be 6: 2 ranks along \"pp\" with 3 stages each"));
  EXPECT_THAT(messageOf({.mesh = "dp=2", .stages = "[0..1],[2..3]"}),
              HasSubstr("add one of N ranks to the mesh: --mesh pp=N"));
}

TEST_F(StrategyTest, NothingElseGoesAlongTheAxisOfTheStages) {
  auto messageOfLines = [&](const std::string &lines) {
    OwningOpRef<ModuleOp> module = parse("dist.strategy @s {\n" + lines + "\n}");
    EXPECT_TRUE(!module || failed(Strategy::fromOp(*module->getOps<dist::StrategyOp>().begin()))) << lines;
    return std::exchange(message, "");
  };
  // Once the usual axis, once that of a line.
  EXPECT_THAT(
      messageOfLines(R"(mesh @mesh ["pp"] [2] shard "lm_head.weight" as <[{"pp"}, {}]>)"),
      HasSubstr(
          "'dist.shard' op takes axis \"pp\", the axis of the pipeline stages: each stage has parameters of its own, "
          "so this axis cannot divide them; use another axis of the mesh, or rename this one if the model shall "
          "have no stages"));
  EXPECT_THAT(
      messageOfLines(R"(mesh @mesh ["s", "tp"] [2, 2] stages "s" shard "*" as <[{}, {"tp", "s", ?}]>)"),
      HasSubstr(
          "'dist.shard' op takes axis \"s\", the axis of the pipeline stages: each stage has parameters of its own, "
          "so this axis cannot divide them; use another axis of the mesh\n"));
  EXPECT_THAT(messageOfLines(R"(mesh @mesh ["pp", "dp"] [2, 2] zero level 1 axis "pp")"),
              HasSubstr("'dist.zero' op takes axis \"pp\", the axis of the pipeline stages"));
  EXPECT_THAT(messageOfLines(R"(mesh @mesh ["pp", "tp"] [2, 2] sequence_parallel "pp")"),
              HasSubstr("'dist.sequence_parallel' op takes axis \"pp\", the axis of the pipeline stages"));
  EXPECT_THAT(messageOfLines(R"(mesh @mesh ["pp", "dp"] [2, 2] batch "dp" stages "dp")"),
              HasSubstr("'dist.stages' op takes axis \"dp\", which 'dist.batch' takes too"));
  EXPECT_THAT(messageOfLines(R"(mesh @mesh ["pp", "tp"] [2, 2] tensor_parallel "pp" stages "pp")"),
              HasSubstr("'dist.stages' op takes axis \"pp\", which 'dist.tensor_parallel' takes too"));
  // An axis that has another part is not that of the stages, whatever its name.
  OwningOpRef<ModuleOp> other = parse(R"(dist.strategy @s { mesh @mesh ["pp"] [2] batch "pp"
                                         shard "norm" as <[{"pp"}]> zero level 1 axis "pp" })");
  EXPECT_TRUE(succeeded(Strategy::fromOp(*other->getOps<dist::StrategyOp>().begin()))) << message;
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
      graph.param @layers.0.attn.wq : tensor<4x6xf32> init(#graph.fill<0.0>) key("h.0.q_proj.weight")
      graph.param @layers.1.attn.wk : tensor<4x6xf32> init(#graph.fill<0.0>) key("h.1.k_proj.weight")
      graph.param @layers.10.mlp.w_up : tensor<3x6xf32> init(#graph.fill<0.0>) key("h.10.up.weight")
      graph.param @norm : tensor<6xf32> init(#graph.fill<0.0>) key("ln_f.weight")
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

// Text cannot say these.
TEST_F(StrategyTest, RolesHaveWhatTheirKindHas) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto make = [&](graph::RoleKind kind, ArrayRef<int64_t> parts, int64_t sharedBy) {
    message.clear();
    return graph::RoleAttr::getChecked([&] { return emitError(UnknownLoc::get(&context)); }, &context, kind, parts,
                                       sharedBy);
  };
  EXPECT_FALSE(make(graph::RoleKind::Column, {3, 5}, 1));
  EXPECT_EQ(message, "role column has no parts; only fused has");
  EXPECT_FALSE(make(graph::RoleKind::Row, {}, 2));
  EXPECT_EQ(message, "role row has no heads to share; only keys has");
  EXPECT_TRUE(make(graph::RoleKind::Keys, {}, 2));
  EXPECT_TRUE(make(graph::RoleKind::Fused, {3, 5}, 1));
  EXPECT_EQ(message, "");
}

} // namespace

TEST_F(PatternTest, GlobsMatchNames) {
  EXPECT_EQ(apply(""), "-- -- -- - ");
  EXPECT_EQ(apply(R"(shard "layers.*" as <[{}, {"tp"}]>)"), "-tp -tp -tp - ");
  EXPECT_EQ(apply(R"(shard "layers.*.attn.w{q,v}" as <[{"tp"}, {}]>)"), "tp- -- -- - ");
  EXPECT_EQ(apply(R"(shard "layers.?.*" as <[{}, {"tp"}]>)"), "-tp -tp -- - ");
  EXPECT_EQ(apply(R"(shard "layers.[1-9]*" as <[{}, {"tp"}]>)"), "-- -tp -tp - ");
  EXPECT_EQ(apply(R"(shard "norm" as <[{"dp"}]>)"), "-- -- -- dp ");
}

TEST_F(PatternTest, GlobsMatchKeys) {
  EXPECT_EQ(apply(R"(shard "h.*.{q,k}_proj.weight" as <[{}, {"tp"}]>)"), "-tp -tp -- - ");
  EXPECT_EQ(apply(R"(shard "ln_f.weight" as <[{"dp"}]>)"), "-- -- -- dp ");
  // The last match counts, whichever name it is that matches.
  EXPECT_EQ(apply(R"(shard "layers.*" as <[{}, {"tp"}]>
                     shard "h.1.k_proj.weight" as <[{"dp"}, {}]>)"),
            "-tp dp- -tp - ");
}

TEST_F(PatternTest, TheLastMatchCounts) {
  EXPECT_EQ(apply(R"(shard "layers.*" as <[{}, {"tp"}]>
                     shard "*.wk" as <[{"dp"}, {}]>)"),
            "-tp dp- -tp - ");
  EXPECT_THAT(apply(R"(shard "*.wk" as <[{"dp"}, {}]>
                       shard "layers.*" as <[{}, {"tp"}]>)"),
              HasSubstr("pattern \"*.wk\" decides nothing, as later ones match all of its parameters"));
}

TEST_F(PatternTest, RefusedPatternsNameTheNearestValidChoice) {
  EXPECT_THAT(apply(R"(shard "layers.*.attn.wp" as <[{}, {}]>)"),
              HasSubstr("pattern \"layers.*.attn.wp\" matches no parameter; the nearest is 'layers.0.attn.wq'"));
  EXPECT_THAT(apply(R"(shard "norms" as <[{}]>)"), HasSubstr("the nearest is 'norm'"));
  EXPECT_THAT(apply(R"(shard "h.0.p_proj.weight" as <[{}, {}]>)"), HasSubstr("the nearest is 'h.0.q_proj.weight'"));
  EXPECT_THAT(apply(R"(shard "layers.0*" as <[{"dp", "tp"}, {}]>
                       shard "norm" as <[{}, {}]>)"),
              HasSubstr("matches 'norm' with 'tensor<6xf32>', which needs 1 dimensions in its sharding, not 2"));
}
