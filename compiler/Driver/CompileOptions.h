//===- CompileOptions.h - Options and results of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_COMPILEOPTIONS_H
#define BOWLINE_COMPILER_DRIVER_COMPILEOPTIONS_H

#include "compiler/Driver/MemoryFormula.h"
#include "compiler/Driver/StepSizes.h"
#include "compiler/Pipelines/Pipeline.h"
#include "dialects/Program/Phase.h"
#include "passes/Strategy/StrategyFlags.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"
#include "targets/target.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bowline {

/// The purpose of a plan. Code that differs between modes switches over all of them.
enum class CompileMode { Train, Generate, Serve };

llvm::ArrayRef<CompileMode> allModes();
/// "train", "generate" or "serve", as `--mode` says it.
llvm::StringRef nameOf(CompileMode mode);
std::optional<CompileMode> modeNamed(llvm::StringRef name);
/// Whether the plan computes steps of training.
bool trains(CompileMode mode);

/// Tokens of a sequence that is served, at most, and bytes of all caches, where no flag says it.
inline constexpr int64_t kDefaultContext = 8192, kDefaultCacheBytes = int64_t{1} << 30;

/// Everything that decides the contents of a plan. Equal options and inputs give equal plans.
struct CompileOptions {
  std::string model; // a Hugging Face directory or a .mlir file
  CompileMode mode = CompileMode::Train;
  int64_t batch = 0; // sequences per step over all microbatches; a .mlir file has its own
  int64_t seq = 0;   // positions per sequence; a .mlir file has its own
  // Sizes of plans for serving. 0: as many as fit.
  std::vector<int64_t> buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}; // tokens of the steps
  int64_t maxBatch = 64;                                                  // sequences of a step
  int64_t maxContext = 0;   // tokens of a sequence; 0: the model's, or kDefaultContext if that is less
  int64_t blockTokens = 16; // tokens of a block of the cache
  // Without the block that holds nothing; 0: for maxBatch contexts within memoryLimit, or kDefaultCacheBytes.
  int64_t cacheBlocks = 0;
  uint64_t cacheBytes = 0;       // with cacheBlocks 0: the bytes that caches may take; 0: kDefaultCacheBytes
  std::string cacheType = "f32"; // elements of the cache: those of types/computed_types.h, or int8 (types/cache_rows.h)
  bool withLogits = false;       // steps give logits beside the tokens that are drawn from them
  // The type of weights: as-stored keeps matrices that a GGUF file has in blocks of bits; else the computed type.
  std::string weightsType = "as-stored";
  std::string dtype = "f32"; // type of computed values (types/computed_types.h); trained values are f32

  std::string optimizer = "adamw"; // or sgd
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1, clipNorm = 1.0, minLr = 0.0;
  std::string lrSchedule = "constant"; // or cosine
  int64_t warmupSteps = 0, decaySteps = 0;
  int64_t seed = 0; // of programs from the input; later phases have theirs

  // How a step is computed: a .mlir file with a dist.strategy, and choices that it leaves open.
  std::string strategyFile;
  StrategyFlags strategy;

  bool codegen = true; // false: plans can be checked and simulated, but not run
  std::string target;  // one of targets::AllTargets(); empty: that of the program so far, or else the default one
  std::map<std::string, std::string, std::less<>> levels; // key: flag (targets::Levels) that was given
  std::string kernelCache;         // folder of compiled kernels; empty: none. Plans are the same with and without
  int64_t threads = 0;             // per rank; 0: as the program so far, or the processors of this process, divided
  uint64_t memoryLimit = 0;        // bytes; 0: none
  int64_t runsInFlight = 1;        // or 2: entries of kinds TrainStep and EvalStep overlap with the host
  std::string f32Products = "f32"; // or "bf16x6": by six products of bf16, where the processor has AMX
  bool mapsWeights = false;        // weights are read in place from mapped files
  std::vector<std::string> links;  // links that orders are chosen for: "[AXIS:]bandwidth=10GB/s,latency=5us"

  Phase from = Phase::Input; // a .mlir file continues after this phase
  Phase to = Phase::Plan;
  std::set<std::string> disabledSteps;
  bool timing = false;
  IrPrinting irPrinting = IrPrinting::None;
  bool verifiesPlacement = false;         // PipelineOptions::placement
  std::optional<std::string> passRemarks; // which remarks of passes CompileResult has (PassRemarks.h); none: none
  bool listsKernels = false;              // whether CompileResult::kernelListing is filled
};

struct CompileResult {
  /// The IR after the last phase, with locations if `to` is the last one.
  std::string ir;
  /// Null unless the last phase is Plan. WritePlan fills in hashes and versions.
  std::unique_ptr<fbs::PlanT> plan;
  /// The values that the backward pass computes again by the strategy: none, selective, full or auto.
  std::string recompute;
  /// For a directory that is trained: the smallest step that the strategy allows, with sequences as long.
  std::optional<StepSizes> leastSizes;
  /// For a directory that is trained: the inputs of the formulas of docs/memory.md, or kUnimplemented that says why
  /// there are none for it, as the end of a sentence. kNotFound for other programs.
  absl::StatusOr<MemoryInputs> memoryInputs = absl::NotFoundError("programs in the IR");
  /// For each role, in the plan's order, the most bytes of its arena that are alive at one time: no packing is smaller.
  std::vector<uint64_t> liveBytes;
  /// For each role, and in it for each entry, the bytes that its operations would read and write if none were fused.
  std::vector<std::map<std::string, double>> unfusedBytes;
  /// Sentences for the user: configuration values that do not take effect, steps that report. Sentences on probable
  /// mistakes of the user begin with "warning: ".
  std::vector<std::string> remarks;
  /// The remarks of passes about their decisions: "PLACE: TEXT [KIND CATEGORY/NAME]". Empty unless it was asked for.
  std::vector<std::string> passRemarks;
  /// The IR of each generated kernel after each stage; for GPUs also the PTX of all and ptxas's report on them. Empty
  /// unless it was asked for. Where recomputation is searched for, it has the kernels of every attempt.
  std::string kernelListing;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_COMPILEOPTIONS_H
