//===- KernelFrame.cpp - State that all parts of a kernel's emission share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/KernelFrame.h"
#include "compiler/Codegen/KernelCodegen.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline;
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

Value bowline::codegen::loadValidRows(KernelFrame &frame) {
  auto number = frame.kernel->getAttrOfType<IntegerAttr>(kRowCountAttr);
  if (!number)
    return {};
  KernelBuilder &b = frame.b;
  const Argument &count = frame.arguments[number.getInt()];
  Value last = LLVM::GEPOp::create(b, count.pointer.getType(), b.getI32Type(), count.pointer,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(count.type.getDimSize(0) - 1)});
  Value rows = arith::ExtSIOp::create(b, b.getI64Type(), LLVM::LoadOp::create(b, b.getI32Type(), last));
  rows = arith::MaxSIOp::create(b, rows, b.constant(0));
  return arith::MinSIOp::create(b, rows, b.constant(frame.output(0).type.getDimSize(0)));
}
