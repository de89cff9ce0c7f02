//===- PlacementRules.h - Placements of the results of an operation on placed operands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_PLACEMENTRULES_H
#define BOWLINE_COMPILER_PLACEMENT_PLACEMENTRULES_H

#include "compiler/Placement/Placement.h"
#include "dialects/Graph/FactorRule.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bowline {

/// Either the placements of an operation's results, or why they have none.
struct PlacedResults {
  llvm::SmallVector<ValuePlacement, 1> results;
  std::string why;

  explicit operator bool() const { return why.empty(); }
  static PlacedResults none(const llvm::Twine &why) { return {{}, why.str()}; }
};

/// Derives the placements of the results of `local`, an operation of one rank, from those of its operands, where
/// `local` is a part of `whole`, an operation of the whole program. The factor rule of `whole` says which part each
/// rank computes; nothing here knows how a pass divides programs.
class PlacementRules {
public:
  explicit PlacementRules(dist::MeshOp mesh) : mesh(mesh) {}

  /// `operands` place the operands of `whole`, one by one.
  PlacedResults apply(mlir::Operation *local, mlir::Operation *whole, llvm::ArrayRef<ValuePlacement> operands) const;

  /// An operation between ranks, or one that moves the elements of a flat shard.
  PlacedResults move(mlir::Operation *local, const ValuePlacement &operand) const;

  /// Whether a tensor of this type can be placed so; otherwise why not.
  std::string mismatch(mlir::RankedTensorType local, const ValuePlacement &placement) const;

  /// The same placement in other words, if there are others: a flat shard of a tensor that is divided along its first
  /// dimension alone, if at all, is a flat shard over all these axes together.
  ValuePlacement canonical(ValuePlacement placement) const;

  int64_t ranksAlong(llvm::ArrayRef<mlir::StringAttr> axes) const { return mesh ? mesh.getSize(axes) : 1; }

private:
  std::string misfit(mlir::Operation *local, mlir::Operation *whole, const graph::FactorRule &rule,
                     llvm::ArrayRef<ValuePlacement> operands,
                     llvm::function_ref<llvm::ArrayRef<mlir::StringAttr>(int64_t)> axesOf) const;
  PlacedResults applyFlat(mlir::Operation *local, mlir::Operation *whole,
                          llvm::ArrayRef<ValuePlacement> operands) const;

  mutable dist::MeshOp mesh;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_PLACEMENTRULES_H
