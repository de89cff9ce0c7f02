//===- TrainingNames.h - Variables that training adds to a program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_TRAININGNAMES_H
#define BOWLINE_PASSES_ANALYSIS_TRAININGNAMES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

/// Names of the states that the training passes agree on.
namespace bowline::training {

inline constexpr llvm::StringLiteral kLossSum = "loss_sum";
inline constexpr llvm::StringLiteral kTokenCount = "token_count";
inline constexpr llvm::StringLiteral kStep = "step";

/// The state with the whole \p parameter, gathered once for all microbatches of the pass that \p function computes.
inline std::string gatheredFor(llvm::StringRef function, llvm::StringRef parameter) {
  return ("gathered." + function + "." + parameter).str();
}

} // namespace bowline::training

#endif // BOWLINE_PASSES_ANALYSIS_TRAININGNAMES_H
