//===- EmitTiles.cpp - Squares that are transposed in registers
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

/// How far ahead of a square memory is asked for.
static constexpr int64_t kSquaresAhead = 2;

/// Of a square's memory, in bytes: a cache line, the widest vector.
static constexpr unsigned kSquareAlignment = 64;

namespace {

/// Transposes as many vectors as each has elements, by shuffles that are one instruction each.
class Transpose {
public:
  Transpose(ImplicitLocOpBuilder &b, VectorType type) : b(b), type(type), count(type.getNumElements()) {
    // Shuffles within 128 bits are the cheapest, and the only ones that interleave.
    partSize = std::min<int64_t>(count, 128 / type.getElementTypeBitWidth());
  }

  SmallVector<Value> run(ArrayRef<Value> rows) {
    // Squares of a part a side first: vector i of a group then has in part p the column i + partSize * p of the group.
    SmallVector<SmallVector<Value>> groups;
    for (int64_t first = 0; first < count; first += partSize)
      groups.push_back(interleave(llvm::to_vector(rows.slice(first, partSize)), 1));
    SmallVector<Value> columns(count);
    for (int64_t i = 0; i < partSize; ++i) {
      SmallVector<Value> sameColumn;
      for (ArrayRef<Value> group : groups)
        sameColumn.push_back(group[i]);
      for (auto [part, column] : llvm::enumerate(gatherParts(sameColumn)))
        columns[i + partSize * part] = column;
    }
    return columns;
  }

private:
  /// The columns of `rows` within each part, where runs of `run` elements stay together.
  SmallVector<Value> interleave(SmallVector<Value> rows, int64_t run) {
    if (rows.size() == 1)
      return rows;
    SmallVector<Value> low, high;
    for (size_t i = 0; i < rows.size(); i += 2) {
      low.push_back(interleavePair(rows[i], rows[i + 1], run, 0));
      high.push_back(interleavePair(rows[i], rows[i + 1], run, partSize / 2));
    }
    SmallVector<Value> columns = interleave(low, 2 * run);
    llvm::append_range(columns, interleave(high, 2 * run));
    return columns;
  }

  /// Runs of both in turns, half of each part of them, from its element `first` on.
  Value interleavePair(Value lhs, Value rhs, int64_t run, int64_t first) {
    SmallVector<int64_t> lanes;
    for (int64_t part = 0; part < count; part += partSize)
      for (int64_t from = first; from < first + partSize / 2; from += run)
        for (int64_t side : {int64_t(0), count})
          for (int64_t i = 0; i < run; ++i)
            lanes.push_back(side + part + from + i);
    return vector::ShuffleOp::create(b, type, lhs, rhs, lanes);
  }

  /// Vector p has part p of each of `vectors`.
  SmallVector<Value> gatherParts(SmallVector<Value> vectors) {
    if (vectors.size() == 1)
      return vectors;
    SmallVector<Value> even, odd;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      even.push_back(everySecondPart(vectors[i], vectors[i + 1], 0));
      odd.push_back(everySecondPart(vectors[i], vectors[i + 1], partSize));
    }
    even = gatherParts(even);
    odd = gatherParts(odd);
    SmallVector<Value> result;
    for (auto [first, second] : llvm::zip_equal(even, odd)) {
      result.push_back(first);
      result.push_back(second);
    }
    return result;
  }

  Value everySecondPart(Value lhs, Value rhs, int64_t first) {
    SmallVector<int64_t> lanes;
    for (int64_t part = first; part < 2 * count; part += 2 * partSize)
      llvm::append_range(lanes, llvm::seq(part, part + partSize));
    return vector::ShuffleOp::create(b, type, lhs, rhs, lanes);
  }

  ImplicitLocOpBuilder &b;
  VectorType type;
  int64_t count, partSize;
};

} // namespace

void KernelEmitter::allocateSquares() {
  insertHere();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (const Expr *load : nest->tile->transposed) {
    Type element = arguments[load->argument].type.getElementType();
    auto type = RankedTensorType::get({nest->tile->square, nest->tile->square}, element);
    Value memory =
        LLVM::AllocaOp::create(b, pointer, memoryType(element), constant(type.getNumElements()), kSquareAlignment);
    squares[load] = {memory, type, nullptr};
  }
}

void KernelEmitter::emitTile(Value tile, Blocks blocks) {
  insertHere();
  const Nest::Tile &plan = *nest->tile;
  int64_t rows = nest->space.size(plan.dim);
  Value from = arith::MulIOp::create(b, tile, constant(plan.size));
  Value to = arith::AddIOp::create(b, from, constant(plan.size));
  int64_t rest = rows % plan.square;
  emitLoop(plan.dim, from, arith::MinSIOp::create(b, to, constant(rows - rest)), plan.square, {}, [&](ValueRange) {
    emitSquares(plan.square, blocks);
    return SmallVector<Value>();
  });
  if (rest)
    emitIf(tile, plan.count - 1,
           [&] { emitOnce(plan.dim, constant(rows - rest), [&] { emitSquares(rest, blocks); }); });
}

void KernelEmitter::emitIf(Value number, int64_t wanted, llvm::function_ref<void()> body) {
  insertHere();
  Value isWanted = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, constant(wanted));
  auto branch = scf::IfOp::create(b, isWanted, /*withElseRegion=*/false);
  branch.thenBlock()->clear();
  emitInside(branch, Scope(branch.thenBlock()), [&] {
    insertHere();
    body();
    insertHere();
    scf::YieldOp::create(b);
  });
}

void KernelEmitter::emitSquares(int64_t rows, Blocks blocks) {
  insertHere();
  const Nest::Tile &plan = *nest->tile;
  unsigned inner = *nest->segments[0].dim;
  int64_t columns = nest->space.size(inner), rest = columns % plan.square;
  Value from = constant(0), to = constant(columns - rest);
  if (blocks) {
    from = arith::MulIOp::create(b, blocks.first, constant(nest->blockSize));
    to = arith::MinSIOp::create(b, to, arith::MulIOp::create(b, blocks.end, constant(nest->blockSize)));
  }
  emitLoop(inner, from, to, plan.square, {}, [&](ValueRange) {
    emitSquare(rows, plan.square);
    return SmallVector<Value>();
  });
  if (!rest)
    return;
  auto emitRest = [&] { emitOnce(inner, constant(columns - rest), [&] { emitSquare(rows, rest); }); };
  blocks ? emitIf(blocks.end, nest->blocks, emitRest) : emitRest();
}

void KernelEmitter::emitSquare(int64_t rows, int64_t columns) {
  const Nest::Tile &plan = *nest->tile;
  const Nest::Segment &segment = nest->segments[0];
  for (const Expr *load : plan.transposed)
    transposeSquare(load, rows, columns);
  insertHere();
  squareRow = dimValue(plan.dim);
  lanes = firstLanes(*segment.dim, plan.square, columns);
  emitLoop(plan.dim, squareRow, arith::AddIOp::create(b, squareRow, constant(rows)), 1, {}, [&](ValueRange) {
    insertHere();
    for (const Nest::Store &target : segment.stores)
      if (!target.isStreamed)
        prefetch(arguments[inputCount + target.output], target.index, plan.dim, kSquaresAhead * plan.square);
    emitStores(segment);
    return SmallVector<Value>();
  });
  lanes = {};
}

void KernelEmitter::transposeSquare(const Expr *load, int64_t rows, int64_t columns) {
  insertHere();
  const Nest::Tile &plan = *nest->tile;
  const Argument &from = arguments[load->argument], &to = squares[load];
  Type element = memoryType(from.type.getElementType());
  unsigned alignment = element.getIntOrFloatBitWidth() / 8;
  auto type = VectorType::get({plan.square}, element);
  int64_t step = *IndexSpace::coefficient(load->index, *nest->segments[0].dim);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value mask = firstLanes(plan.dim, plan.square, rows).mask;
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < plan.square; ++i) {
    if (i >= columns) {
      vectors.push_back(zero);
      continue;
    }
    AffineExpr index = nest->space.add(load->index, nest->space.constant(i * step));
    prefetch(from, index, plan.dim, kSquaresAhead * plan.square);
    Value pointer = address(from, element, scalarIndex(index));
    vectors.push_back(mask ? LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, alignment).getResult()
                           : LLVM::LoadOp::create(b, type, pointer, alignment).getResult());
  }
  vectors = Transpose(b, type).run(vectors);
  // No more than a row has: of narrow elements every other row lies between two lines.
  unsigned rowAlignment = std::min<unsigned>(kSquareAlignment, plan.square * alignment);
  for (auto [i, vector] : llvm::enumerate(vectors))
    LLVM::StoreOp::create(b, vector, address(to, element, constant(i * plan.square)), rowAlignment);
}

Value KernelEmitter::loadSquare(const Argument &square) {
  Value row = arith::SubIOp::create(b, dimValue(nest->tile->dim), squareRow);
  Value index = arith::MulIOp::create(b, row, constant(nest->tile->square));
  return loadVector(square, address(square, memoryType(square.type.getElementType()), index), nullptr);
}

void KernelEmitter::prefetchScattered() {
  if (nest->scattered.empty())
    return;
  insertHere();
  for (const Expr *load : nest->scattered)
    prefetchLanes(arguments[load->argument], load->index, nest->aheadDim, nest->rowsAhead);
  for (const Nest::Store &target : nest->segments[0].stores)
    if (!target.isStreamed)
      prefetchLanes(arguments[inputCount + target.output], target.index, nest->aheadDim, nest->rowsAhead);
}

void KernelEmitter::prefetchLanes(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead) {
  constexpr int64_t kLineBits = 64 * 8;
  int64_t line = kLineBits / memoryType(argument.type.getElementType()).getIntOrFloatBitWidth();
  for (int64_t column = 0; column < lanes.count; column += line)
    prefetch(argument, nest->space.add(index, nest->space.constant(column)), dim, ahead);
}

// To the second-level cache: more requests than the first level keeps waiting are on their way at once.
void KernelEmitter::prefetch(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead) {
  AffineExpr then = nest->space.add(index, nest->space.constant(ahead * *IndexSpace::coefficient(index, dim)));
  Value pointer = address(argument, memoryType(argument.type.getElementType()), scalarIndex(then));
  LLVM::Prefetch::create(b, pointer, /*rw=*/0, /*hint=*/2, /*cache=*/1);
}
