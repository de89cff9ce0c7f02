//===- Compile.h - From a model to a plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_COMPILE_H
#define BOWLINE_COMPILER_DRIVER_COMPILE_H

#include "compiler/Driver/CompileOptions.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bowline {

/// Compiles `options.model`. Returns kInvalidArgument for wrong options, models or IR, and kNotFound for missing files.
/// Messages name the place in the model.
absl::StatusOr<CompileResult> compileModel(const CompileOptions &options);

/// Compiles a module in memory, ignoring `options.model`. The module must be the IR after phase `options.from`; it
/// becomes the IR after `options.to`. All of Bowline's dialects must be loaded in its context.
absl::StatusOr<CompileResult> compileModule(mlir::ModuleOp module, const CompileOptions &options);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_COMPILE_H
