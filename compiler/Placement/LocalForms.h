//===- LocalForms.h - Operations of a part that several operations compute together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_LOCALFORMS_H
#define BOWLINE_COMPILER_PLACEMENT_LOCALFORMS_H

#include "compiler/Placement/Placement.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bowline {

/// Some operations on divided dimensions are computed by formulas of several operations, of which the values between
/// have no relation to the whole program. These are lemmas: each says of which formula the last value is a part of
/// which operation, and under which conditions.
class LocalForms {
public:
  /// The placements of a value that the formulas begin with.
  using Lookup = llvm::function_ref<llvm::ArrayRef<ValuePlacement>(mlir::Value)>;

  LocalForms(dist::MeshOp mesh, Lookup lookup) : mesh(mesh), lookup(lookup) {}

  /// The placements of a value of one rank, if it is the last one of such a formula; else none.
  llvm::SmallVector<ValuePlacement, 1> find(mlir::OpResult value);

private:
  /// Numbers that are counted from the first one of the rank's block: `index` less `part` times the place along `axes`.
  struct Shifted {
    mlir::Value index;
    int64_t part = 0;
    MeshAxes axes;
  };

  std::optional<Shifted> shifted(mlir::Value value);
  std::optional<Shifted> ownOr(mlir::Value value, mlir::Value &inside, mlir::Value &outside);
  std::optional<Shifted> ownLabels(mlir::Value value);
  bool isShifted(mlir::Value value, const Shifted &by);

  llvm::SmallVector<ValuePlacement, 1> rows(mlir::Operation *select);
  llvm::SmallVector<ValuePlacement, 1> scatteredRows(mlir::Operation *scatter);
  llvm::SmallVector<ValuePlacement, 1> logsumexp(mlir::Operation *add);
  llvm::SmallVector<ValuePlacement, 1> loss(mlir::Operation *select);
  llvm::SmallVector<ValuePlacement, 1> lossGrad(mlir::Operation *grad);
  llvm::SmallVector<ValuePlacement, 1> numbered(mlir::Operation *add);
  llvm::SmallVector<ValuePlacement, 1> padded(mlir::Operation *select);

  mutable dist::MeshOp mesh;
  Lookup lookup;
};

/// Random numbers by counters, of which each rank draws those of its part.
std::optional<ValuePlacement> placeRandom(mlir::Operation *local, mlir::Operation *whole, dist::MeshOp mesh);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_LOCALFORMS_H
