//===- DistOps.cpp - The dist dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace bowline::dist;

#include "dialects/Dist/DistDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Dist/DistOps.cpp.inc"
      >();
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("needs one size per axis, got ") << getAxisSizes().size() << " for " << getAxisNames().size();
  llvm::StringSet<> seen;
  for (auto [name, size] : llvm::zip_equal(getAxisNames().getAsRange<StringAttr>(), getAxisSizes())) {
    if (name.empty())
      return emitOpError("axis names must not be empty");
    if (!seen.insert(name).second)
      return emitOpError("axis ") << name << " is named twice";
    if (size < 1)
      return emitOpError("axis ") << name << " has size " << size << ", which must be positive";
  }
  return success();
}

int64_t MeshOp::getRankCount() {
  int64_t count = 1;
  for (int64_t size : getAxisSizes())
    count *= size;
  return count;
}
