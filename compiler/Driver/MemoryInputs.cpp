//===- MemoryInputs.cpp - Inputs of the formulas of memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryInputs.h"
#include "compiler/Driver/CompileOptions.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/Parameters.h"

#include <set>

using namespace bowline;

/// Whether each layer has the matrices and norms of a Llama and nothing else, but for biases, which are small.
static bool hasLayersOfLlama(const hf::ModelConfig &config) {
  const std::set<std::string> expected = {"attn_norm", "attn.wq",    "attn.wk",  "attn.wv",   "attn.wo",
                                          "mlp_norm",  "mlp.w_gate", "mlp.w_up", "mlp.w_down"};
  const std::set<std::string> biases = {"attn.bq", "attn.bk", "attn.bv"};
  std::set<std::string> found;
  for (const hf::Parameter &parameter : hf::parameters(config)) {
    if (parameter.layer.value_or(-1) != 0)
      continue;
    std::string name = parameter.symbol.substr(std::string("layers.0.").size());
    if (!biases.contains(name))
      found.insert(std::move(name));
  }
  return found == expected;
}

static absl::Status checkModel(const hf::ModelConfig &config, const CompileOptions &options) {
  if (!hasLayersOfLlama(config))
    return absl::UnimplementedError("layers of " + std::string(config.family->name));
  if (config.tiedEmbeddings)
    return absl::UnimplementedError("a head that is the embedding");
  if (options.optimizer != "adamw")
    return absl::UnimplementedError("--optimizer " + options.optimizer);
  return absl::OkStatus();
}

static absl::StatusOr<RecomputeLevel> recomputeLevelOf(llvm::StringRef recompute) {
  if (recompute == "none")
    return RecomputeLevel::None;
  if (recompute == "selective")
    return RecomputeLevel::Selective;
  if (recompute == "full")
    return RecomputeLevel::Full;
  return absl::UnimplementedError("--recompute " + recompute.str());
}

absl::StatusOr<MemoryInputs> bowline::memoryInputsOf(const hf::ModelConfig &config, const Strategy &strategy,
                                                     const CompileOptions &options, llvm::StringRef recompute) {
  BOWLINE_RETURN_IF_ERROR(checkModel(config, options));
  const ScheduleChoice schedule = strategy.schedule.value_or(ScheduleChoice());
  if (!strategy.stageAxis.empty() && !hasFormula(schedule.kind))
    return absl::UnimplementedError("--schedule " + toString(schedule));
  // Between the halves of a backward pass a rank keeps the values that the second half needs, recomputed or not.
  if (!strategy.stageAxis.empty() && schedule.kind == ScheduleKind::ZbH1 && recompute != "none")
    return absl::UnimplementedError("--schedule zb_h1 with --recompute " + recompute.str());
  // Patterns may divide anything, and ranks without an axis of their own repeat the work.
  if (!strategy.patterns.empty())
    return absl::UnimplementedError("parameters that lines of a strategy shard");
  MemoryInputs inputs;
  inputs.shape = {.hidden = config.hidden,
                  .inner = config.intermediate,
                  .queries = config.heads * config.headDim,
                  .keys = config.kvHeads * config.headDim,
                  .vocabulary = config.vocabulary,
                  .layers = config.layers};
  MemoryStrategy &result = inputs.strategy;
  BOWLINE_ASSIGN_OR_RETURN(result.recompute, recomputeLevelOf(recompute));
  int64_t parts = 1; // of the batch
  for (const std::string &axis : strategy.batchAxes)
    parts *= strategy.getSize(axis);
  result.tensor = strategy.getSize(strategy.tensorAxis);
  result.stages = strategy.getSize(strategy.stageAxis);
  if (result.tensor * result.stages * parts != strategy.countRanks())
    return absl::UnimplementedError("axes that are none of the batch, of tensors or of stages");
  result.schedule = schedule;
  result.microbatches = strategy.microbatches.value_or(1);
  result.isSequenceParallel = !strategy.sequenceAxis.empty() && strategy.sequenceAxis == strategy.tensorAxis;
  result.zeroRanks = strategy.getSize(strategy.zeroAxis);
  result.zero = result.zeroRanks > 1 ? strategy.zeroLevel : 0;
  if (result.zero > 0)
    inputs.zeroAxis = strategy.zeroAxis;
  result.prefetch = strategy.prefetch;
  result.gathersOnce = result.zero == 3 && result.microbatches > 1 && strategy.gathersOnce;
  result.isBf16 = options.dtype == "bf16";
  result.tokens = options.batch / (parts * result.microbatches) * options.seq;
  return inputs;
}
