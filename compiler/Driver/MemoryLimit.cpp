//===- MemoryLimit.cpp - Compile within a limit of memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryLimit.h"
#include "compiler/Emit/EmitPlan.h"
#include "compiler/Emit/FileAttributes.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace bowline;

namespace {

/// Compiles with the least recomputation whose plan is within the memory limit. Passes estimate memory, but the packed
/// arena decides, so that estimates are tried until one is good. The cheapest attempt within the limit stays, or the
/// smallest one.
class LimitSearch {
public:
  LimitSearch(ModuleOp module, PipelineOptions pipeline, const CompileOptions &options,
              DiagnosticCollector &diagnostics)
      : module(module), pipeline(std::move(pipeline)), options(options), diagnostics(diagnostics),
        limit(this->pipeline.memoryLimit) {}

  LogicalResult run(std::vector<std::string> &remarks) {
    if (options.from < Phase::Local && failed(runPhases(module, pipeline, options.from, Phase::Local)))
      return failure();
    llvm::append_range(remarks, diagnostics.takeRemarks());
    if (failed(search()))
      return failure();
    module.getBodyRegion().takeBody(best->getBodyRegion());
    module->setAttrs(best.get()->getAttrDictionary());
    llvm::append_range(remarks, bestRemarks);
    return success();
  }

private:
  static constexpr int64_t kAnything = 1; // a target that nothing meets: as small as can be
  static constexpr int kAttempts = 6;

  LogicalResult search() {
    if (failed(attempt(0)))
      return failure();
    if (fits(arena)) {
      emitRemark(dist::StrategyOp::of(module).getOnly<dist::RecomputeOp>().getLoc())
          << "recompute auto: nothing runs again, as the plan is within the memory limit without it";
      llvm::append_range(bestRemarks, diagnostics.takeRemarks());
      return success();
    }
    if (failed(attempt(limit)))
      return failure();
    int64_t good = limit, bad = limit + (limit - arena);
    if (!fits(arena)) {
      bad = limit;
      good = kAnything;
      int64_t excess = arena - limit;
      if (failed(attempt(kAnything)))
        return failure();
      if (!fits(arena))
        return success();
      return bisect(good, bad, std::max(limit - excess, kAnything));
    }
    return bisect(good, bad, bad);
  }

  LogicalResult bisect(int64_t good, int64_t bad, int64_t first) {
    int64_t target = first;
    for (int i = 0; i < kAttempts && bad - good > limit / 256; ++i) {
      if (failed(attempt(target)))
        return failure();
      (fits(arena) ? good : bad) = target;
      target = good + (bad - good) / 2;
    }
    return success();
  }

  bool fits(int64_t bytes) const { return bytes <= limit; }

  /// Sets `arena`, and `best` where this attempt is better. Later attempts within the limit recompute less.
  LogicalResult attempt(int64_t target) {
    OwningOpRef<ModuleOp> copy = module.clone();
    pipeline.memoryTarget = target;
    arena = 0;
    if (failed(runPhases(*copy, pipeline, std::max(options.from, Phase::Local), options.to)))
      return failure();
    std::vector<std::string> said = diagnostics.takeRemarks();
    for (auto role : copy->getOps<ModuleOp>())
      arena = std::max(arena, role->getAttrOfType<IntegerAttr>(plan::PlanDialect::kArenaBytesAttr).getInt());
    bool better = fits(arena) ? !fits(bestArena) || target >= bestTarget : arena < bestArena;
    if (!better)
      return success();
    best = std::move(copy);
    bestArena = arena;
    bestTarget = target;
    bestRemarks = std::move(said);
    return success();
  }

  ModuleOp module;
  PipelineOptions pipeline;
  const CompileOptions &options;
  DiagnosticCollector &diagnostics;
  int64_t limit, arena = 0;
  OwningOpRef<ModuleOp> best;
  int64_t bestArena = std::numeric_limits<int64_t>::max(), bestTarget = 0;
  std::vector<std::string> bestRemarks;
};

} // namespace

/// The most bytes that a role has behind the arena that was packed: second buffers of ports, and words for faults.
static int64_t bytesBehind(ModuleOp module, const fbs::PlanT &plan) {
  auto packed = [](ModuleOp role) {
    return role->getAttrOfType<IntegerAttr>(plan::PlanDialect::kArenaBytesAttr).getInt();
  };
  // The only role of a program without stages is no row of the plan's table.
  if (plan.roles.empty())
    return static_cast<int64_t>(plan.arena_bytes) - packed(*module.getOps<ModuleOp>().begin());
  int64_t most = 0;
  for (auto [role, described] : llvm::zip(module.getOps<ModuleOp>(), plan.roles))
    most = std::max(most, static_cast<int64_t>(described->arena_bytes) - packed(role));
  return most;
}

/// Runs the phases, with as little recomputation as the limit of \p pipeline allows where that is asked for.
static absl::Status runWithinLimit(ModuleOp module, const CompileOptions &options, const PipelineOptions &pipeline,
                                   DiagnosticCollector &diagnostics, CompileResult &result) {
  bool searches = result.recompute == "auto" && trains(options.mode) && options.memoryLimit > 0 &&
                  options.from < Phase::Fuse && options.to >= Phase::Memory;
  if (failed(searches ? LimitSearch(module, pipeline, options, diagnostics).run(result.remarks)
                      : runPhases(module, pipeline, options.from, options.to)))
    return diagnostics.status();
  llvm::append_range(result.remarks, diagnostics.takeRemarks());
  if (options.to != Phase::Plan)
    return absl::OkStatus();
  bool hasSteps = false, isTrained = false;
  module.walk([&](plan::EntryOp entry) {
    isTrained |= entry.getKind() == EntryKind::TrainStep;
    if (entry.getKind() != EntryKind::TrainStep && entry.getKind() != EntryKind::EvalStep)
      return;
    hasSteps = true;
    if (options.runsInFlight > 1)
      entry->setAttr(kInFlightAttr, Builder(entry).getI64IntegerAttr(options.runsInFlight));
  });
  // Options do not describe a program that goes on from a late phase.
  if (options.runsInFlight > 1 && !hasSteps)
    return absl::InvalidArgumentError(absl::StrCat("--runs-in-flight: the program of ", options.model,
                                                   " has no steps of training or evaluation; leave it out"));
  if (options.mapsWeights && isTrained)
    return absl::InvalidArgumentError(absl::StrCat("--map-weights: the program of ", options.model,
                                                   " trains its weights, which cannot stay in files; leave it out"));
  auto plan = emitPlan(module);
  if (failed(plan))
    return diagnostics.status();
  result.plan = std::move(*plan);
  return absl::OkStatus();
}

// Passes pack a part of the arena, and the size of the rest behind that is known at the end: where both together are
// too large, all is done again with so much less for the passes.
absl::Status bowline::runWithinMemory(ModuleOp module, const CompileOptions &options, PipelineOptions pipeline,
                                      DiagnosticCollector &diagnostics, CompileResult &result) {
  const auto limit = static_cast<int64_t>(options.memoryLimit);
  const std::vector<std::string> remarks = result.remarks;
  OwningOpRef<ModuleOp> before;
  if (limit > 0 && options.to == Phase::Plan)
    before = module.clone();
  for (int64_t behind = 0;;) {
    pipeline.memoryLimit = pipeline.memoryTarget = limit - behind;
    BOWLINE_RETURN_IF_ERROR(runWithinLimit(module, options, pipeline, diagnostics, result));
    if (!before || result.plan->arena_bytes <= options.memoryLimit)
      return absl::OkStatus();
    int64_t found = bytesBehind(module, *result.plan);
    if (found <= behind || found >= limit)
      return absl::OkStatus(); // the caller that asked for the limit says that it is too low
    behind = found;
    OwningOpRef<ModuleOp> again = before->clone();
    module.getBodyRegion().takeBody(again->getBodyRegion());
    module->setAttrs(again.get()->getAttrDictionary());
    result.remarks = remarks;
    result.kernelListing.clear();
  }
}
