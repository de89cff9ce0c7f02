//===- Import.h - From a Hugging Face configuration to a graph
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_IMPORT_H
#define BOWLINE_FRONTENDS_HF_IMPORT_H

#include "frontends/hf/ModelConfig.h"
#include "mlir/IR/OwningOpRef.h"

#include "frontends/hf/PagedCache.h"
#include "types/element_type.h"

#include <cstdint>
#include <map>
#include <string>

namespace mlir {
class MLIRContext;
class ModuleOp;
} // namespace mlir

namespace bowline::hf {

/// Positions of one call. Times the largest width of a model, their number stays below 2^62.
inline constexpr int64_t kMaxTokens = int64_t{1} << 31;

enum class ImportMode { Train, Generate, Serve };

struct ImportOptions {
  ImportMode mode = ImportMode::Train;
  int64_t batch = 1; // B: sequences per call of the loss. Generate: 1
  int64_t seq = 0;   // S: positions of a sequence, at most the model's maxPositions. Not of Serve
  ServeSizes serve;  // of Serve
  // Formats of matrices in blocks of bits, by key; others are f32. Not of Train.
  std::map<std::string, ElementType> blocks;
};

/// Builds the f32 graph of a model: one graph.param per parameter (parameters() in Parameters.h) and one function.
///
///   Train: the sum of the losses of all positions with a label, and their number
///     loss @loss(tokens: tensor<BxSxi32>, labels: tensor<BxSxi32>) -> (loss_sum: tensor<f32>, token_count:
///     tensor<f32>)
///   Generate: the logits that follow `position`; tokens behind it have no influence
///     generate @logits(tokens: tensor<1xSxi32>, position: tensor<1xi32>) -> (logits: tensor<1xVxf32>)
///   Serve: for each bucket of T tokens, which are the next ones of up to R sequences side by side, the tokens that
///   follow the rows `sample` (graph.sample_tokens, at the positions `lengths`), and the logits if they are asked for.
///   `rows`, `lengths` and `blocks` say where sequences and their blocks of the caches are (plan.sequences)
///     step @step.T(tokens: tensor<Txi32>, rows: tensor<(R+1)xi32>, lengths: tensor<Rxi32>, blocks: tensor<RxMxi32>,
///     sample: tensor<Rxi32>, temperature: tensor<Rxf32>, top_k: tensor<Rxi32>, top_p: tensor<Rxf32>,
///     seeds: tensor<Rx2xi32>, wanted: tensor<Rxi32>) -> (sampled: tensor<Rxi32>, logprobs: tensor<Rxf32>,
///     likely: tensor<Rx20xi32>, likely_logprobs: tensor<Rx20xf32>[, logits: tensor<RxVxf32>])
///
/// Token ids and labels are limited to [0, V), positions to [0, S). Every operation's location names the module of
/// the Hugging Face model that it belongs to ("model.layers.0.mlp.gate_proj"), every parameter's its tensor.
///
/// Loads the dialects that it uses into `context`. Interfaces of arith and math operations are the caller's to register
/// (registerElementwiseModels). Returns kInvalidArgument if the options do not fit the model.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context, const ModelConfig &config,
                                                              const ImportOptions &options);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_IMPORT_H
