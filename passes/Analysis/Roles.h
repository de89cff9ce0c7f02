//===- Roles.h - The programs of the ranks, each in a module of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_ROLES_H
#define BOWLINE_PASSES_ANALYSIS_ROLES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace bowline {

/// After phase `local` a module holds one nested module per role. A role is the whole program of some ranks: a pipeline
/// has one role per coordinate along its axis, and a program without stages has one role, without a name. The outer
/// module holds everything common to all roles: target, seed, phase, number of stages and the roles' mesh axis as
/// attributes; the mesh, the strategy and attachments as operations. Lookups such as `MeshOp::of` and
/// `ModuleTarget::of` also search the modules around a role.

/// Returns whether \p op, which stands in the module around the roles, applies to all roles.
bool isForAllRoles(mlir::Operation *op);

/// Returns whether all ranks have this role: one that has no name, or a module that stands alone.
bool isOnlyRole(mlir::ModuleOp role);

/// Moves the program in \p module into a nested module. Returns false, without a change, if there are roles already.
bool nestProgram(mlir::ModuleOp module);

/// Fails with a diagnostic and a remedy if \p module has no role, or has operations outside of the roles that belong
/// into one, or a role has operations that belong outside. Fails also if one of several roles has no name, or if the
/// number of roles differs from the number of coordinates along their axis.
llvm::LogicalResult verifyRoles(mlir::ModuleOp module);

/// A copy of a role, or of a standalone module, on which a pass can try a change. The copy includes the module around
/// the role without the other roles, so that the copy has the same target and mesh.
class RoleCopy {
public:
  explicit RoleCopy(mlir::ModuleOp role);

  mlir::ModuleOp operator*() const { return copy; }

private:
  mlir::OwningOpRef<mlir::ModuleOp> outermost;
  mlir::ModuleOp copy;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_ROLES_H
