//===- KeptRow.cpp - A row that is computed once and used twice
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/KeptRow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

void KeptRow::allocate() {
  if (!frame.nest->kept)
    return;
  scopes.insertHere();
  Type element = frame.nest->kept->inReduction->type, pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t size = frame.nest->space.size(frame.nest->kept->inner);
  Value memory = LLVM::AllocaOp::create(b, pointer, element, b.constant(size), /*alignment=*/64);
  row = {memory, RankedTensorType::get({size}, element), nullptr};
}

Value KeptRow::load(const Expr *) {
  Type element = row.type.getElementType();
  Value at = memory.address(row, element, scopes.dimValue(frame.nest->kept->inner));
  return memory.loadVector(row, at, indices.lanes.mask);
}

void KeptRow::keep(const Expr *expr, Value computed) {
  if (!frame.nest->kept || expr != frame.nest->kept->inReduction)
    return;
  Type element = row.type.getElementType();
  Value at = memory.address(row, element, scopes.dimValue(frame.nest->kept->reducedDim));
  memory.storeVector(row, at, computed);
}
