//===- NestEmitter.cpp - Nests as loops over vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/NestEmitter.h"
#include "compiler/Codegen/Loops/ColumnSums.h"
#include "compiler/Codegen/Loops/KeptRow.h"
#include "compiler/Codegen/Loops/TileLoops.h"
#include "compiler/Codegen/Loops/VectorReductions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

namespace {

/// Builds the function of one kernel for a processor, nest after nest: loops over units, each over rows and vectors.
class NestEmitter {
public:
  NestEmitter(func::FuncOp kernel, const TargetCpu &cpu) : frame(kernel, kernel.getLoc(), cpu) {
    values.setReductions(reductions);
    values.add(keptRow);
    values.add(columnSums);
    values.add(squares);
  }

  LogicalResult emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests);

private:
  /// The number behind the nest's last unit, of those that the kernel numbers from `first` on. Rows behind `validRows`
  /// are left out unless that is null.
  Value unitsEnd(int64_t first, Value validRows);

  void emitNest(Value from, Value to);

  /// Emits the computation of units at `row` of the outer dimensions.
  void emitUnit(ArrayRef<const Expr *> roots, Value row, Blocks blocks);

  /// Emits one row, or blocks of one.
  void emitRowOfUnit(ArrayRef<const Expr *> roots, Blocks blocks);

  KernelFrame frame;
  KernelBuilder &b = frame.b;
  Scopes scopes{b};
  Indices indices{b, scopes};
  ElementMemory memory{frame, indices};
  Values values{frame, scopes, indices, memory};
  Prefetches prefetches{frame, scopes, indices, memory};
  VectorReductions reductions{frame, scopes, indices, values, prefetches};
  VectorLoops loops{frame, scopes, indices};
  KeptRow keptRow{frame, scopes, indices, memory};
  ColumnSums columnSums{frame, scopes, indices, memory, reductions, loops, prefetches};
  Squares squares{frame, scopes, indices, memory, prefetches};
  TileLoops tiles{frame, scopes, indices, values, squares, prefetches};
};

} // namespace

LogicalResult NestEmitter::emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests) {
  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64});
  auto function = LLVM::LLVMFuncOp::create(b, symbol, type);
  Block *body = function.addEntryBlock(b);
  scopes.begin(body);
  FunctionType signature = frame.kernel.getFunctionType();
  frame.inputCount = signature.getNumInputs();
  for (Type tensor : llvm::concat<const Type>(signature.getInputs(), signature.getResults())) {
    Value slot = LLVM::GEPOp::create(b, pointer, pointer, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(frame.arguments.size())});
    frame.arguments.push_back({LLVM::LoadOp::create(b, pointer, slot), cast<RankedTensorType>(tensor)});
  }
  Value validRows = loadValidRows(frame);
  int64_t first = 0;
  for (const std::unique_ptr<Nest> &current : nests) {
    frame.nest = current.get();
    keptRow.allocate();
    squares.allocate();
    columnSums.allocate();
    Value begin = arith::MaxSIOp::create(b, body->getArgument(1), b.constant(first));
    Value end = arith::MinSIOp::create(b, body->getArgument(2), unitsEnd(first, validRows));
    emitNest(arith::SubIOp::create(b, begin, b.constant(first)), arith::SubIOp::create(b, end, b.constant(first)));
    first += frame.nest->units;
    scopes.begin(body);
  }
  // Non-temporal stores are ordered by a fence alone, not by the release operation with which a caller announces that
  // the range is done.
  if (memory.hasStreamed())
    LLVM::CallIntrinsicOp::create(b, Type(), b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  LLVM::ReturnOp::create(b, ValueRange());
  return failure(frame.unsupported);
}

Value NestEmitter::unitsEnd(int64_t first, Value validRows) {
  int64_t units = frame.nest->units;
  if (!validRows)
    return b.constant(first + units);
  Value perRow = b.constant(units / frame.nest->space.size(frame.nest->outer.front()));
  return arith::AddIOp::create(b, b.constant(first), arith::MulIOp::create(b, validRows, perRow));
}

void NestEmitter::emitNest(Value from, Value to) {
  SmallVector<const Expr *> roots = valuesOf(frame.nest->rowStores);
  for (const Nest::Segment &segment : frame.nest->segments)
    llvm::append_range(roots, valuesOf(segment.stores));
  reductions.prepare(roots);

  scopes.insertHere();
  if (frame.nest->blocks == 1)
    return scopes.emitNumbers(from, to, 1, [&](Value unit) { emitUnit(roots, unit, {}); });
  Value blocks = b.constant(frame.nest->blocks);
  if (frame.nest->blocksTogether == 1)
    return scopes.emitNumbers(from, to, 1, [&](Value unit) {
      Value block = arith::RemUIOp::create(b, unit, blocks);
      emitUnit(roots, arith::DivUIOp::create(b, unit, blocks), {block, arith::AddIOp::create(b, block, b.constant(1))});
    });
  // Rows are taken one by one, with their blocks that are in the range. Divisions are signed: a range that ends before
  // this nest is negative.
  Value firstRow = arith::DivSIOp::create(b, from, blocks);
  Value endRow = arith::DivSIOp::create(b, arith::AddIOp::create(b, to, b.constant(frame.nest->blocks - 1)), blocks);
  scopes.emitNumbers(firstRow, endRow, 1, [&](Value row) {
    Value unit = arith::MulIOp::create(b, row, blocks);
    Value first = arith::MaxSIOp::create(b, arith::SubIOp::create(b, from, unit), b.constant(0));
    Value end = arith::MinSIOp::create(b, arith::SubIOp::create(b, to, unit), blocks);
    scopes.emitNumbers(first, end, frame.nest->blocksTogether, [&](Value block) {
      Value next = arith::AddIOp::create(b, block, b.constant(frame.nest->blocksTogether));
      emitUnit(roots, row, {block, arith::MinSIOp::create(b, next, end)});
    });
  });
}

void NestEmitter::emitUnit(ArrayRef<const Expr *> roots, Value row, Blocks blocks) {
  scopes.insertHere();
  Value inBlock;
  if (frame.nest->rowBlocks) {
    inBlock = arith::RemUIOp::create(b, row, b.constant(frame.nest->rowBlocks->size));
    row = arith::DivUIOp::create(b, row, b.constant(frame.nest->rowBlocks->size));
  }
  for (size_t i = frame.nest->outer.size(); i-- > 0;) {
    unsigned dim = frame.nest->outer[i];
    bool isSlowest = i == 0 && !frame.nest->tile,
         isBlocked = frame.nest->rowBlocks && frame.nest->rowBlocks->dim == dim;
    int64_t size = frame.nest->space.size(dim) / (isBlocked ? frame.nest->rowBlocks->size : 1);
    Value at = isSlowest ? row : arith::RemUIOp::create(b, row, b.constant(size));
    if (!isSlowest)
      row = arith::DivUIOp::create(b, row, b.constant(size));
    if (isBlocked)
      at = arith::AddIOp::create(b, arith::MulIOp::create(b, at, b.constant(frame.nest->rowBlocks->size)), inBlock);
    scopes.back().dims[dim] = at;
  }
  if (frame.nest->tile) {
    tiles.emitTile(/*tile=*/row, blocks);
  } else if (frame.nest->rows) {
    loops.emitRow(frame.nest->initial, [&] { values.emitStores(frame.nest->initial.stores); });
    scopes.emitLoop(*frame.nest->rows, b.constant(0), b.constant(frame.nest->space.size(*frame.nest->rows)), 1, {},
                    [&](ValueRange) {
                      emitRowOfUnit(roots, blocks);
                      return SmallVector<Value>();
                    });
  } else {
    emitRowOfUnit(roots, blocks);
  }
}

void NestEmitter::emitRowOfUnit(ArrayRef<const Expr *> roots, Blocks blocks) {
  reductions.prepare(roots);
  // Row values are computed before anything is stored: a result may take the place of an argument.
  SmallVector<Value> rowValues;
  for (const Nest::Store &rowStore : frame.nest->rowStores)
    rowValues.push_back(values.value(rowStore.value));
  if (!frame.nest->columnSums.empty())
    columnSums.emitColumns(blocks);
  for (const Nest::Segment &segment : frame.nest->segments)
    loops.emitElements(segment, blocks, [&] {
      prefetches.prefetchScattered();
      prefetches.prefetchAhead(valuesOf(segment.stores), *segment.dim);
      values.emitStores(segment.stores);
    });
  for (auto [rowStore, rowValue] : llvm::zip_equal(frame.nest->rowStores, rowValues))
    values.store(rowStore, rowValue);
}

LogicalResult bowline::codegen::emitKernel(ModuleOp module, StringRef symbol, func::FuncOp kernel,
                                           ArrayRef<std::unique_ptr<Nest>> nests, const TargetCpu &cpu) {
  return NestEmitter(kernel, cpu).emit(module, symbol, nests);
}
