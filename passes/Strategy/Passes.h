//===- Passes.h - Strategies
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STRATEGY_PASSES_H
#define BOWLINE_PASSES_STRATEGY_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Strategy/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Strategy/Passes.h.inc"

} // namespace bowline

#endif // BOWLINE_PASSES_STRATEGY_PASSES_H
