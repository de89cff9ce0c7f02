//===- Phase.h - The phases of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_PHASE_H
#define BOWLINE_COMPILER_PIPELINES_PHASE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace bowline {

/// The single list of phases, in order. Each ends with a verifier of what must be gone.
enum class Phase { Input, Graph, Train, Shard, Stage, Local, Fuse, Schedule, Memory, Plan };

struct PhaseInfo {
  Phase phase;
  llvm::StringRef name;        // as on the command line
  llvm::StringRef description; // the state of the program after it
};

/// All phases in order.
llvm::ArrayRef<PhaseInfo> allPhases();

llvm::StringRef nameOf(Phase phase);
std::optional<Phase> phaseNamed(llvm::StringRef name);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_PHASE_H
