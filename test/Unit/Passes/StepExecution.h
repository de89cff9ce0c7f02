//===- StepExecution.h - Blocks executed operation by operation, with the roundings of their types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_PASSES_STEPEXECUTION_H
#define BOWLINE_TEST_UNIT_PASSES_STEPEXECUTION_H

#include "test/Unit/Interp/OpHarness.h"

namespace bowline::test {

/// How a value is rounded between two operations.
enum class Rounding {
  None,  ///< f64, as the reference interpreter has it
  ToType ///< rounded to its element type, through f32, as an accumulator in f32 is; inside of operations f64
};

/// The operands of the terminator of `block`, whose operations have reference semantics and no variables.
Tensors execute(mlir::Block &block, llvm::ArrayRef<HostTensor> arguments, Rounding rounding);

/// `value` as something of `type` holds it.
HostTensor roundedTo(mlir::Type type, HostTensor value);

/// A random value for a function's argument of that type, of [-1, 1]; integers are of [-1, limit).
HostTensor drawFor(Random &random, mlir::Type type, int64_t limit);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_PASSES_STEPEXECUTION_H
