//===- NestEmitter.cpp - Nests as loops over vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/NestEmitter.h"
#include "compiler/Codegen/KernelEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::codegen;

/// How far ahead of what is computed memory is asked for. Measured: with arithmetic in between, a processor that runs
/// ahead of its loads does not get far enough by itself.
static constexpr int64_t kBytesAhead = 1024;

LogicalResult KernelEmitter::emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests) {
  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64});
  auto function = LLVM::LLVMFuncOp::create(b, symbol, type);
  Block *body = function.addEntryBlock(b);
  scopes.emplace_back(body);
  b.setInsertionPointToEnd(body);
  FunctionType signature = kernel.getFunctionType();
  inputCount = signature.getNumInputs();
  for (Type tensor : llvm::concat<const Type>(signature.getInputs(), signature.getResults())) {
    Value slot = LLVM::GEPOp::create(b, pointer, pointer, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(arguments.size())});
    arguments.push_back({LLVM::LoadOp::create(b, pointer, slot), cast<RankedTensorType>(tensor)});
  }
  int64_t first = 0;
  for (const std::unique_ptr<Nest> &current : nests) {
    nest = current.get();
    if (nest->kept)
      allocateKept();
    if (nest->tile)
      allocateSquares();
    allocateColumns();
    Value begin = arith::MaxSIOp::create(b, body->getArgument(1), constant(first));
    Value end = arith::MinSIOp::create(b, body->getArgument(2), constant(first + nest->units));
    emitNest(arith::SubIOp::create(b, begin, constant(first)), arith::SubIOp::create(b, end, constant(first)));
    first += nest->units;
    b.setInsertionPointToEnd(body);
    scopes[0] = Scope(body);
  }
  // Streamed stores are ordered by nothing else, not by the release with which a caller says that the range is done.
  if (streams)
    LLVM::CallIntrinsicOp::create(b, Type(), b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  LLVM::ReturnOp::create(b, ValueRange());
  return failure(unsupported);
}

void KernelEmitter::emitNest(Value from, Value to) {
  SmallVector<const Expr *> roots = valuesOf(nest->rowStores);
  for (const Nest::Segment &segment : nest->segments)
    llvm::append_range(roots, valuesOf(segment.stores));
  prepare(roots);

  insertHere();
  if (nest->blocks == 1)
    return emitNumbers(from, to, 1, [&](Value unit) { emitUnit(roots, unit, {}); });
  Value blocks = constant(nest->blocks);
  if (nest->blocksTogether == 1)
    return emitNumbers(from, to, 1, [&](Value unit) {
      Value block = arith::RemUIOp::create(b, unit, blocks);
      emitUnit(roots, arith::DivUIOp::create(b, unit, blocks), {block, arith::AddIOp::create(b, block, constant(1))});
    });
  // Row by row, the blocks of it that are in the range. Signed: a range that ends before this nest is negative.
  Value firstRow = arith::DivSIOp::create(b, from, blocks);
  Value endRow = arith::DivSIOp::create(b, arith::AddIOp::create(b, to, constant(nest->blocks - 1)), blocks);
  emitNumbers(firstRow, endRow, 1, [&](Value row) {
    Value unit = arith::MulIOp::create(b, row, blocks);
    Value first = arith::MaxSIOp::create(b, arith::SubIOp::create(b, from, unit), constant(0));
    Value end = arith::MinSIOp::create(b, arith::SubIOp::create(b, to, unit), blocks);
    emitNumbers(first, end, nest->blocksTogether, [&](Value block) {
      Value next = arith::AddIOp::create(b, block, constant(nest->blocksTogether));
      emitUnit(roots, row, {block, arith::MinSIOp::create(b, next, end)});
    });
  });
}

void KernelEmitter::emitNumbers(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  insertHere();
  Value stepValue = constant(step);
  auto loop = scf::ForOp::create(b, from, to, stepValue);
  loop.getBody()->clear();
  emitInside(loop, Scope(loop.getBody()), [&] {
    insertHere();
    body(loop.getInductionVar());
    insertHere();
    scf::YieldOp::create(b);
  });
}

void KernelEmitter::emitUnit(ArrayRef<const Expr *> roots, Value row, Blocks blocks) {
  insertHere();
  Value inBlock;
  if (nest->rowBlocks) {
    inBlock = arith::RemUIOp::create(b, row, constant(nest->rowBlocks->size));
    row = arith::DivUIOp::create(b, row, constant(nest->rowBlocks->size));
  }
  for (size_t i = nest->outer.size(); i-- > 0;) {
    unsigned dim = nest->outer[i];
    bool isSlowest = i == 0 && !nest->tile, isBlocked = nest->rowBlocks && nest->rowBlocks->dim == dim;
    int64_t size = nest->space.size(dim) / (isBlocked ? nest->rowBlocks->size : 1);
    Value at = isSlowest ? row : arith::RemUIOp::create(b, row, constant(size));
    if (!isSlowest)
      row = arith::DivUIOp::create(b, row, constant(size));
    if (isBlocked)
      at = arith::AddIOp::create(b, arith::MulIOp::create(b, at, constant(nest->rowBlocks->size)), inBlock);
    scopes.back().dims[dim] = at;
  }
  if (nest->tile) {
    emitTile(/*tile=*/row, blocks);
  } else if (nest->rows) {
    emitRow(nest->initial, [&] { emitStores(nest->initial); });
    emitLoop(*nest->rows, constant(0), constant(nest->space.size(*nest->rows)), 1, {}, [&](ValueRange) {
      emitRowOfUnit(roots, blocks);
      return SmallVector<Value>();
    });
  } else {
    emitRowOfUnit(roots, blocks);
  }
}

void KernelEmitter::emitRowOfUnit(ArrayRef<const Expr *> roots, Blocks blocks) {
  prepare(roots);
  // Before anything is stored: a result may take the place of an argument.
  SmallVector<Value> rowValues;
  for (const Nest::Store &rowStore : nest->rowStores)
    rowValues.push_back(value(rowStore.value));
  if (!nest->columnSums.empty())
    emitColumns(blocks);
  for (const Nest::Segment &segment : nest->segments)
    emitElements(segment, blocks, [&] {
      prefetchScattered();
      prefetchAhead(valuesOf(segment.stores), *segment.dim);
      emitStores(segment);
    });
  for (auto [rowStore, rowValue] : llvm::zip_equal(nest->rowStores, rowValues))
    store(rowStore, rowValue);
}

void KernelEmitter::prefetchAhead(ArrayRef<const Expr *> values, unsigned dim, std::optional<int64_t> ahead) {
  if (!nest->scattered.empty() || !nest->columnSums.empty())
    return;
  insertHere();
  forEachExpr(values, [&](const Expr *load) {
    // Not what reductions read, whose own dimensions have no value here.
    if (load->kind != Expr::Kind::Load || !isBound(load->freeDims) || IndexSpace::coefficient(load->index, dim) != 1)
      return;
    const Argument &argument = arguments[load->argument];
    int64_t bytes = memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
    prefetchLanes(argument, load->index, dim, ahead.value_or(kBytesAhead / bytes));
  });
}

int64_t KernelEmitter::lanesOf(const Nest::Segment &segment) {
  SmallVector<const Expr *> roots = valuesOf(segment.stores);
  bool reduces = false;
  forEachExpr(roots, [&](const Expr *expr) {
    reduces |= expr->kind == Expr::Kind::Reduce && expr->freeDims & dimBit(*segment.dim);
  });
  return chooseLanes(roots, nest->space.size(*segment.dim), vectorLanes, reduces);
}

void KernelEmitter::emitStores(const Nest::Segment &segment) {
  prepare(valuesOf(segment.stores));
  SmallVector<Value> values;
  for (const Nest::Store &current : segment.stores)
    values.push_back(value(current.value));
  for (auto [current, computed] : llvm::zip_equal(segment.stores, values))
    store(current, computed);
}

void KernelEmitter::emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to,
                                llvm::function_ref<void()> body) {
  lanes = {dimBit(*segment.dim), count, nullptr};
  emitLoop(*segment.dim, from, to, count, {}, [&](ValueRange) {
    body();
    return SmallVector<Value>();
  });
  lanes = {};
}

void KernelEmitter::emitTail(const Nest::Segment &segment, int64_t from, int64_t rest,
                             llvm::function_ref<void()> body) {
  insertHere();
  setTailLanes(*segment.dim, rest);
  emitOnce(*segment.dim, constant(from), body);
  lanes = {};
}

KernelEmitter::Lanes KernelEmitter::firstLanes(unsigned dim, int64_t count, int64_t present) {
  if (present == count)
    return {dimBit(dim), count, nullptr};
  SmallVector<bool> exists(count, false);
  std::fill_n(exists.begin(), present, true);
  Value mask = arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({count}, b.getI1Type()), ArrayRef<bool>(exists)));
  return {dimBit(dim), count, mask};
}

void KernelEmitter::setTailLanes(unsigned dim, int64_t rest) {
  // One element is a vector of two with one missing: a vector of one is nobody's fast path.
  lanes = firstLanes(dim, std::max<int64_t>(llvm::PowerOf2Ceil(rest), 2), rest);
}

void KernelEmitter::emitElements(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body) {
  blocks ? emitBlocks(segment, blocks, body) : emitRow(segment, body);
}

void KernelEmitter::emitRow(const Nest::Segment &segment, llvm::function_ref<void()> body) {
  int64_t size = nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
  if (size >= count && count > 1) {
    insertHere();
    emitVectors(segment, count, constant(0), constant(size - rest), body);
  }
  if (count == 1)
    rest = size;
  if (rest)
    emitTail(segment, size - rest, rest, body);
}

void KernelEmitter::emitBlocks(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body) {
  int64_t size = nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
  insertHere();
  Value from = arith::MulIOp::create(b, blocks.first, constant(nest->blockSize));
  Value to = arith::MulIOp::create(b, blocks.end, constant(nest->blockSize));
  emitVectors(segment, count, from, arith::MinSIOp::create(b, to, constant(size - rest)), body);
  if (rest)
    emitIf(blocks.end, nest->blocks, [&] { emitTail(segment, size - rest, rest, body); });
}

LogicalResult bowline::codegen::emitKernel(ModuleOp module, StringRef symbol, func::FuncOp kernel,
                                           ArrayRef<std::unique_ptr<Nest>> nests, const TargetCpu &cpu) {
  return KernelEmitter(kernel, kernel.getLoc(), cpu).emit(module, symbol, nests);
}
