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

/// Whether \p op says how the program is divided, which later phases may still ask.
bool isStrategy(mlir::Operation *op);

/// Whether \p op moves data between ranks in a way that a communicator has, or gives the number that tells ranks apart.
bool isCommunication(mlir::Operation *op);

/// Whether \p op is a kernel's body that waits for code generation.
bool isKernelBody(mlir::Operation *op);

/// Whether \p op stays when functions become programs of commands.
bool isPlanLevel(mlir::Operation *op);

/// Whether the mesh that \p op sees has more than one rank.
bool hasSeveralRanks(mlir::Operation *op);

/// The first argument of \p function that lacks \p attribute.
std::optional<unsigned> findArgumentWithout(graph::FuncOp function, llvm::StringRef attribute);

/// Fails with a diagnostic unless \p op is of the graph level: on global tensors, of the types that its operations
/// take.
llvm::LogicalResult verifyGraphLevel(mlir::Operation *op, Phase phase);

/// Fails with a diagnostic unless \p op is of the `plan` dialect.
llvm::LogicalResult verifyPlanLevel(mlir::Operation *op, Phase phase);

/// Fails with a diagnostic unless \p module, a program or a role, has something that can be run.
llvm::LogicalResult verifyEntries(mlir::ModuleOp module);
/// The same of each role (Roles.h) of \p module.
llvm::LogicalResult verifyEntriesOfRoles(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_PHASERULES_H
