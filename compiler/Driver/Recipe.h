//===- Recipe.h - The settings of training that a plan carries
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_RECIPE_H
#define BOWLINE_COMPILER_DRIVER_RECIPE_H

#include "compiler/Driver/CompileOptions.h"

namespace bowline {

/// Attaches to the plan the settings that determine how training continues (kRecipeAttachment): the
/// effective ones of the optimizer and the learning rate, and the computed type. A resumed run compares
/// them with those of its checkpoint.
void attachRecipe(mlir::ModuleOp module, const CompileOptions &options);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_RECIPE_H
