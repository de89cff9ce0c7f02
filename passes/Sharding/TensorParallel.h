//===- TensorParallel.h - Where tensor parallelism cuts a layer's parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_TENSORPARALLEL_H
#define BOWLINE_PASSES_SHARDING_TENSORPARALLEL_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace bowline {

/// Which dimension of a parameter tensor parallelism cuts, where a strategy does not say it (Shoeybi et al.,
/// Megatron-LM, 2019): projections into a layer's inner space along what they produce, so that each rank has heads or
/// columns of its own; projections back into the residual stream along what they take, which gives sums of parts.
/// All else every rank holds whole.
///
/// | parameter                           | cut along                                     |
/// |-------------------------------------|-----------------------------------------------|
/// | `*.attn.w{q,k,v}`, `*.attn.b{q,k,v}`| output, if the number of heads divides        |
/// | `*.mlp.w_{gate,up}`, `*.mlp.b_up`   | output                                        |
/// | `*.attn.wo`, `*.mlp.w_down`         | input, if the number of heads divides         |
///
/// Which dimension is output and which is input is read from the contraction that uses the parameter: weights are
/// stored as [out, in] by some families and as [in, out] by others.
class TensorParallel {
public:
  /// \p ranks is the size of the axis.
  TensorParallel(mlir::ModuleOp module, int64_t ranks);

  /// The dimension to cut; none for a parameter that every rank holds whole. What one would expect to be cut and is not
  /// is kept for reasons().
  std::optional<int64_t> findCut(graph::ParamOp param);

  /// Why parameters stay whole, for remarks, each with the parameters.
  const llvm::MapVector<llvm::StringRef, std::vector<graph::ParamOp>> &reasons() const { return whole; }

private:
  /// How a contraction uses a parameter.
  struct Use {
    int64_t input, output; ///< dimensions of the parameter
    /// Of a projection from or to heads: how many; else 0.
    int64_t inputHeads, outputHeads;
  };

  /// The cut of a weight whose role is known.
  std::optional<int64_t> findWeightCut(graph::ParamOp weight, bool alongOutput, llvm::StringRef &reason) const;

  mlir::ModuleOp module;
  int64_t ranks;
  llvm::StringMap<Use> uses;
  llvm::MapVector<llvm::StringRef, std::vector<graph::ParamOp>> whole;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_TENSORPARALLEL_H
