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

/// The purpose of a plan.
enum class CompileMode { Train, Generate, Serve };

llvm::ArrayRef<CompileMode> allModes();
/// Returns the value of `--mode`: "train", "generate" or "serve".
llvm::StringRef nameOf(CompileMode mode);
std::optional<CompileMode> modeNamed(llvm::StringRef name);
/// Returns whether plans of this mode run training steps.
bool trains(CompileMode mode);

/// Defaults for serving: the most tokens in a sequence, and the bytes of all caches together.
inline constexpr int64_t kDefaultContext = 8192, kDefaultCacheBytes = int64_t{1} << 30;

/// All options that affect a plan or the output of a compilation. Equal options and inputs give equal plans.
struct CompileOptions {
  std::string model; // a Hugging Face directory or a .mlir file
  CompileMode mode = CompileMode::Train;
  int64_t batch = 0; // sequences per step, over all microbatches; not for .mlir files, which state it
  int64_t seq = 0;   // positions per sequence; not for .mlir files, which state it
  // Sizes of a plan for serving. 0 stands for a default.
  std::vector<int64_t> buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}; // sizes of steps, in tokens
  int64_t maxBatch = 64;                                                  // most sequences in a step
  int64_t maxContext = 0;   // most tokens of a sequence; 0: the model's limit, at most kDefaultContext
  int64_t blockTokens = 16; // tokens per block of the cache
  // Without the block that stays empty. 0: for maxBatch full contexts, within memoryLimit or kDefaultCacheBytes.
  int64_t cacheBlocks = 0;
  uint64_t cacheBytes = 0;       // if cacheBlocks is 0: most bytes of all caches; 0: kDefaultCacheBytes
  std::string cacheType = "f32"; // element type of the cache: from types/computed_types.h, or int8 (types/cache_rows.h)
  bool withLogits = false;       // steps output logits besides the tokens sampled from them
  // Type of weights. "as-stored" keeps quantised matrices of a GGUF file in their blocks; else the computed type.
  std::string weightsType = "as-stored";
  std::string dtype = "f32"; // type of computed values (types/computed_types.h); parameters in training are f32

  std::string optimizer = "adamw"; // or sgd
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1, clipNorm = 1.0, minLr = 0.0;
  std::string lrSchedule = "constant"; // or cosine
  int64_t warmupSteps = 0, decaySteps = 0;
  int64_t seed = 0; // of the imported program; phases after Input keep the program's own

  // Parallelisation: a .mlir file with a dist.strategy, and flags for choices that it leaves open.
  std::string strategyFile;
  StrategyFlags strategy;

  bool codegen = true; // false: generate no machine code; such plans can be checked and simulated, but not run
  std::string target;  // one of targets::AllTargets(); empty: the target in the IR, or else the default one
  std::map<std::string, std::string, std::less<>> levels; // given levels; key: the target's flag (targets::Levels)
  std::string kernelCache;         // folder that caches compiled kernels; empty: none. Does not affect plans
  int64_t threads = 0;             // per rank; 0: as in the IR, or else available processors divided by ranks
  uint64_t memoryLimit = 0;        // bytes of a rank's arena; 0: no limit
  int64_t runsInFlight = 1;        // 1, or 2: runs of TrainStep and EvalStep entries overlap with the host
  std::string f32Products = "f32"; // or "bf16x6": six bf16 products replace one of f32, on CPUs with AMX
  bool mapsWeights = false;        // kernels read weights in place from mapped files
  std::vector<std::string> links;  // for the cost model, which orders commands: "[AXIS:]bandwidth=10GB/s,latency=5us"

  Phase from = Phase::Input; // phase that the IR of a .mlir file has passed already
  Phase to = Phase::Plan;
  std::set<std::string> disabledSteps;
  bool timing = false;
  IrPrinting irPrinting = IrPrinting::None;
  bool verifiesPlacement = false;         // PipelineOptions::placement
  std::optional<std::string> passRemarks; // selects CompileResult::passRemarks (PassRemarks.h); absent: none
  bool listsKernels = false;              // fill CompileResult::kernelListing
};

struct CompileResult {
  /// The IR after phase `to`, with locations if that is the last phase.
  std::string ir;
  /// Null unless `to` is Phase::Plan. WritePlan fills in hashes and versions.
  std::unique_ptr<fbs::PlanT> plan;
  /// How much the strategy recomputes in the backward pass: none, selective, full or auto.
  std::string recompute;
  /// Set when training a model directory: the smallest step that the strategy allows with this sequence length.
  std::optional<StepSizes> leastSizes;
  /// Set when training a model directory: the inputs of the formulas in docs/memory.md, or kUnimplemented with the end
  /// of a sentence that says why they do not apply. Returns kNotFound for other programs.
  absl::StatusOr<MemoryInputs> memoryInputs = absl::NotFoundError("programs in the IR");
  /// For each role, in the plan's order, the most live bytes in its arena at one time: a lower bound for any packing.
  std::vector<uint64_t> liveBytes;
  /// By role and name of an entry: the bytes that its operations would read and write without fusion.
  std::vector<std::map<std::string, double>> unfusedBytes;
  /// Sentences for the user about ignored configuration values and results of steps. Those about probable mistakes
  /// begin with "warning: ".
  std::vector<std::string> remarks;
  /// Selected remarks of passes about their decisions: "PLACE: TEXT [KIND CATEGORY/NAME]". Empty unless requested.
  std::vector<std::string> passRemarks;
  /// Empty unless requested: the IR of each generated kernel after each stage, for GPUs also the PTX of all kernels and
  /// ptxas's report. If the compiler searches for the best recomputation, it lists kernels of every attempt.
  std::string kernelListing;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_COMPILEOPTIONS_H
