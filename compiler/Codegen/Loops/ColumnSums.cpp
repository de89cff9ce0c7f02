//===- ColumnSums.cpp - Reductions across rows, a few rows at a time
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/ColumnSums.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

/// The number of rows that are read at a time: as many streams as hardware prefetchers follow, and enough rows that the
/// sums are seldom loaded and stored.
static constexpr int64_t kRowsTogether = 8;

void ColumnSums::allocate() {
  scopes.insertHere();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t size = frame.nest->blocksTogether * frame.nest->blockSize;
  for (const Expr *reduce : frame.nest->columnSums) {
    Value buffer = LLVM::AllocaOp::create(b, pointer, memoryType(reduce->type), b.constant(size), /*alignment=*/64);
    columns[reduce] = {buffer, RankedTensorType::get({size}, reduce->type), nullptr};
  }
}

Value ColumnSums::columnAddress(const Expr *reduce) {
  Value index = arith::SubIOp::create(b, scopes.dimValue(*frame.nest->segments[0].dim), firstColumn);
  return memory.address(columns[reduce], memoryType(reduce->type), index);
}

Value ColumnSums::load(const Expr *reduce) {
  return memory.loadVector(columns[reduce], columnAddress(reduce), indices.lanes.mask);
}

void ColumnSums::emitColumns(Blocks blocks) {
  scopes.insertHere();
  const Nest::Segment &segment = frame.nest->segments[0];
  firstColumn = blocks ? arith::MulIOp::create(b, blocks.first, b.constant(frame.nest->blockSize)) : b.constant(0);
  loops.emitElements(segment, blocks, [&] {
    scopes.insertHere();
    for (const Expr *reduce : frame.nest->columnSums)
      memory.storeVector(columns[reduce], columnAddress(reduce), reductions.identity(reduce, indices.lanes.count));
  });
  ArrayRef<unsigned> dims = frame.nest->columnSums[0]->dims;
  unsigned row = dims.back();
  int64_t rows = frame.nest->space.size(row), rest = rows % kRowsTogether;
  reductions.emitLoops(dims.drop_back(), {}, [&](ValueRange) {
    scopes.insertHere();
    scopes.emitLoop(row, b.constant(0), b.constant(rows - rest), kRowsTogether, {}, [&](ValueRange) {
      emitColumnsOfRows(kRowsTogether, blocks);
      return SmallVector<Value>();
    });
    if (rest)
      scopes.emitOnce(row, b.constant(rows - rest), [&] { emitColumnsOfRows(rest, blocks); });
    return SmallVector<Value>();
  });
}

void ColumnSums::emitColumnsOfRows(int64_t rows, Blocks blocks) {
  ArrayRef<const Expr *> sums = frame.nest->columnSums;
  unsigned row = sums[0]->dims.back();
  Value first = scopes.dimValue(row);
  SmallVector<const Expr *> bodies;
  for (const Expr *reduce : sums)
    bodies.push_back(reduce->operands[0]);
  loops.emitElements(frame.nest->segments[0], blocks, [&] {
    scopes.insertHere();
    // The rows are added up by themselves before they are added to the sums: more exact than one running sum.
    SmallVector<Value> current = reductions.identities(sums, indices.lanes.count);
    for (int64_t i = 0; i < rows; ++i) {
      scopes.insertHere();
      scopes.emitOnce(row, arith::AddIOp::create(b, first, b.constant(i)), [&] {
        prefetches.prefetchColumns(bodies, row, kRowsTogether);
        current = reductions.accumulate(sums, bodies, current);
      });
    }
    scopes.insertHere();
    for (auto [reduce, sum] : llvm::zip_equal(sums, current))
      memory.storeVector(columns[reduce], columnAddress(reduce), reductions.combine(reduce, load(reduce), sum));
  });
}
