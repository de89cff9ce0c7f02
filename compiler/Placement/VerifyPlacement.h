//===- VerifyPlacement.h - The placement of all values, as passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_VERIFYPLACEMENT_H
#define BOWLINE_COMPILER_PLACEMENT_VERIFYPLACEMENT_H

#include "compiler/Placement/PlacementChecker.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <optional>

namespace bowline {

/// The program on whole tensors, kept until it can be compared with those of the ranks.
struct PlacementRecord {
  mlir::OwningOpRef<mlir::ModuleOp> whole;
  std::optional<PlacementChecker::Summary> summary; ///< once it was compared
};

/// Keeps a copy of the program as it is, unless one is kept already whose variables have the same dimensions: a
/// strategy may split them before it divides them.
std::unique_ptr<mlir::Pass> makeRecordWhole(std::shared_ptr<PlacementRecord> record);

/// Compares the program, which is in roles now, with the copy (PlacementChecker).
std::unique_ptr<mlir::Pass> makeVerifyPlacement(std::shared_ptr<PlacementRecord> record);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_VERIFYPLACEMENT_H
