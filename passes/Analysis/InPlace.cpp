//===- InPlace.cpp - Which operands of a launch may share memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/InPlace.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

bool bowline::mayOverwrite(plan::LaunchOp launch, plan::KernelOp kernel, unsigned output, Value buffer) {
  if (llvm::count(launch.getOperands(), buffer) != 1)
    return false;
  ArrayRef<int64_t> pairs = kernel.getInPlace();
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (pairs[i] == output && launch.getOperands()[pairs[i + 1]] == buffer)
      return true;
  return false;
}
