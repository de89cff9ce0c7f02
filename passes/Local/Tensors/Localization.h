//===- Localization.h - From global tensors to the part that each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_TENSORS_LOCALIZATION_H
#define BOWLINE_PASSES_LOCAL_TENSORS_LOCALIZATION_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Local/Tensors/RankContext.h"

namespace bowline {

/// Rewrites a module in which every value has a sharding into the program of one rank: types become local, and
/// collectives replace reshards. All ranks run the same program and differ only in the result of `dist.coordinate`.
///
/// Variables and arguments keep their `dist.sharding` and get `dist.global_shape`: code that feeds and saves them needs
/// both.
class Localization {
public:
  Localization(mlir::ModuleOp module, dist::MeshOp mesh)
      : module(module), mesh(mesh),
        context(
            mesh, [this](mlir::Value value) { return shardingOf(value); },
            [this](mlir::Value result, mlir::Value other) { shardings[other] = shardingOf(result); }) {}

  /// Fails with a diagnostic, without a change, if a value or variable has no sharding or one that does not divide it.
  llvm::LogicalResult run();

private:
  llvm::LogicalResult check(mlir::Operation *op, const llvm::Twine &what, mlir::Type global,
                            dist::ShardingAttr sharding);
  llvm::LogicalResult checkFunction(graph::FuncOp function);
  llvm::LogicalResult checkAll();
  mlir::RankedTensorType localType(mlir::Type global, dist::ShardingAttr sharding);
  dist::ShardingAttr shardingOf(mlir::Value value);
  void localizeVariable(graph::Variable variable);
  void localizeFunction(graph::FuncOp function);
  void localize(mlir::Operation *op);
  void markInRange(mlir::Operation *op);
  void localizeReshard(dist::ReshardOp reshard);

  mlir::ModuleOp module;
  dist::MeshOp mesh;
  RankContext context;
  /// The shardings of the values of the present function, whose attributes are removed meanwhile.
  llvm::DenseMap<mlir::Value, dist::ShardingAttr> shardings;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_TENSORS_LOCALIZATION_H
