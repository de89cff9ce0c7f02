//===- Passes.h - Training passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_PASSES_H
#define BOWLINE_PASSES_TRAINING_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace bowline {

/// Function and entry names that the training passes agree on.
namespace training {
inline constexpr llvm::StringLiteral kLossFunction = "loss";
inline constexpr llvm::StringLiteral kBeginFunction = "train_begin";
inline constexpr llvm::StringLiteral kMicrobatchFunction = "train_microbatch";
inline constexpr llvm::StringLiteral kUpdateFunction = "train_update";
inline constexpr llvm::StringLiteral kLossSum = "loss_sum";
inline constexpr llvm::StringLiteral kTokenCount = "token_count";
inline constexpr llvm::StringLiteral kStep = "step";

/// The accumulator of a parameter's gradient.
inline std::string gradientName(llvm::StringRef parameter) { return (parameter + ".grad").str(); }
} // namespace training

#define GEN_PASS_DECL
#include "passes/Training/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Training/Passes.h.inc"

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_PASSES_H
