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

/// The placements of an operation's results, or the reason why they have none.
struct PlacedResults {
  llvm::SmallVector<ValuePlacement, 1> results;
  std::string why;

  explicit operator bool() const { return why.empty(); }
  static PlacedResults none(const llvm::Twine &why) { return {{}, why.str()}; }
};

/// Derives the placements of the results of `local`, an operation of one rank, from those of its operands. `local` must
/// compute a part of `whole`, an operation of the whole program. The factor rule of `whole` says which part each rank
/// computes. The rules assume nothing about how passes divide programs.
class PlacementRules {
public:
  explicit PlacementRules(dist::MeshOp mesh) : mesh(mesh) {}

  /// `operands` has one placement for each operand of `whole`.
  PlacedResults apply(mlir::Operation *local, mlir::Operation *whole, llvm::ArrayRef<ValuePlacement> operands) const;

  /// Derives placements for a collective, or for an operation that moves the elements of a flat shard.
  PlacedResults move(mlir::Operation *local, const ValuePlacement &operand) const;

  /// Returns why a tensor of this type cannot have this placement; empty if it can.
  std::string mismatch(mlir::RankedTensorType local, const ValuePlacement &placement) const;

  /// Returns an equal placement in a canonical form. For example, a flat shard of a tensor that is divided at most
  /// along its first dimension is a flat shard over all these axes together.
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
