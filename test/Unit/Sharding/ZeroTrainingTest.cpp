//===- ZeroTrainingTest.cpp - Divided states train as states that every rank has whole
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A training step of a small model, sharded, divided by ZeRO, with its collectives coalesced, on all ranks of a mesh by
// the reference interpreter, beside the same step on one rank. Everything is f64, so that only the order of additions
// differs. Sizes are chosen so that few divide.
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "frontends/hf/Import.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Local/Passes.h"
#include "passes/Local/Zero/Volumes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Strategy/Strategy.h"
#include "passes/Strategy/StrategyFlags.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Interp/OpHarness.h"
#include "test/Unit/Sharding/RanksBesideOne.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"

#include <set>

using namespace mlir;
using namespace bowline;
using bowline::test::distance;
using dist::DistDialect;
using graph::HostTensor;

namespace {

struct Case {
  const char *name, *model = "", *mesh = "";
  int64_t level = 0, microbatches = 1;
  bool sequenceParallel = false;
  double clipNorm = 0.5;
  const char *optimizer = "adamw";
  int64_t bucketBytes = 1000;
  const char *zeroAxis = "";
  const char *cutVocabulary = ""; // the axis of the embedding's rows and the head's classes
  bool bf16 = false;              // computes in it; the interpreter rounds nothing
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

constexpr int64_t kSeq = 6, kSteps = 3;

/// A prime, unless it is to be cut.
int64_t vocabularyOf(const Case &c) { return *c.cutVocabulary ? 24 : 19; }

class ZeroTraining : public testing::TestWithParam<Case> {
protected:
  ZeroTraining() {
    DialectRegistry registry;
    registry.insert<graph::GraphDialect, dist::DistDialect, stage::StageDialect>();
    graph::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The training program of one rank for `sequences` per microbatch; or divided into stages, with its strategy.
  OwningOpRef<ModuleOp> build(const Case &c, int64_t sequences, bool staged = false) {
    hf::ModelConfig config = hf::test::configOf(c.model);
    config.hidden = 22, config.heads = 4, config.kvHeads = StringRef(c.model).starts_with("llama") ? 2 : 4,
    config.headDim = 6;
    config.intermediate = 14, config.vocabulary = vocabularyOf(c);
    if (StringRef(c.model).starts_with("gpt2"))
      config.hidden = 24;
    hf::ImportOptions options;
    options.batch = sequences;
    options.seq = kSeq;
    absl::StatusOr<OwningOpRef<ModuleOp>> module = hf::importModel(context, config, options);
    EXPECT_TRUE(module.ok()) << module.status();
    InsertOptimizerOptions optimizer;
    optimizer.kind = c.optimizer;
    optimizer.weightDecay = 0.1;
    optimizer.clipNorm = c.clipNorm;
    optimizer.lr = 1e-2;
    EXPECT_TRUE(succeeded(addStrategyFlags(**module, {.microbatches = c.microbatches})));
    if (staged)
      EXPECT_TRUE(succeeded(addStrategyFlags(**module, flagsOf(c))));
    PassManager passes(&context);
    if (staged) {
      passes.addPass(createAssignStages());
    }
    if (c.bf16)
      passes.addPass(createLowerPrecision(LowerPrecisionOptions{/*keepMaster=*/true}));
    passes.addPass(createDifferentiate());
    passes.addPass(createInsertOptimizer(optimizer));
    passes.addPass(createInsertInit(InsertInitOptions{7}));
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    EXPECT_TRUE(succeeded(passes.run(**module)));
    return std::move(*module);
  }

  void shard(const Case &c, ModuleOp module) {
    ASSERT_TRUE(succeeded(addStrategyFlags(module, flagsOf(c))));
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    PassManager strategy(&context);
    strategy.addPass(createApplyStrategy());
    ASSERT_TRUE(succeeded(strategy.run(module)));
    SmallVector<SmallVector<StringAttr>> rows = {{StringAttr::get(&context, c.cutVocabulary)}, {}};
    for (auto param : module.getOps<graph::ParamOp>())
      if (*c.cutVocabulary && llvm::is_contained({"embed", "head"}, param.getName()))
        param->setAttr(DistDialect::kShardingAttr, dist::ShardingAttr::get(&context, rows));
    PassManager passes(&context);
    passes.addPass(createPadForDivisibility());
    passes.addPass(createPropagateShardings());
    passes.addPass(createGlobalToLocal());
    passes.addPass(createApplyZero());
    passes.addPass(createLowerCollectives());
    passes.addPass(createCoalesceCollectives());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    ASSERT_TRUE(succeeded(passes.run(module)));
  }

  static StrategyFlags flagsOf(const Case &c) {
    StrategyFlags flags;
    flags.mesh = c.mesh;
    flags.sequenceParallel = c.sequenceParallel;
    flags.zero = c.level;
    if (c.level > 0)
      flags.zeroAxis = c.zeroAxis;
    flags.bucketBytes = c.bucketBytes;
    return flags;
  }

  Strategy strategyOf(const Case &c) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    EXPECT_TRUE(succeeded(addStrategyFlags(*module, flagsOf(c))));
    return *Strategy::fromOp(dist::StrategyOp::of(*module));
  }

  bool isStaged(const Case &c) {
    Strategy strategy = strategyOf(c);
    return strategy.getSize(strategy.stageAxis) > 1;
  }

  /// Among which the batch is divided: one sequence for each.
  int64_t batchRanks(const Case &c) {
    Strategy strategy = strategyOf(c);
    int64_t ranks = 1;
    for (const std::string &axis : strategy.batchAxes)
      ranks *= strategy.getSize(axis);
    return ranks;
  }

  HostTensor tokens(const Case &c, int64_t microbatches, bool labels) {
    return test::randomTokens(random, microbatches, batchRanks(c), kSeq, vocabularyOf(c), labels);
  }

  /// Trains and evaluates on one rank and on all, and compares results, variables, and each rank's part of
  /// them.
  void expectEqualsOneRank(const Case &c);

  MLIRContext context;
  std::mt19937 random{3};
};

/// The place of a rank along an axis.
int64_t placeAlong(dist::MeshOp mesh, int64_t rank, StringRef name) {
  int64_t place = 0, stride = 1;
  for (size_t i = mesh.getAxisSizes().size(); i-- > 0;) {
    if (cast<StringAttr>(mesh.getAxisNames()[i]).getValue() == name)
      place = rank / stride % mesh.getAxisSizes()[i];
    stride *= mesh.getAxisSizes()[i];
  }
  return place;
}

/// The values of a variable that a rank must have, from the definition: the rank's block of the whole, in dimensions
/// that are cut, with zeros behind its end; of a flat variable, the rank's run of that block.
std::vector<double> expectedLocal(Operation *variable, HostTensor whole, int64_t rank) {
  dist::MeshOp mesh = dist::MeshOp::of(variable);
  auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
  if (!sharding)
    return whole.data; // a mesh of one rank
  if (auto view = variable->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kViewAttr))
    whole.shape = view.asArrayRef().vec();
  std::vector<int64_t> first, count;
  for (auto [size, dim] : llvm::zip_equal(whole.shape, sharding.getDims())) {
    int64_t place = 0;
    for (StringAttr axis : dim.getAxes())
      place = place * mesh.getSize(axis) + placeAlong(mesh, rank, axis);
    int64_t ranks = mesh.getSize(dim.getAxes());
    count.push_back((size + ranks - 1) / ranks);
    first.push_back(place * count.back());
  }
  std::vector<double> piece;
  std::vector<int64_t> strides = whole.strides();
  graph::forEachIndex(count, [&](const std::vector<int64_t> &index) {
    int64_t at = 0;
    bool inside = true;
    for (size_t i = 0; i < index.size(); ++i) {
      at += (first[i] + index[i]) * strides[i];
      inside &= first[i] + index[i] < whole.shape[i];
    }
    piece.push_back(inside ? whole.data[at] : 0.0);
  });
  auto axes = variable->getAttrOfType<ArrayAttr>(DistDialect::kFlatAxesAttr);
  if (!axes)
    return piece;
  auto axis = cast<StringAttr>(axes[0]);
  size_t parts = mesh.getSize(axis), part = (piece.size() + parts - 1) / parts;
  piece.resize(part * parts, 0.0);
  auto begin = piece.begin() + static_cast<int64_t>(part) * placeAlong(mesh, rank, axis);
  return {begin, begin + static_cast<int64_t>(part)};
}

bool isDivided(Operation *variable) { return variable->hasAttr(DistDialect::kFlatAxesAttr); }

} // namespace

void ZeroTraining::expectEqualsOneRank(const Case &c) {
  OwningOpRef<ModuleOp> whole = build(c, batchRanks(c));
  OwningOpRef<ModuleOp> local = isStaged(c) ? build(c, batchRanks(c), /*staged=*/true) : whole->clone();
  ASSERT_NO_FATAL_FAILURE(shard(c, *local));
  bool transfers = false;
  local->walk([&](stage::TransferOp) { transfers = true; });
  EXPECT_EQ(transfers, isStaged(c));

  test::RanksBesideOne ranks(*whole, *local);
  auto checkVariables = [&](double bound) {
    dist::MeshOp mesh = dist::MeshOp::of(*local);
    for (auto variable : local->getOps<graph::Variable>()) {
      if (!variable.isPersistent())
        continue;
      StringRef name = variable.getVariableName();
      bool isMirror = variable.has(StateFlags::Mirror);
      const HostTensor &expected = *ranks.one.getVariable(isMirror ? variable.getOwnerAttr().getValue() : name);
      FailureOr<HostTensor> joined = ranks.many.getVariable(name);
      ASSERT_TRUE(succeeded(joined)) << name.str();
      ASSERT_EQ(joined->shape, expected.shape) << name.str();
      EXPECT_LE(distance(expected, *joined), bound) << name.str();
      double scale = 1e-30;
      for (double value : expected.data)
        scale = std::max(scale, std::abs(value));
      for (int64_t rank = 0; rank < mesh.getRankCount(); ++rank)
        EXPECT_THAT(ranks.many.getLocal(rank, name)->data,
                    testing::Pointwise(testing::DoubleNear(bound * scale), expectedLocal(variable, expected, rank)))
            << name.str() << " on rank " << rank;
    }
  };
  checkVariables(0); // the same random numbers
  for (int64_t step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    ranks.expectSameResults("train_step", {tokens(c, c.microbatches, false), tokens(c, c.microbatches, true)}, 1e-11);
  }
  checkVariables(1e-9);
  ranks.expectSameResults("loss", {tokens(c, 1, false), tokens(c, 1, true)}, 1e-11);
}

TEST_P(ZeroTraining, EqualsOneRank) { expectEqualsOneRank(GetParam()); }

namespace {
class RandomZeroTraining : public ZeroTraining {};
} // namespace

TEST_P(RandomZeroTraining, EqualsOneRank) {
  test::Random random;
  SCOPED_TRACE(random.trace());
  auto pick = [&](std::vector<const char *> choices) {
    return choices[random.integer(0, static_cast<int64_t>(choices.size()) - 1)];
  };
  for (int i = 0; i < 8; ++i) {
    std::vector<std::string> axes = {"dp=" + std::to_string(random.integer(1, 3)),
                                     "fsdp=" + std::to_string(random.integer(1, 3)),
                                     "tp=" + std::to_string(random.integer(1, 2))};
    std::string mesh;
    for (int64_t axis : random.permutation(3))
      mesh += (mesh.empty() ? "" : ",") + axes[axis];
    Case c{"random", pick({"llama-tiny", "llama-tied", "qwen2-tiny", "gpt2-tiny"}), mesh.c_str(), random.integer(1, 3)};
    c.microbatches = random.integer(1, 3);
    c.sequenceParallel = random.flip();
    c.clipNorm = random.flip() ? 0.5 : 0.0;
    c.optimizer = pick({"adamw", "sgd"});
    c.bucketBytes = random.pick({0, 300, 5000, 1 << 20});
    c.zeroAxis = pick({"", "dp"});
    c.cutVocabulary = pick({"", "", "tp"});
    c.bf16 = random.flip();
    SCOPED_TRACE(
        llvm::formatv(
            "{0} {1} level {2} {3}, {4} microbatches, sequence {5}, clip {6}, {7}, buckets {8}, {9}, bf16 {10}",
            c.model, mesh, c.level, c.zeroAxis, c.microbatches, c.sequenceParallel, c.clipNorm, c.optimizer,
            c.bucketBytes, c.cutVocabulary, c.bf16)
            .str());
    expectEqualsOneRank(c);
    if (testing::Test::HasFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Any, RandomZeroTraining, testing::Values(Case{"strategies"}),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(ZeroTraining, DividesWhatItsLevelSays) {
  const Case &c = GetParam();
  Strategy strategy = strategyOf(c);
  OwningOpRef<ModuleOp> module = build(c, batchRanks(c), isStaged(c));
  ASSERT_NO_FATAL_FAILURE(shard(c, *module));
  // Parameters that are only rounded elsewhere are whole as rounded copies.
  std::set<StringRef> copies;
  for (auto param : module->getOps<graph::ParamOp>())
    if (param.isMirror() && (*param.getMirrorOf() + ".bf16").str() == param.getName())
      copies.insert(*param.getMirrorOf());
  EXPECT_EQ(copies.empty(), !c.bf16 || c.level >= 3);
  EXPECT_FALSE(copies.contains("layers.0.attn_norm"));
  EXPECT_EQ(copies.contains("layers.0.attn.wo"), c.bf16 && c.level < 3);
  auto check = [&](Operation *variable, RankedTensorType type, bool divided) {
    // Once more along the same axis is not possible.
    StringRef name = SymbolTable::getSymbolName(variable).getValue();
    if (strategy.zeroAxis == c.cutVocabulary && (name.starts_with("embed") || name.starts_with("head")))
      divided = false;
    ASSERT_EQ(isDivided(variable), divided) << name.str();
    if (!divided)
      return;
    int64_t elements = 1, parts = strategy.getSize(strategy.zeroAxis);
    for (int64_t size : variable->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kFlatShapeAttr).asArrayRef())
      elements *= size;
    EXPECT_EQ(type.getShape(), ArrayRef<int64_t>{(elements + parts - 1) / parts});
  };
  for (auto param : module->getOps<graph::ParamOp>())
    check(param, param.getTensorType(), c.level >= 3 || copies.contains(param.getName()));
  for (auto state : module->getOps<graph::StateOp>())
    check(state, state.getTensorType(),
          (state.isPersistent() && state.getOf()) || (c.level >= 2 && state.getName().ends_with(".grad")));
}

namespace {

class ZeroVolumes : public ZeroTraining {};

Case inBf16(Case c) {
  c.bf16 = true;
  return c;
}

/// Bytes that a rank sends in a step, but for scalars.
int64_t sentTensors(ModuleOp module) {
  int64_t bytes = 0;
  auto entry = module.lookupSymbol<graph::EntryOp>("train_step");
  for (auto [name, repeat] : llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
    module.lookupSymbol(name.getAttr())->walk([&, repeat = repeat](Operation *op) {
      if (isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp, dist::BucketOp>(op) &&
          cast<RankedTensorType>(op->getOperand(0).getType()).getRank() > 0)
        bytes += repeat * Volumes::sentBy(op);
    });
  return bytes;
}

} // namespace

// 2 P, 2 P and 3 P of the paper's table, with the (n-1)/n that it leaves out; and sends of microbatches. In bf16
// parameters that are only rounded are gathered in half the bytes, and kept as such and in a shard of f32.
TEST_P(ZeroVolumes, KeepsAndSendsWhatThePaperSays) {
  const Case &c = GetParam();
  OwningOpRef<ModuleOp> module = build(c, 2);
  int64_t parameters = 0, gatheredOnce = 0, rounded = 0;
  for (auto param : module->getOps<graph::ParamOp>()) {
    int64_t bytes = 4 * param.getTensorType().getNumElements();
    ASSERT_EQ(bytes % 8, 0);
    parameters += bytes;
    // The backward pass needs no embedding, and the head while it is still there.
    if (llvm::is_contained({"embed", "head"}, param.getName()))
      gatheredOnce += bytes;
    // The embedding's rows are looked up in f32, norms are f32.
    if (c.bf16 && param.getName() != "embed" && param.getTensorType().getRank() > 1)
      rounded += bytes;
  }
  ASSERT_NO_FATAL_FAILURE(shard(c, *module));
  int64_t kept[] = {4 * parameters, parameters * 3, parameters * 5 / 2, parameters * 2}; // rounded / 2 + rounded / 2
  int64_t scalars = 4 + 4 + 4;                                                           // sum of losses, tokens, step
  EXPECT_EQ(Volumes(*module).ofVariables(), kept[c.level] + scalars);
  int64_t m = c.microbatches;
  int64_t sent[] = {2 * parameters, 2 * parameters - rounded / 2, (m + 1) * parameters - rounded / 2,
                    m * (3 * parameters - gatheredOnce)};
  EXPECT_EQ(sentTensors(*module), sent[c.level] / 2);
  // Beside these: loss and tokens, and the norm if it is that of shards; one number each.
  int64_t norm = c.level > 0 ? 4 : 0;
  EXPECT_EQ(Volumes(*module).sentIn(module->lookupSymbol<graph::EntryOp>("train_step")) - sentTensors(*module),
            8 + norm);
}

INSTANTIATE_TEST_SUITE_P(
    Levels, ZeroVolumes,
    testing::Values(Case{"none", "llama-tiny", "dp=2", 0, 1}, Case{"one", "llama-tiny", "dp=2", 1, 1},
                    Case{"two", "llama-tiny", "dp=2", 2, 1}, Case{"three", "llama-tiny", "dp=2", 3, 1},
                    Case{"none_microbatches", "llama-tiny", "dp=2", 0, 3},
                    Case{"one_microbatches", "llama-tiny", "dp=2", 1, 3},
                    Case{"two_microbatches", "llama-tiny", "dp=2", 2, 3},
                    Case{"three_microbatches", "llama-tiny", "dp=2", 3, 3},
                    inBf16({"none_bf16", "llama-tiny", "dp=2", 0, 1}), inBf16({"one_bf16", "llama-tiny", "dp=2", 1, 1}),
                    inBf16({"two_bf16", "llama-tiny", "dp=2", 2, 3})),
    [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Strategies, ZeroTraining,
    testing::Values(
        Case{"llama_1_dp2", "llama-tiny", "dp=2", 1}, Case{"llama_2_dp2", "llama-tiny", "dp=2", 2},
        Case{"llama_3_dp2", "llama-tiny", "dp=2", 3}, Case{"llama_1_dp3_m2", "llama-tiny", "dp=3", 1, 2},
        Case{"llama_2_dp3_m2", "llama-tiny", "dp=3", 2, 2}, Case{"llama_3_dp3_m2", "llama-tiny", "dp=3", 3, 2},
        Case{"llama_1_dp3_tp2", "llama-tiny", "dp=3,tp=2", 1, 2},
        Case{"llama_2_dp3_tp2", "llama-tiny", "dp=3,tp=2", 2, 2},
        Case{"llama_3_dp3_tp2", "llama-tiny", "dp=3,tp=2", 3, 2},
        Case{"llama_1_sequence", "llama-tiny", "dp=3,tp=2", 1, 2, true},
        Case{"llama_2_sequence", "llama-tiny", "tp=2,dp=3", 2, 2, true},
        Case{"llama_3_sequence", "llama-tiny", "dp=3,tp=2", 3, 1, true},
        Case{"llama_1_hybrid", "llama-tiny", "dp=2,fsdp=3", 1, 2},
        Case{"llama_2_hybrid", "llama-tiny", "dp=2,fsdp=3", 2, 2},
        Case{"llama_3_hybrid", "llama-tiny", "fsdp=3,dp=2", 3, 2},
        Case{"llama_3_hybrid_tp2_sequence", "llama-tiny", "dp=2,fsdp=3,tp=2", 3, 2, true},
        Case{"llama_2_outer_axis", "llama-tiny", "dp=3,fsdp=2", 2, 2, false, 0.5, "adamw", 1000, "dp"},
        Case{"llama_1_no_clipping", "llama-tiny", "dp=3", 1, 1, false, 0.0},
        Case{"llama_3_no_clipping", "llama-tiny", "dp=3", 3, 2, false, 0.0},
        Case{"llama_1_sgd", "llama-tiny", "dp=3", 1, 2, false, 0.5, "sgd"},
        Case{"llama_2_sgd", "llama-tiny", "dp=5", 2, 2, false, 0.5, "sgd"},
        Case{"llama_3_sgd", "llama-tiny", "dp=3,tp=2", 3, 1, false, 0.0, "sgd"},
        Case{"llama_1_no_buckets", "llama-tiny", "dp=3", 1, 1, false, 0.5, "adamw", 0},
        Case{"llama_3_large_buckets", "llama-tiny", "dp=3", 3, 2, false, 0.5, "adamw", 1 << 20},
        Case{"tied_1_dp4", "llama-tied", "dp=4", 1}, Case{"tied_2_dp3_tp2", "llama-tied", "dp=3,tp=2", 2, 2},
        Case{"tied_3_dp3_tp2", "llama-tied", "dp=3,tp=2", 3, 2}, Case{"qwen2_1_hybrid", "qwen2-tiny", "dp=2,fsdp=2", 1},
        Case{"qwen2_2_dp3_tp2", "qwen2-tiny", "dp=3,tp=2", 2, 1, true}, Case{"qwen2_3_dp4", "qwen2-tiny", "dp=4", 3, 3},
        Case{"qwen3_3_dp3_tp2", "qwen3-tiny", "dp=3,tp=2", 3, 2}, Case{"mistral_2_dp3", "mistral-tiny", "dp=3", 2, 2},
        Case{"gpt2_1_dp5", "gpt2-tiny", "dp=5", 1, 2}, Case{"gpt2_2_hybrid_tp2", "gpt2-tiny", "dp=2,fsdp=2,tp=2", 2, 2},
        Case{"gpt2_3_dp3_tp2", "gpt2-tiny", "dp=3,tp=2", 3, 2, true},
        Case{"llama_1_vocabulary", "llama-tiny", "dp=3,tp=2", 1, 2, true, 0.5, "adamw", 1000, "", "tp"},
        Case{"llama_2_vocabulary", "llama-tiny", "dp=5,tp=2", 2, 1, false, 0.5, "adamw", 1000, "", "tp"},
        Case{"llama_3_vocabulary", "llama-tiny", "dp=2,fsdp=3,tp=2", 3, 2, false, 0.5, "adamw", 1000, "", "tp"},
        // A transfer between stages takes shards; the tied embedding has a mirror in the last stage.
        Case{"llama_1_stages", "llama-tiny", "pp=2,dp=3", 1, 2}, Case{"tied_1_stages", "llama-tied", "pp=2,dp=3", 1, 2},
        Case{"tied_2_stages", "llama-tied", "pp=2,dp=2,tp=2", 2, 2, true},
        Case{"tied_3_stages", "llama-tied", "dp=3,pp=2", 3, 2},
        Case{"gpt2_3_stages_hybrid", "gpt2-tiny", "pp=2,dp=2,fsdp=3", 3, 1},
        // The axis of ZeRO cuts two parameters already; the others are divided.
        Case{"llama_1_vocabulary_over_dp", "llama-tiny", "dp=3", 1, 2, false, 0.5, "adamw", 1000, "", "dp"},
        Case{"llama_2_vocabulary_over_dp", "llama-tiny", "dp=3,tp=2", 2, 2, false, 0.5, "adamw", 1000, "", "dp"},
        Case{"tied_3_vocabulary_over_dp", "llama-tied", "dp=3", 3, 2, false, 0.5, "adamw", 1000, "", "dp"},
        Case{"llama_3_vocabulary_over_copies", "llama-tiny", "dp=2,fsdp=3", 3, 2, false, 0.5, "adamw", 1000, "", "dp"},
        // Rounded copies; the tied embedding has none, but its mirror in another stage is one.
        inBf16({"llama_1_bf16", "llama-tiny", "dp=3", 1, 2}), inBf16({"llama_2_bf16", "llama-tiny", "dp=3,tp=2", 2, 2}),
        inBf16({"llama_3_bf16", "llama-tiny", "dp=3", 3, 2}),
        inBf16({"llama_1_sgd_bf16", "llama-tiny", "dp=3", 1, 2, false, 0.0, "sgd"}),
        inBf16({"qwen2_2_hybrid_bf16", "qwen2-tiny", "dp=2,fsdp=2,tp=2", 2, 2, true}),
        inBf16({"gpt2_1_bf16", "gpt2-tiny", "dp=5", 1, 2}), inBf16({"tied_1_bf16", "llama-tied", "dp=4", 1}),
        inBf16({"llama_1_vocabulary_over_dp_bf16", "llama-tiny", "dp=3", 1, 2, false, 0.5, "adamw", 1000, "", "dp"}),
        inBf16({"tied_1_stages_bf16", "llama-tied", "pp=2,dp=3", 1, 2}),
        inBf16({"tied_2_stages_bf16", "llama-tied", "pp=2,dp=2,tp=2", 2, 2, true}),
        inBf16({"gpt2_1_stages_bf16", "gpt2-tiny", "pp=2,dp=2,fsdp=3", 1, 1})),
    [](const auto &info) { return std::string(info.param.name); });
