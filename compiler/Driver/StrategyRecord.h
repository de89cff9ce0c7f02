//===- StrategyRecord.h - The strategy's lines, as phases read them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_STRATEGYRECORD_H
#define BOWLINE_COMPILER_DRIVER_STRATEGYRECORD_H

#include "compiler/Driver/CompileOptions.h"
#include "compiler/Driver/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// An attribute of a printed program: the lines of the strategy that earlier phases have read, as texts. Empty if there
/// was no strategy.
inline constexpr llvm::StringLiteral kStrategyRecordAttr = "bowline.strategy";

/// Writes the lines of the strategy of \p module into that attribute.
void recordStrategy(mlir::ModuleOp module);

/// Compares the strategy of \p module with the attribute. Returns kInvalidArgument, with the place, if a line was
/// changed, added or removed although a compilation with \p options begins after the last phase that reads it
/// (lastReadOfLine). Ignores a program without the attribute, which `--compile-to` did not print.
absl::Status checkStrategyRecord(mlir::ModuleOp module, const CompileOptions &options,
                                 DiagnosticCollector &diagnostics);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_STRATEGYRECORD_H
