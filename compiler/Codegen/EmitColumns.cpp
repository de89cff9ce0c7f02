//===- EmitColumns.cpp - Reductions across rows, piece by piece
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/KernelEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

/// Rows that are read at a time: as many streams as prefetchers follow, and few loads and stores of the sums beside
/// those of the rows.
static constexpr int64_t kRowsTogether = 8;

void KernelEmitter::allocateColumns() {
  insertHere();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t size = nest->blocksTogether * nest->blockSize;
  for (const Expr *reduce : nest->columnSums) {
    Value memory = LLVM::AllocaOp::create(b, pointer, memoryType(reduce->type), constant(size), /*alignment=*/64);
    columns[reduce] = {memory, RankedTensorType::get({size}, reduce->type), nullptr};
  }
}

Value KernelEmitter::columnAddress(const Expr *reduce) {
  Value index = arith::SubIOp::create(b, dimValue(*nest->segments[0].dim), firstColumn);
  return address(columns[reduce], memoryType(reduce->type), index);
}

Value KernelEmitter::loadColumns(const Expr *reduce) {
  return loadVector(columns[reduce], columnAddress(reduce), lanes.mask);
}

void KernelEmitter::emitColumns(Blocks blocks) {
  insertHere();
  const Nest::Segment &segment = nest->segments[0];
  firstColumn = blocks ? arith::MulIOp::create(b, blocks.first, constant(nest->blockSize)) : constant(0);
  emitElements(segment, blocks, [&] {
    insertHere();
    for (const Expr *reduce : nest->columnSums)
      storeVector(columns[reduce], columnAddress(reduce), identity(reduce, lanes.count));
  });
  ArrayRef<unsigned> dims = nest->columnSums[0]->dims;
  unsigned row = dims.back();
  int64_t rows = nest->space.size(row), rest = rows % kRowsTogether;
  emitLoops(dims.drop_back(), {}, [&](ValueRange) {
    insertHere();
    emitLoop(row, constant(0), constant(rows - rest), kRowsTogether, {}, [&](ValueRange) {
      emitColumnsOfRows(kRowsTogether, blocks);
      return SmallVector<Value>();
    });
    if (rest)
      emitOnce(row, constant(rows - rest), [&] { emitColumnsOfRows(rest, blocks); });
    return SmallVector<Value>();
  });
}

void KernelEmitter::emitColumnsOfRows(int64_t rows, Blocks blocks) {
  ArrayRef<const Expr *> sums = nest->columnSums;
  unsigned row = sums[0]->dims.back();
  Value first = dimValue(row);
  SmallVector<const Expr *> bodies;
  for (const Expr *reduce : sums)
    bodies.push_back(reduce->operands[0]);
  emitElements(nest->segments[0], blocks, [&] {
    insertHere();
    // Sums of a few rows first: more exact than one running sum.
    SmallVector<Value> current = identities(sums, lanes.count);
    for (int64_t i = 0; i < rows; ++i) {
      insertHere();
      emitOnce(row, arith::AddIOp::create(b, first, constant(i)), [&] {
        prefetchColumns(bodies, row, kRowsTogether);
        current = accumulate(sums, bodies, current);
      });
    }
    insertHere();
    for (auto [reduce, sum] : llvm::zip_equal(sums, current))
      storeVector(columns[reduce], columnAddress(reduce), combine(reduce, loadColumns(reduce), sum));
  });
}

void KernelEmitter::prefetchColumns(ArrayRef<const Expr *> bodies, unsigned row, int64_t ahead) {
  unsigned inner = *nest->segments[0].dim;
  insertHere();
  forEachExpr(bodies, [&](const Expr *load) {
    if (load->kind == Expr::Kind::Load && IndexSpace::coefficient(load->index, inner) == 1 &&
        IndexSpace::coefficient(load->index, row).value_or(0) > 0)
      prefetchLanes(arguments[load->argument], load->index, row, ahead);
  });
}
