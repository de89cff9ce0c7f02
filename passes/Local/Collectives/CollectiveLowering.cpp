//===- CollectiveLowering.cpp - Collectives as a communicator executes them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/CollectiveLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace bowline;

static Value reshaped(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = graph::tensorType(value).clone(shape);
  return type == value.getType() ? value : graph::ReshapeOp::create(b, type, value);
}

/// Elements of the dimensions before `dim`.
static int64_t countBefore(RankedTensorType type, int64_t dim) {
  int64_t count = 1;
  for (int64_t size : type.getShape().take_front(dim))
    count *= size;
  return count;
}

/// `shape` with `ranks` times as much in the first dimension: that many parts of `shape`, one behind the other.
static SmallVector<int64_t> stacked(ArrayRef<int64_t> shape, int64_t ranks) {
  SmallVector<int64_t> result = llvm::to_vector(shape);
  result[0] *= ranks;
  return result;
}

/// [a, b, ...] as [b, a, ...] of another shape.
static Value exchanged(ImplicitLocOpBuilder &b, Value value, int64_t first, int64_t second, ArrayRef<int64_t> shape) {
  if (first != 1 && second != 1) {
    int64_t rest = graph::tensorType(value).getNumElements() / (first * second);
    value = graph::TransposeOp::create(b, reshaped(b, value, {first, second, rest}), ArrayRef<int64_t>{1, 0, 2});
  }
  return reshaped(b, value, shape);
}

/// The `ranks` parts of `value` along `dim`, one behind the other, as a tensor of `shape`.
static Value partsFirst(ImplicitLocOpBuilder &b, Value value, int64_t dim, int64_t ranks, ArrayRef<int64_t> shape) {
  return exchanged(b, value, countBefore(graph::tensorType(value), dim), ranks, shape);
}

/// A tensor of `shape` from its `ranks` parts along `dim`, one behind the other in `value`.
static Value joined(ImplicitLocOpBuilder &b, Value value, int64_t dim, int64_t ranks, RankedTensorType type) {
  return exchanged(b, value, ranks, countBefore(type, dim), type.getShape());
}

static Value constant(ImplicitLocOpBuilder &b, RankedTensorType type, int32_t value) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

int64_t CollectiveLowering::ranksOf(ArrayAttr axes) {
  return mesh.getSize(llvm::to_vector(axes.getAsRange<StringAttr>()));
}

/// Axes of one rank change no group, and the order of the others no sum: operations with the same group say so.
void CollectiveLowering::normalizeAxes(Operation *op) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  SmallVector<Attribute> kept =
      llvm::filter_to_vector(axes.getValue(), [&](Attribute axis) { return mesh.getSize(cast<StringAttr>(axis)) > 1; });
  if (isa<dist::AllReduceOp>(op))
    llvm::sort(kept, [&](Attribute lhs, Attribute rhs) {
      return *mesh.getAxis(cast<StringAttr>(lhs)) < *mesh.getAxis(cast<StringAttr>(rhs));
    });
  op->setAttr("axes", ArrayAttr::get(op->getContext(), kept));
}

void CollectiveLowering::run(graph::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    auto axes = op.getAttrOfType<ArrayAttr>("axes");
    if (!isa<dist::DistDialect>(op.getDialect()) || !axes)
      continue;
    ImplicitLocOpBuilder builder(op.getLoc(), &op);
    bool isAlone = ranksOf(axes) == 1;
    if (!isAlone)
      normalizeAxes(&op);
    Value result = llvm::TypeSwitch<Operation *, Value>(&op)
                       .Case([&](dist::CoordinateOp place) {
                         return isAlone ? constant(builder, graph::tensorType(place), 0) : place.getResult();
                       })
                       .Case([&](dist::AllReduceOp all) { return isAlone ? all.getInput() : all.getResult(); })
                       // By name: each operation of dist that has axes has a form of its own, dist.slice too.
                       .Case<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllToAllOp, dist::SliceOp>(
                           [&](auto collective) -> Value {
                             return isAlone ? Value(collective.getInput()) : lower(builder, collective);
                           })
                       .Default([](Operation *other) { return other->getResult(0); });
    if (result == op.getResult(0))
      continue;
    op.getResult(0).replaceAllUsesWith(result);
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value CollectiveLowering::lower(ImplicitLocOpBuilder &b, dist::AllGatherOp op) {
  if (op.getDim() == 0)
    return op.getResult();
  int64_t ranks = ranksOf(op.getAxes());
  RankedTensorType part = op.getInput().getType();
  auto parts = dist::AllGatherOp::create(b, part.clone(stacked(part.getShape(), ranks)), op.getInput(), 0, op.getAxes(),
                                         op.getWhy());
  parts->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return joined(b, parts, op.getDim(), ranks, op.getResult().getType());
}

Value CollectiveLowering::lower(ImplicitLocOpBuilder &b, dist::ReduceScatterOp op) {
  if (op.getDim() == 0)
    return op.getResult();
  int64_t ranks = ranksOf(op.getAxes());
  RankedTensorType part = op.getResult().getType();
  Value parts = partsFirst(b, op.getInput(), op.getDim(), ranks, stacked(part.getShape(), ranks));
  auto sum = dist::ReduceScatterOp::create(b, part, op.getKind(), parts, 0, op.getAxes(), op.getWhy());
  sum->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return sum;
}

Value CollectiveLowering::lower(ImplicitLocOpBuilder &b, dist::AllToAllOp op) {
  if (op.getSplitDim() == 0 && op.getConcatDim() == 0)
    return op.getResult();
  int64_t ranks = ranksOf(op.getAxes());
  SmallVector<int64_t> part = llvm::to_vector(op.getInput().getType().getShape());
  part[op.getSplitDim()] /= ranks;
  Value parts = partsFirst(b, op.getInput(), op.getSplitDim(), ranks, stacked(part, ranks));
  Value received = dist::AllToAllOp::create(b, parts.getType(), parts, 0, 0, op.getAxes(), op.getWhy());
  return joined(b, received, op.getConcatDim(), ranks, op.getResult().getType());
}

/// [a, ranks, part...] has the part of rank r in its rows r, ranks + r, 2 * ranks + r, ...
Value CollectiveLowering::lower(ImplicitLocOpBuilder &b, dist::SliceOp op) {
  int64_t ranks = ranksOf(op.getAxes());
  RankedTensorType part = op.getResult().getType();
  int64_t runs = countBefore(part, op.getDim());
  Value table = op.getInput();
  if (runs > std::numeric_limits<int32_t>::max() / ranks) {
    table = partsFirst(b, table, op.getDim(), ranks, stacked(part.getShape(), ranks));
    runs = 1;
  }
  auto indices = RankedTensorType::get({runs}, b.getI32Type());
  Value place = dist::CoordinateOp::create(b, RankedTensorType::get({}, b.getI32Type()), op.getAxes());
  Value rows = graph::ReshapeOp::create(b, indices.clone(ArrayRef<int64_t>{1}), place);
  if (runs > 1) {
    Value first = graph::BroadcastOp::create(b, indices, place, ArrayRef<int64_t>{});
    Value run = arith::MulIOp::create(b, graph::IotaOp::create(b, indices, 0),
                                      constant(b, indices, static_cast<int32_t>(ranks)));
    rows = arith::AddIOp::create(b, run, first);
  }
  Value taken = graph::GatherOp::create(b, reshaped(b, table, {runs * ranks, part.getNumElements() / runs}), rows,
                                        /*in_range=*/true);
  return reshaped(b, taken, part.getShape());
}
