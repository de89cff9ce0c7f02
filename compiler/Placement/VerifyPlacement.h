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

/// A copy of the program on whole tensors, for a later comparison with the programs of the ranks.
struct PlacementRecord {
  mlir::OwningOpRef<mlir::ModuleOp> whole;
  std::optional<PlacementChecker::Summary> summary; ///< set by the comparison
};

/// Returns a pass that copies the program into `record`. It keeps an earlier copy whose variables have the same
/// dimensions: a strategy may split dimensions before it divides them.
std::unique_ptr<mlir::Pass> makeRecordWhole(std::shared_ptr<PlacementRecord> record);

/// Returns a pass that compares the program, which must be in roles, with the copy (PlacementChecker).
std::unique_ptr<mlir::Pass> makeVerifyPlacement(std::shared_ptr<PlacementRecord> record);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_VERIFYPLACEMENT_H
