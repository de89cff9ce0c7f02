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

/// The attribute of a printed program with the lines of its strategy, as texts: those that the phases before have read.
/// The attribute is empty where there was no strategy.
inline constexpr llvm::StringLiteral kStrategyRecordAttr = "bowline.strategy";

/// Writes the lines of the strategy of \p module into the attribute.
void recordStrategy(mlir::ModuleOp module);

/// Compares the strategy of \p module with the attribute. kInvalidArgument, with the place, where a line is another
/// one, is new or is gone, and the last phase that reads it (lastReadOfLine) is over when a compilation with \p options
/// begins. A program that has no attribute, because `--compile-to` did not print it, is not compared.
absl::Status checkStrategyRecord(mlir::ModuleOp module, const CompileOptions &options,
                                 DiagnosticCollector &diagnostics);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_STRATEGYRECORD_H
