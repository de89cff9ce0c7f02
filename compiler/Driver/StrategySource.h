//===- StrategySource.h - The strategy that a compilation has, from a file and from flags
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_STRATEGYSOURCE_H
#define BOWLINE_COMPILER_DRIVER_STRATEGYSOURCE_H

#include "compiler/Driver/CompileOptions.h"
#include "compiler/Driver/Diagnostics.h"

namespace bowline {

/// Gives the module the single `dist.strategy` that all passes read: the one in `options.strategyFile`, or its own,
/// completed by `options.strategy`; none if neither exists. If the schedule is a table, inlines the table's file.
///
/// Returns kInvalidArgument, with the place of the line or the flag, for a strategy that contradicts itself, the flags
/// or `options.mode`, and for flags and changed lines that only phases before the module's read.
absl::Status addStrategy(mlir::ModuleOp module, const CompileOptions &options, DiagnosticCollector &diagnostics);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_STRATEGYSOURCE_H
