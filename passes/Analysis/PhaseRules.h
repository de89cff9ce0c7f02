//===- PhaseRules.h - Rules that verifiers of phases share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_PHASERULES_H
#define BOWLINE_PASSES_ANALYSIS_PHASERULES_H

#include "dialects/Graph/GraphOps.h"
#include "dialects/Program/Phase.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bowline {

/// Applies \p rule to \p module and all operations inside of it, outer operations first. Fails with the first failure.
llvm::LogicalResult verifyAll(mlir::ModuleOp module, llvm::function_ref<llvm::LogicalResult(mlir::Operation *)> rule);

/// Fails with a diagnostic that \p op must be gone after \p phase, because of \p why.
llvm::LogicalResult refuse(mlir::Operation *op, Phase phase, llvm::StringRef why);

bool isInDialect(mlir::Operation *op, llvm::StringRef dialect);

/// Returns whether \p op is a `dist.strategy` or one of its lines, which stay in the module for later phases.
bool isStrategy(mlir::Operation *op);

/// Whether \p op is a collective, send or receive in a form that communicators execute, or gives the rank's coordinate.
bool isCommunication(mlir::Operation *op);

/// Returns whether \p op is a kernel's body that waits for code generation.
bool isKernelBody(mlir::Operation *op);

/// Returns whether \p op may remain after `schedule` turns functions into programs of commands.
bool isPlanLevel(mlir::Operation *op);

/// Returns whether the mesh that \p op sees has more than one rank.
bool hasSeveralRanks(mlir::Operation *op);

/// The index of the first argument of \p function that lacks \p attribute; none if all have it.
std::optional<unsigned> findArgumentWithout(graph::FuncOp function, llvm::StringRef attribute);

/// Fails with a diagnostic unless \p op is of the graph level: on global tensors, of the types that its operations
/// take.
llvm::LogicalResult verifyGraphLevel(mlir::Operation *op, Phase phase);

/// Fails with a diagnostic unless \p op is of the `plan` dialect.
llvm::LogicalResult verifyPlanLevel(mlir::Operation *op, Phase phase);

/// Fails with a diagnostic unless \p module, a program or a role, has an entry or a function that can run.
llvm::LogicalResult verifyEntries(mlir::ModuleOp module);
/// The same of each role (Roles.h) of \p module.
llvm::LogicalResult verifyEntriesOfRoles(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_PHASERULES_H
