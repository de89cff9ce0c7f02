//===- ValidRows.cpp - Results whose rows code can leave out
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Program/ValidRows.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

bool bowline::haveRowsToLeaveOut(TypeRange types) {
  return !types.empty() && llvm::all_of(types, [&](Type type) {
    auto tensor = cast<RankedTensorType>(type), first = cast<RankedTensorType>(types.front());
    return tensor.getRank() > 1 && tensor.getDimSize(0) > 1 && tensor.getDimSize(0) == first.getDimSize(0) &&
           tensor.getNumElements() > tensor.getDimSize(0) && isa<FloatType>(tensor.getElementType());
  });
}
