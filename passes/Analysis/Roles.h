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

/// From the end of phase `local` on a module holds one nested module for each role, with the whole program of the ranks
/// that have it: a role for each rank of a pipeline, and without stages one, which has no name. The outer module states
/// the facts of all roles: target, seed, phase, number of stages and the axis along which roles lie as attributes;
/// mesh, strategy and attachments. Passes ask for these as before (`MeshOp::of`, `ModuleTarget::of`, ...), which look
/// further outside.

/// Whether \p op, in the module around the roles, is for all of them.
bool isForAllRoles(mlir::Operation *op);

/// Whether all ranks have this role: one that has no name, or a module that stands alone.
bool isOnlyRole(mlir::ModuleOp role);

/// Puts the program that \p module holds into a nested module. False: there are roles already, and nothing changed.
bool nestProgram(mlir::ModuleOp module);

/// Fails with a diagnostic that advises a remedy where \p module holds a program that is in no role, or none at all,
/// where a part of one role stands outside of the roles, or the other way round, and where several roles have no names
/// or are not as many as there are coordinates along their axis.
llvm::LogicalResult verifyRoles(mlir::ModuleOp module);

/// A copy of a role, or of a module that stands alone, to try a change on. The copy has the module around the role, but
/// not the other roles, so that it is compiled for the same target and mesh.
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
