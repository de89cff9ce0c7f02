//===- Squares.cpp - Squares that are transposed in registers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Squares.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline::codegen;

/// The alignment of a square's buffer in bytes: a cache line, the widest vector.
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
    // First, squares with a side of one part are transposed: part p of vector i of a group is then column
    // i + partSize * p of the group.
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
  /// Transposes `rows` within each part; runs of `run` elements are in their final order and stay together.
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

  /// Interleaves runs of both operands: half of each of their parts, from its element `first` on.
  Value interleavePair(Value lhs, Value rhs, int64_t run, int64_t first) {
    SmallVector<int64_t> lanes;
    for (int64_t part = 0; part < count; part += partSize)
      for (int64_t from = first; from < first + partSize / 2; from += run)
        for (int64_t side : {int64_t(0), count})
          for (int64_t i = 0; i < run; ++i)
            lanes.push_back(side + part + from + i);
    return vector::ShuffleOp::create(b, type, lhs, rhs, lanes);
  }

  /// Returns as many vectors as are given: vector p consists of part p of each of `vectors`, in order.
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

  /// Every second part of `lhs` followed by `rhs`, from the one that begins at element `first` on.
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

void Squares::allocate() {
  if (!frame.nest->tile)
    return;
  scopes.insertHere();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (const Expr *load : frame.nest->tile->transposed) {
    Type element = frame.arguments[load->argument].type.getElementType();
    auto type = RankedTensorType::get({frame.nest->tile->square, frame.nest->tile->square}, element);
    Value buffer =
        LLVM::AllocaOp::create(b, pointer, memoryType(element), b.constant(type.getNumElements()), kSquareAlignment);
    squares[load] = {buffer, type, nullptr};
  }
}

void Squares::transposeSquare(const Expr *load, int64_t rows, int64_t columns) {
  scopes.insertHere();
  const Nest::Tile &plan = *frame.nest->tile;
  const Argument &from = frame.arguments[load->argument], &to = squares[load];
  Type element = memoryType(from.type.getElementType());
  unsigned alignment = element.getIntOrFloatBitWidth() / 8;
  auto type = VectorType::get({plan.square}, element);
  int64_t step = *IndexSpace::coefficient(load->index, *frame.nest->segments[0].dim);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value mask = indices.firstLanes(plan.dim, plan.square, rows).mask;
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < plan.square; ++i) {
    if (i >= columns) {
      vectors.push_back(zero);
      continue;
    }
    AffineExpr index = frame.nest->space.add(load->index, frame.nest->space.constant(i * step));
    prefetches.prefetch(from, index, plan.dim, kSquaresAhead * plan.square);
    Value pointer = memory.address(from, element, indices.scalarIndex(index));
    vectors.push_back(mask ? LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, alignment).getResult()
                           : LLVM::LoadOp::create(b, type, pointer, alignment).getResult());
  }
  vectors = Transpose(b, type).run(vectors);
  // Rows of narrow elements are shorter than a cache line, and no better aligned than their size.
  unsigned rowAlignment = std::min<unsigned>(kSquareAlignment, plan.square * alignment);
  for (auto [i, vector] : llvm::enumerate(vectors))
    LLVM::StoreOp::create(b, vector, memory.address(to, element, b.constant(i * plan.square)), rowAlignment);
}

Value Squares::load(const Expr *expr) {
  const Argument &square = squares[expr];
  Value row = arith::SubIOp::create(b, scopes.dimValue(frame.nest->tile->dim), firstRow);
  Value index = arith::MulIOp::create(b, row, b.constant(frame.nest->tile->square));
  return memory.loadVector(square, memory.address(square, memoryType(square.type.getElementType()), index), nullptr);
}

Value Squares::transpose(int64_t rows, int64_t columns) {
  for (const Expr *load : frame.nest->tile->transposed)
    transposeSquare(load, rows, columns);
  scopes.insertHere();
  firstRow = scopes.dimValue(frame.nest->tile->dim);
  return firstRow;
}
