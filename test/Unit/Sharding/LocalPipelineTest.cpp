//===- LocalPipelineTest.cpp - All phases up to kernels on programs of several ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Models go through the pipeline as a user's do. Right before kernels are selected, where fusions still have their
// operations, all ranks are run by the reference interpreter and compared with the whole program on one rank. The
// interpreter computes in f64, so that only the order of additions differs.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/GenerateKernels.h"
#include "compiler/Pipelines/Pipeline.h"
#include "compiler/Pipelines/VerifyPhase.h"
#include "compiler/Support/Registration.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fusion/Passes.h"
#include "passes/Strategy/StrategyFlags.h"
#include "test/Unit/Sharding/RanksBesideOne.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

struct Case {
  const char *name, *model, *mesh;
  bool sequenceParallel = false;
  int64_t microbatches = 1;
  const char *recompute = "none";
  int64_t keyHeads = 4;
  int64_t zero = 0;
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

constexpr int64_t kBatch = 4, kSeq = 8, kSteps = 2;

class LocalPipeline : public testing::TestWithParam<Case> {
protected:
  LocalPipeline() : context(registry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  int64_t batch() const { return kBatch / GetParam().microbatches; }
  /// A prime, and columns of the feed-forward part that 4 does not divide.
  ModelSizes sizes() const { return {.vocabulary = 23, .intermediate = 22, .keyHeads = GetParam().keyHeads}; }

  OwningOpRef<ModuleOp> build(bool whole) {
    const Case &c = GetParam();
    OwningOpRef<ModuleOp> module = smallModel(context, c.model, sizes(), batch(), kSeq);
    StrategyFlags flags;
    flags.microbatches = c.microbatches;
    flags.recompute = c.recompute;
    if (!whole) {
      flags.mesh = c.mesh;
      flags.sequenceParallel = c.sequenceParallel;
      flags.zero = c.zero;
    }
    EXPECT_TRUE(module && succeeded(addStrategyFlags(*module, flags)));
    return module;
  }

  PipelineOptions options() const {
    PipelineOptions options;
    options.optimizer.weightDecay = 0.1;
    options.optimizer.clipNorm = 1.0;
    options.optimizer.lr = 1e-2;
    options.threads = 2;
    return options;
  }

  /// Runs the steps from `first` until before `last`, with the verifiers of the phases that they end.
  LogicalResult runSteps(ModuleOp module, const PipelineOptions &options, StringRef first, StringRef last) {
    PassManager passes(&context);
    std::vector<Step> steps = pipelineSteps(options);
    bool runs = first.empty();
    for (auto [index, step] : llvm::enumerate(steps)) {
      if (step.name == last)
        break;
      runs |= step.name == first;
      if (!runs)
        continue;
      if (step.create)
        addStep(passes, step);
      if (index + 1 < steps.size() && steps[index + 1].phase != step.phase)
        passes.addPass(createVerifyPhasePass(step.phase));
    }
    return passes.run(module);
  }

  /// The program that all ranks run.
  static ModuleOp roleOf(ModuleOp module) { return *module.getOps<ModuleOp>().begin(); }

  /// Collectives by name and function, in the order in which they are issued; without those that recomputation repeats.
  static std::vector<std::string> collectives(ModuleOp module) {
    std::vector<std::string> result;
    auto isRepeated = [](Operation &op) {
      auto number = op.getAttrOfType<IntegerAttr>(dist::DistDialect::kRepetitionAttr);
      return number && number.getInt() < 0;
    };
    module.walk([&](graph::FuncOp function) {
      for (Operation &op : function.getBody().front())
        if (isa<dist::DistDialect>(op.getDialect()) && !isa<dist::CoordinateOp>(op) && !isRepeated(op)) {
          std::string text = function.getName().str();
          llvm::raw_string_ostream(text) << ' ' << op.getName() << ' ' << op.getAttr("axes") << ' '
                                         << op.getResult(0).getType();
          result.push_back(std::move(text));
        }
    });
    return result;
  }

  std::vector<HostTensor> tokensAndLabels(int64_t microbatches) {
    auto draw = [&](bool labels) {
      return randomTokens(random, microbatches, batch(), kSeq, sizes().vocabulary, labels);
    };
    HostTensor tokens = draw(false);
    return {tokens, draw(true)};
  }

  MLIRContext context;
  std::mt19937 random{3};
};

} // namespace

TEST_P(LocalPipeline, EqualsOneRankUpToKernels) {
  OwningOpRef<ModuleOp> whole = build(/*whole=*/true), local = build(/*whole=*/false);
  ASSERT_TRUE(whole && local);
  PipelineOptions options = this->options();
  ASSERT_TRUE(succeeded(runSteps(*whole, options, "", "measure-traffic")));
  ASSERT_TRUE(succeeded(runSteps(*local, options, "", "measure-traffic")));
  std::vector<std::string> issued = collectives(*local);
  EXPECT_FALSE(issued.empty());
  ASSERT_TRUE(succeeded(runSteps(*local, options, "measure-traffic", "select-kernels")));

  // Nothing is left out, and nothing is exchanged twice but for values that are computed again.
  std::vector<std::string> fused = collectives(*local);
  llvm::sort(issued);
  llvm::sort(fused);
  EXPECT_EQ(fused, issued);

  RanksBesideOne ranks(roleOf(*whole), roleOf(*local));
  for (int64_t step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    ranks.expectSameResults("train_step", tokensAndLabels(GetParam().microbatches), 1e-11);
  }
  ranks.expectSameResults("eval_step", tokensAndLabels(/*microbatches=*/1), 1e-11);
  for (auto param : roleOf(*whole).getOps<graph::ParamOp>())
    ranks.expectSameVariable(param.getName(), 1e-9);

  ASSERT_TRUE(succeeded(runSteps(*local, options, "select-kernels", "schedule-commands")));
  std::vector<std::string> selected = collectives(*local);
  llvm::sort(selected);
  EXPECT_EQ(selected, issued);
  // Bodies of kernels are already as they will be after scheduling.
  setPhase(*local, Phase::Schedule);
  PassManager codegen(&context);
  codegen.nest<ModuleOp>().addPass(createGenerateKernelsPass(backendOf(*options.target), options.codegen));
  EXPECT_TRUE(succeeded(codegen.run(*local)));
}

/// Tiles of any size, also where ranks divide the classes and combine the sums of each tile.
TEST_P(LocalPipeline, TilesOfTheLossEqualTheWhole) {
  OwningOpRef<ModuleOp> whole = build(/*whole=*/true), local = build(/*whole=*/false);
  ASSERT_TRUE(whole && local);
  ASSERT_TRUE(succeeded(runSteps(*whole, options(), "", "measure-traffic")));
  ASSERT_TRUE(succeeded(runSteps(*local, options(), "", "measure-traffic")));
  auto gradients = [&] {
    int64_t count = 0;
    local->walk([&](graph::SoftmaxCrossEntropyGradOp) { ++count; });
    return count;
  };
  ASSERT_EQ(gradients(), 1);
  PassManager passes(&context);
  TileLossOptions tiles;
  tiles.tileBytes = 1;
  tiles.minPositions = 3;
  passes.nest<ModuleOp>().addPass(createTileLoss(tiles));
  ASSERT_TRUE(succeeded(passes.run(*local)));
  EXPECT_GT(gradients(), 1);

  RanksBesideOne ranks(roleOf(*whole), roleOf(*local));
  for (int64_t step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    ranks.expectSameResults("train_step", tokensAndLabels(GetParam().microbatches), 1e-11);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, LocalPipeline,
    testing::Values(Case{"llama_dp2", "llama-tiny", "dp=2"}, Case{"llama_tp2", "llama-tiny", "tp=2"},
                    Case{"llama_dp2_tp2", "llama-tiny", "dp=2,tp=2"},
                    Case{"llama_sequence", "llama-tiny", "dp=2,tp=2", true, 2, "none", 2},
                    Case{"llama_selective", "llama-tiny", "dp=2,tp=2", false, 2, "selective", 2},
                    Case{"llama_full", "llama-tiny", "tp=2", false, 1, "full", 2},
                    Case{"llama_sequence_full", "llama-tiny", "tp=2", true, 1, "full", 2},
                    Case{"llama_shared_keys", "llama-tiny", "tp=4", false, 1, "none", 2},
                    Case{"llama_shared_keys_sequence", "llama-tiny", "dp=2,tp=4", true, 2, "full", 2},
                    Case{"tied_full", "llama-tied", "tp=2", false, 1, "full", 2},
                    Case{"qwen2_dp2", "qwen2-tiny", "dp=2", false, 2}, Case{"qwen2_tp4", "qwen2-tiny", "tp=4"},
                    Case{"qwen3_tp2", "qwen3-tiny", "dp=2,tp=2", true, 1, "full", 2},
                    Case{"mistral_tp4", "mistral-tiny", "tp=4", false, 2, "full"},
                    Case{"qwen2_dp2_tp2", "qwen2-tiny", "dp=2,tp=2", true, 1, "full"},
                    Case{"gpt2_dp2", "gpt2-tiny", "dp=2"}, Case{"gpt2_tp4", "gpt2-tiny", "tp=4", false, 2},
                    Case{"gpt2_sequence", "gpt2-tiny", "dp=2,tp=2", true, 2, "selective"},
                    Case{"llama_zero_1", "llama-tiny", "dp=4", false, 1, "none", 4, 1},
                    Case{"llama_zero_2", "llama-tiny", "dp=2,tp=2", true, 2, "none", 2, 2},
                    Case{"llama_zero_3", "llama-tiny", "dp=2,tp=2", false, 2, "none", 2, 3},
                    Case{"llama_zero_3_shared_keys", "llama-tiny", "dp=2,tp=4", true, 1, "none", 2, 3},
                    Case{"tied_zero_3_full", "llama-tied", "dp=4", false, 1, "full", 2, 3},
                    Case{"qwen2_zero_3_hybrid", "qwen2-tiny", "dp=2,fsdp=2", false, 1, "selective", 4, 3},
                    Case{"gpt2_zero_2_full", "gpt2-tiny", "dp=2,fsdp=2", false, 1, "full", 4, 2},
                    Case{"gpt2_zero_3", "gpt2-tiny", "dp=2,tp=2", true, 2, "none", 4, 3}),
    [](const auto &info) { return std::string(info.param.name); });
