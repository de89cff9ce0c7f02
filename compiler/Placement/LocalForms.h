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

/// Some operations on divided dimensions are computed by formulas of several operations whose intermediate values have
/// no counterpart in the whole program. This class knows these formulas as lemmas. Each lemma says which operation's
/// part the last value of a formula is, and under which conditions.
class LocalForms {
public:
  /// Returns the known placements of a value, such as an input of a formula.
  using Lookup = llvm::function_ref<llvm::ArrayRef<ValuePlacement>(mlir::Value)>;

  LocalForms(dist::MeshOp mesh, Lookup lookup) : mesh(mesh), lookup(lookup) {}

  /// Returns the placements of a rank's value if it is the last value of a known formula; otherwise none.
  llvm::SmallVector<ValuePlacement, 1> find(mlir::OpResult value);

private:
  /// Indices counted from the start of the rank's block: `index` minus `part` times the rank's place along `axes`.
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

/// Places random numbers by counters, of which each rank draws those of its part; nothing for other operations.
std::optional<ValuePlacement> placeRandom(mlir::Operation *local, mlir::Operation *whole, dist::MeshOp mesh);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_LOCALFORMS_H
