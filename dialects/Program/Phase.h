//===- Phase.h - The phases of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PROGRAM_PHASE_H
#define BOWLINE_DIALECTS_PROGRAM_PHASE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace bowline {

/// All phases of a compilation, in order. At the end of each phase a verifier rejects operations that must be gone;
/// then setPhase marks the module with the phase.
enum class Phase { Input, Graph, Train, Shard, Local, Fuse, Schedule, Codegen, Hoist, Overlap, Memory, Plan };

struct PhaseInfo {
  Phase phase;
  llvm::StringRef name;        // the name on the command line
  llvm::StringRef folder;      // the folder of its passes
  llvm::StringRef description; // the state of the program after it
};

/// All phases in order.
llvm::ArrayRef<PhaseInfo> allPhases();

llvm::StringRef nameOf(Phase phase);
std::optional<Phase> phaseNamed(llvm::StringRef name);

/// Returns the current name of a phase for a name that it had earlier; empty for any other name.
std::string replacementOf(llvm::StringRef name);

/// The phase before \p phase; Input is before itself.
Phase phaseBefore(Phase phase);

/// The attribute of the outermost module that holds the name of the last completed phase.
inline constexpr llvm::StringLiteral kPhaseAttr = "bowline.phase";

/// The last completed phase, by the attribute of the outermost module around \p module; none without the attribute, as
/// in a program that a person wrote.
std::optional<Phase> phaseOf(mlir::ModuleOp module);

/// Records in \p module, the outermost one, that \p phase ended.
void setPhase(mlir::ModuleOp module, Phase phase);

/// Fails with a diagnostic if the attribute `bowline.phase` of \p module is not the name of a phase.
llvm::LogicalResult verifyPhaseName(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_DIALECTS_PROGRAM_PHASE_H
