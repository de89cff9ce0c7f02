//===- Localization.h - From global tensors to what each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_LOCALIZATION_H
#define BOWLINE_PASSES_SHARDING_LOCALIZATION_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// Rewrites a module whose values all have a sharding into the program of one rank: local types, and collectives in the
/// place of reshards. All ranks run the same program; what differs between them follows from `dist.coordinate`.
///
/// Variables and arguments keep their `dist.sharding` and get `dist.global_shape`: whoever feeds and saves them needs
/// both. An operation whose part is more than the operation on local types is refused with a diagnostic, unless it is
/// one of those that are known here.
class Localization {
public:
  Localization(mlir::ModuleOp module, dist::MeshOp mesh) : module(module), mesh(mesh) {}
  llvm::LogicalResult run();

private:
  mlir::RankedTensorType localType(mlir::Type global, dist::ShardingAttr sharding);
  dist::ShardingAttr shardingOf(mlir::Value value);
  void localizeVariable(mlir::Operation *op, mlir::TypeAttr type);
  llvm::LogicalResult localizeFunction(graph::FuncOp function);
  llvm::LogicalResult localize(mlir::Operation *op);
  llvm::LogicalResult localizeReshard(dist::ReshardOp reshard);
  llvm::LogicalResult localizeRandom(graph::RandomOp random, dist::ShardingAttr sharding);
  llvm::LogicalResult checkRows(mlir::Operation *op, mlir::Value table);

  mlir::ModuleOp module;
  dist::MeshOp mesh;
  /// Shardings of the values of the present function, while attributes go.
  llvm::DenseMap<mlir::Value, dist::ShardingAttr> shardings;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_LOCALIZATION_H
