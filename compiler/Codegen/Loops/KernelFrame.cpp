//===- KernelFrame.cpp - What all parts of a kernel's emission see
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/KernelFrame.h"

using namespace mlir;
using namespace bowline::codegen;

Type bowline::codegen::memoryType(Type elementType) {
  Builder b(elementType.getContext());
  if (elementType.isInteger(1))
    return b.getI8Type();
  if (elementType.isBF16())
    return b.getI16Type();
  return elementType;
}

Value KernelBuilder::splat(TypedAttr element, int64_t count) {
  if (count == 0)
    return arith::ConstantOp::create(*this, element);
  auto type = VectorType::get({count}, element.getType());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, Attribute(element)));
}

Value KernelBuilder::elements(Value vector, int64_t first, int64_t count) {
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq(first, first + count));
  return vector::ShuffleOp::create(*this, vector, vector, numbers);
}
