//===- KernelCodegen.cpp - Code for kernels of one target
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/KernelCodegen.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::checkKernelSignature(func::FuncOp kernel) {
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return kernel.emitOpError("a kernel must have a body of one block");
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() == 0)
      return kernel.emitOpError("arguments and results of a kernel must be tensors of static shape, got ") << type;
    Type element = tensor.getElementType();
    if (!elementTypeOf(element) || element.isUnsignedInteger())
      return kernel.emitOpError("no code generation for elements of type ") << element;
  }
  return success();
}
