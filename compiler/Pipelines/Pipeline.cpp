//===- Pipeline.cpp - The steps of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Pipeline.h"
#include "compiler/Codegen/GenerateKernels.h"
#include "compiler/Pipelines/VerifyPhase.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Analysis/Roles.h"
#include "passes/Fusion/Passes.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Import/Passes.h"
#include "passes/Local/Passes.h"
#include "passes/Memory/Passes.h"
#include "passes/Overlap/Passes.h"
#include "passes/Scheduling/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Training/Passes.h"

#include <limits>

using namespace mlir;
using namespace bowline;

static TileLossOptions tileLossOptions(const PipelineOptions &options) {
  TileLossOptions tileLoss;
  tileLoss.tileBytes = options.target->loss_tile_bytes;
  if (options.hasSmallSizes)
    tileLoss.tileBytes = 64, tileLoss.minPositions = 1;
  return tileLoss;
}

static AlignProductsOptions alignProductsOptions(const PipelineOptions &options) {
  const targets::ProductAlignment &wanted = *options.target->product_alignment;
  AlignProductsOptions align{wanted.row_bytes, wanted.multiple, wanted.min_size};
  if (options.hasSmallSizes)
    align.minSize = 2;
  return align;
}

static SplitColumnReductionsOptions splitColumnReductionsOptions(const PipelineOptions &options) {
  SplitColumnReductionsOptions split;
  split.maxBlocks = options.target->column_sum_blocks;
  if (options.hasSmallSizes)
    split.maxBlocks = 2, split.minRows = 1;
  return split;
}

static PackWeightsOptions packWeightsOptions(const PipelineOptions &options) {
  PackWeightsOptions pack;
  if (options.hasSmallSizes)
    pack.minSaving = pack.minPersistentSaving = std::numeric_limits<double>::lowest();
  return pack;
}

static AllocateMemoryOptions allocateMemoryOptions(const PipelineOptions &options) {
  PackWeightsOptions pack = packWeightsOptions(options);
  return {options.memoryLimit, pack.minSaving, pack.minPersistentSaving, options.links};
}

std::vector<Step> bowline::pipelineSteps(const PipelineOptions &options) {
  std::vector<Step> steps;
  bool areNested = false;
  auto step = [&](StringRef name, Phase phase, StringRef reason, bool optional,
                  std::function<std::unique_ptr<Pass>()> create) {
    steps.push_back({name, phase, reason, optional, std::move(create), areNested});
  };

  step("insert-entries", Phase::Graph, "a function without an entry cannot be run", false,
       [] { return createInsertEntries(); });
  step("canonicalize-graph", Phase::Graph, "later passes match canonical forms", true,
       [] { return createCanonicalizerPass(); });
  step("cse-graph", Phase::Graph, "one read of each parameter, one table of angles for all layers", true,
       [] { return createCSEPass(); });

  if (options.dtype != "f32")
    step("lower-precision", Phase::Train, "before differentiation, which then gives gradients in the same precision",
         false, [=] { return createLowerPrecision(LowerPrecisionOptions{options.training, options.dtype}); });

  if (options.training) {
    step("assign-stages", Phase::Train, "before differentiation, which then divides the backward pass too", false,
         [] { return createAssignStages(); });
    step("differentiate", Phase::Train, "the backward pass, built from each operation's own derivative", false,
         [] { return createDifferentiate(); });
    step("insert-optimizer", Phase::Train, "the update, which runs once per step", false,
         [=] { return createInsertOptimizer(options.optimizer); });
    step("insert-init", Phase::Train, "after the optimizer, whose states start somewhere too", false,
         [=] { return createInsertInit(InsertInitOptions{options.seed}); });
    step("canonicalize-train", Phase::Train, "derivatives leave transposes and unused products behind", true,
         [] { return createCanonicalizerPass(); });
    step("cse-train", Phase::Train, "forward and backward compute some values twice", true,
         [] { return createCSEPass(); });
    step("keep-accumulators", Phase::Train, "after canonicalisation, which leaves one cast per gradient", true,
         [] { return createKeepAccumulators(); });
    step("combine-stages", Phase::Train, "scalars that stages share are named while tensors are whole", false,
         [] { return createLabelStages(); });
  } else {
    step("insert-init", Phase::Train, "persistent tensors that are no weights need an initial value", false,
         [=] { return createInsertInit(InsertInitOptions{options.seed, /*weights=*/false}); });
  }

  step("apply-strategy", Phase::Shard,
       "after differentiation: gradients and states are sharded as their parameters are", false,
       [] { return createApplyStrategy(); });
  step("pad-for-divisibility", Phase::Shard, "later steps make equal shards", false,
       [] { return createPadForDivisibility(); });
  step("propagate-shardings", Phase::Shard, "every value gets a sharding, and the moves between them a place", false,
       [] { return createPropagateShardings(); });

  step("global-to-local", Phase::Local, "later steps see the program of one rank", false,
       [] { return createGlobalToLocal(); });
  step("apply-zero", Phase::Local, "gradients and states are whole until the program is that of one rank", false,
       [] { return createApplyZero(); });
  step("split-stages", Phase::Local,
       "after ZeRO, which divides the messages of mirrors; later steps run once per stage's rank", false,
       [] { return createSplitStages(); });
  step("nest-program", Phase::Local, "a program without stages is one role, as each of a pipeline's ranks is", false,
       [] { return createNestProgram(); });
  areNested = true;
  if (options.training)
    step("share-collectives", Phase::Local, "as soon as a rank's timeline is there: later steps are for each function",
         false, [] { return createShareCollectives(); });
  step("chunk-collectives", Phase::Local,
       "before lowering, which puts other operations between products and collectives", true,
       [=] { return createChunkCollectives(ChunkCollectivesOptions{options.links}); });
  step("lower-collectives", Phase::Local, "a communicator moves contiguous memory", false,
       [] { return createLowerCollectives(); });
  step("canonicalize-local", Phase::Local, "local forms leave constants, and the other steps reshapes behind", true,
       [] { return createCanonicalizerPass(); });
  step("cse-local", Phase::Local, "each rank's places, and the rows of its shards, are computed once", true,
       [] { return createCSEPass(); });
  step("coalesce-collectives", Phase::Local, "every collective costs its latency, however little it moves", true,
       [] { return createCoalesceCollectives(); });

  step("measure-traffic", Phase::Fuse, "before anything is fused: reports compare the plan with it", false,
       [] { return createMeasureTraffic(); });
  step("tile-loss", Phase::Fuse, "the largest tensor of a language model shrinks before anything is built on it", true,
       [=] { return createTileLoss(tileLossOptions(options)); });
  if (options.target->product_alignment)
    step("align-products", Phase::Fuse, "before groups are made, which its zeros and slices become part of", true,
         [=] { return createAlignProducts(alignProductsOptions(options)); });
  step("repeat-activations", Phase::Fuse, "nothing may merge equal operations after it", true,
       [] { return createRepeatActivations(); });
  if (!options.target->library_epilogues.empty())
    step("library-sums", Phase::Fuse, "before sums join groups, of which the rest may be an epilogue then", true,
         [] { return createLibrarySums(); });
  step("split-column-reductions", Phase::Fuse, "so that sums over rows join the groups of their operands", true,
       [=] { return createSplitColumnReductions(splitColumnReductionsOptions(options)); });
  step("group-fusions", Phase::Fuse, "groups become generated code; merged groups save memory traffic", false,
       [=] { return createGroupFusions(GroupFusionsOptions{!options.disabledSteps.contains("merge-fusions")}); });
  step("merge-fusions", Phase::Fuse, "switches merging in group-fusions", true, nullptr);
  if (options.target->has_epilogues)
    step("fuse-epilogues", Phase::Fuse, "groups that work on the result of a contraction alone become part of it", true,
         [] { return createFuseEpilogues(); });
  if (!options.target->library_epilogues.empty())
    step("library-epilogues", Phase::Fuse, "groups that a library computes with a product become part of it", true,
         [] { return createLibraryEpilogues(); });
  if (options.training) {
    step("early-writes", Phase::Fuse, "gradients are added up when they are there, not all at the end", true,
         [] { return createEarlyWrites(); });
    step("recompute", Phase::Fuse, "after all merging: clones run the kernels of the originals, and stay apart", false,
         [=] { return createRecompute(RecomputeOptions{options.memoryTarget}); });
  }
  if (options.target->leaves_rows_out)
    step("limit-rows", Phase::Fuse, "when groups are final: work on rows that nobody reads goes", true,
         [] { return createLimitRows(); });
  step("select-kernels", Phase::Fuse, "every group and every contraction becomes a call of a kernel", false,
       [=] { return createSelectKernels(SelectKernelsOptions{options.threads, options.splitsF32}); });

  step("schedule-commands", Phase::Schedule, "values become buffers, functions programs", false,
       [] { return createScheduleCommands(); });

  step("generate-kernels", Phase::Codegen, "before memory: the code decides which results may be computed in place",
       false, [=] { return createGenerateKernelsPass(backendOf(*options.target), options.codegen); });
  if (options.mapsWeights)
    step("map-weights", Phase::Hoist, "before anything makes copies of weights", false,
         [] { return createMapWeights(); });
  step("donate-buffers", Phase::Hoist, "after in-place pairs are known: copies that nobody needs go", true,
       [] { return createDonateBuffers(); });
  step("allocate-memory", Phase::Hoist, "before the passes that spend memory to save time", true,
       [=] { return createAllocateMemory(allocateMemoryOptions(options)); });
  step("hoist-into-prepare", Phase::Hoist, "after everything that adds or removes commands of a call", true,
       [] { return createHoistIntoPrepare(); });
  step("hoist-invariants", Phase::Hoist, "after everything that adds or removes commands of a microbatch", true,
       [] { return createHoistInvariants(); });
  if (options.target->packing)
    step("pack-weights", Phase::Hoist, "after weights in bf16 are computed once", true,
         [=] { return createPackWeights(packWeightsOptions(options)); });
  step("overlap-commands", Phase::Overlap, "when commands are final, and before memory, which depends on their order",
       true, [=] {
         OverlapCommandsOptions overlap;
         overlap.memoryLimit = options.memoryLimit;
         overlap.links = options.links;
         return createOverlapCommands(overlap);
       });
  step("insert-events", Phase::Overlap, "streams know nothing of each other; lifetimes end where events say so", false,
       [] { return createInsertEvents(); });
  step("elide-events", Phase::Overlap, "after all waits that are needed are there: most follow from the others", true,
       [] { return createElideEvents(); });
  step("state-alignments", Phase::Memory, "when kernels are final, and before buffers get their places", false,
       [] { return createStateAlignments(); });
  step("pack-arena", Phase::Memory, "last, when the set of buffers is final", false, [] { return createPackArena(); });
  return steps;
}

/// Whether a phase runs when compilation continues after `from` and stops after `to`.
static bool runs(Phase phase, Phase from, Phase to) {
  bool isInput = phase == Phase::Input && from == Phase::Input;
  return isInput || (phase > from && phase <= to);
}

std::vector<Step> bowline::stepsToRun(const PipelineOptions &options, Phase from, Phase to) {
  std::vector<Step> steps = pipelineSteps(options);
  llvm::erase_if(steps, [&](const Step &step) {
    return !step.create || !runs(step.phase, from, to) ||
           (step.optional && options.disabledSteps.contains(step.name.str()));
  });
  return steps;
}

void bowline::addStep(OpPassManager &manager, const Step &step) {
  (step.isOnRoles ? manager.nest<ModuleOp>() : manager).addPass(step.create());
}

/// Prints the program that a pass ran on. Large constants are left out: readers of programs read no tables.
static void printAfterPasses(PassManager &manager, bool onlyChanges) {
  constexpr int64_t kMostElements = 64;
  auto never = [](Pass *, Operation *) { return false; };
  auto always = [](Pass *, Operation *) { return true; };
  manager.enableIRPrinting(never, always, /*printModuleScope=*/false, onlyChanges, /*printAfterOnlyOnFailure=*/false,
                           llvm::errs(), OpPrintingFlags().elideLargeElementsAttrs(kMostElements));
}

LogicalResult bowline::runPhases(ModuleOp module, const PipelineOptions &options, Phase from, Phase to) {
  if (from >= Phase::Local && failed(verifyRoles(module)))
    return failure();
  std::vector<Step> steps = stepsToRun(options, from, to);
  PassManager manager(module.getContext());
  if (options.timing)
    manager.enableTiming();
  if (options.irPrinting != IrPrinting::None)
    printAfterPasses(manager, /*onlyChanges=*/options.irPrinting == IrPrinting::AfterChange);
  for (const PhaseInfo &info : allPhases()) {
    if (options.placement && info.phase == Phase::Shard && runs(info.phase, from, to))
      manager.addPass(makeRecordWhole(options.placement));
    if (!runs(info.phase, from, to))
      continue;
    for (const Step &step : steps) {
      if (step.phase != info.phase)
        continue;
      addStep(manager, step);
      if (options.placement && step.name == "apply-strategy")
        manager.addPass(makeRecordWhole(options.placement));
      // Collectives still name the dimensions of tensors.
      if (options.placement && step.name == "nest-program")
        manager.addPass(makeVerifyPlacement(options.placement));
    }
    manager.addPass(createVerifyPhasePass(info.phase));
  }
  return manager.run(module);
}
