//===- LocalForms.cpp - Operations whose part is more than the operation on local types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/LocalForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace bowline;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static ArrayAttr toAttr(OpBuilder &builder, ArrayRef<StringAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

static Value constant(ImplicitLocOpBuilder &builder, RankedTensorType type, double value) {
  Attribute element = isa<FloatType>(type.getElementType())
                          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
                          : Attribute(builder.getIntegerAttr(type.getElementType(), static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, DenseElementsAttr::get(type, element));
}

/// `value` where 0 <= index < part, `other` elsewhere; all of one shape.
static Value whereOwn(ImplicitLocOpBuilder &builder, Value index, int64_t part, Value value, Value other) {
  RankedTensorType type = typeOf(index);
  Value above = arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, index, constant(builder, type, 0));
  Value below = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, index,
                                      constant(builder, type, static_cast<double>(part)));
  Value inner = arith::SelectOp::create(builder, below, value, other);
  return arith::SelectOp::create(builder, above, inner, other);
}

/// Indices [N...] repeated along the last dimensions of `rows` [N..., D...].
static Value alongRows(ImplicitLocOpBuilder &builder, Value indices, RankedTensorType rows) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(indices).getRank()));
  return graph::BroadcastOp::create(builder, RankedTensorType::get(rows.getShape(), builder.getI32Type()), indices,
                                    dims);
}

Value LocalForms::placeAlong(ImplicitLocOpBuilder &builder, Axes axes) {
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return dist::CoordinateOp::create(builder, scalar, toAttr(builder, axes));
}

/// Global indices as seen from the first one of this rank's part.
Value LocalForms::shifted(ImplicitLocOpBuilder &builder, Value indices, Axes axes, int64_t part) {
  Value place = placeAlong(builder, axes);
  Value first = arith::MulIOp::create(builder, place, constant(builder, typeOf(place), static_cast<double>(part)));
  Value firsts = graph::BroadcastOp::create(builder, indices.getType(), first, ArrayRef<int64_t>{});
  return arith::SubIOp::create(builder, indices, firsts);
}

void LocalForms::replace(Value result, Value other, const SmallPtrSetImpl<Operation *> &except) {
  result.replaceUsesWithIf(other, [&](OpOperand &use) { return !except.contains(use.getOwner()); });
  replaced(result, other);
}

void LocalForms::localize(graph::RandomOp random, dist::ShardingAttr sharding) {
  if (sharding.isReplicated())
    return;
  ImplicitLocOpBuilder builder(random.getLoc(), random);
  SmallVector<Value> places;
  bool padded = random.getWhole().has_value();
  SmallVector<int64_t> dims, whole = llvm::to_vector(padded ? *random.getWhole() : random.getType().getShape());
  for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
    if (dim.getAxes().empty())
      continue;
    if (!padded)
      whole[index] *= mesh.getSize(dim.getAxes());
    dims.push_back(static_cast<int64_t>(index));
    places.push_back(placeAlong(builder, dim.getAxes()));
  }
  random.getPlacesMutable().assign(places);
  random.setCutDims(dims);
  random.setWhole(whole);
}

void LocalForms::localize(graph::IotaOp iota, Axes counted) {
  if (counted.empty())
    return;
  ImplicitLocOpBuilder builder(iota.getLoc(), iota->getContext());
  builder.setInsertionPointAfter(iota);
  RankedTensorType type = iota.getType();
  Value place = placeAlong(builder, counted);
  Value first = arith::MulIOp::create(
      builder, place, constant(builder, typeOf(place), static_cast<double>(type.getDimSize(iota.getDim()))));
  Value firsts = graph::BroadcastOp::create(builder, type, first, ArrayRef<int64_t>{});
  auto sum = arith::AddIOp::create(builder, iota, firsts);
  replace(iota, sum, SmallPtrSet<Operation *, 1>{sum});
}

void LocalForms::localize(graph::GatherOp gather, Axes rows) {
  if (rows.empty())
    return;
  ImplicitLocOpBuilder builder(gather.getLoc(), gather);
  Value indices = gather.getIndices();
  int64_t part = typeOf(gather.getTable()).getDimSize(0);
  Value index = shifted(builder, indices, rows, part);
  gather.getIndicesMutable().assign(whereOwn(builder, index, part, index, constant(builder, typeOf(index), 0)));
  builder.setInsertionPointAfter(gather);
  RankedTensorType type = gather.getType();
  Value own = whereOwn(builder, alongRows(builder, index, type), part, gather, constant(builder, type, 0));
  SmallPtrSet<Operation *, 2> keep;
  for (Operation *user : gather->getUsers())
    if (isa<arith::SelectOp>(user) && user->getBlock() == gather->getBlock() && user->getResult(0).hasOneUse() &&
        *user->getResult(0).getUsers().begin() == own.getDefiningOp())
      keep.insert(user);
  replace(gather, own, keep);
}

void LocalForms::localize(graph::ScatterAddOp scatter, Axes rows) {
  if (rows.empty())
    return;
  ImplicitLocOpBuilder builder(scatter.getLoc(), scatter);
  int64_t part = scatter.getType().getDimSize(0);
  Value index = shifted(builder, scatter.getIndices(), rows, part);
  Value updates = scatter.getUpdates();
  Value own = whereOwn(builder, alongRows(builder, index, typeOf(updates)), part, updates,
                       constant(builder, typeOf(updates), 0));
  scatter.getUpdatesMutable().assign(own);
  scatter.getIndicesMutable().assign(whereOwn(builder, index, part, index, constant(builder, typeOf(index), 0)));
}

/// Labels among this rank's classes; one past them for a class of another rank; negative ones as they are.
Value LocalForms::ownLabels(ImplicitLocOpBuilder &builder, Value labels, Axes axes, int64_t part) {
  RankedTensorType type = typeOf(labels);
  Value index = shifted(builder, labels, axes, part);
  Value own = whereOwn(builder, index, part, index, constant(builder, type, static_cast<double>(part)));
  Value absent = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, labels, constant(builder, type, 0));
  return arith::SelectOp::create(builder, absent, labels, own);
}

void LocalForms::localize(graph::SoftmaxCrossEntropyOp loss, Axes classes) {
  if (classes.empty())
    return;
  ImplicitLocOpBuilder builder(loss.getLoc(), loss);
  Value labels = loss.getLabels();
  loss.getLabelsMutable().assign(ownLabels(builder, labels, classes, typeOf(loss.getLogits()).getShape().back()));
  builder.setInsertionPointAfter(loss);
  ArrayAttr axes = toAttr(builder, classes);
  auto combine = [&](dist::ReduceKind kind, Value value, const Twine &why) -> Value {
    return dist::AllReduceOp::create(builder, value.getType(), kind, value, axes, ("global-to-local: " + why).str());
  };
  Value part = loss.getLogsumexp();
  Value maximum = combine(dist::ReduceKind::Max, part, "the logsumexp of all classes");
  Value power = math::ExpOp::create(builder, arith::SubFOp::create(builder, part, maximum));
  Value sum = combine(dist::ReduceKind::Sum, power, "the logsumexp of all classes");
  Value logsumexp = arith::AddFOp::create(builder, maximum, math::LogOp::create(builder, sum));
  // The label's logit on the rank that has it, zero on the others.
  auto logit = arith::SubFOp::create(builder, part, loss.getLoss());
  Value chosen = combine(dist::ReduceKind::Sum, logit, "the logit of the label");
  Value whole = arith::SubFOp::create(builder, logsumexp, chosen);
  RankedTensorType type = typeOf(labels);
  Value absent = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, labels, constant(builder, type, 0));
  Value result = arith::SelectOp::create(builder, absent, constant(builder, typeOf(whole), 0), whole);
  SmallPtrSet<Operation *, 4> own{logit, maximum.getDefiningOp(), power.getDefiningOp()->getOperand(0).getDefiningOp()};
  replace(loss.getLogsumexp(), logsumexp, own);
  replace(loss.getLoss(), result, own);
}

void LocalForms::localize(graph::SoftmaxCrossEntropyGradOp grad, Axes classes) {
  if (classes.empty())
    return;
  ImplicitLocOpBuilder builder(grad.getLoc(), grad);
  grad.getLabelsMutable().assign(
      ownLabels(builder, grad.getLabels(), classes, typeOf(grad.getLogits()).getShape().back()));
}
