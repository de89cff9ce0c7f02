//===- FlatShards.cpp - Equal parts of a tensor of any shape
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/FlatShards.h"

using namespace mlir;
using namespace bowline;

RankedTensorType FlatShards::shardOf(RankedTensorType whole) const {
  int64_t elements = whole.getNumElements();
  return RankedTensorType::get({elements / count + (elements % count != 0)}, whole.getElementType());
}

Value FlatShards::flatten(ImplicitLocOpBuilder &builder, Value whole) const {
  RankedTensorType type = graph::tensorType(whole);
  int64_t elements = type.getNumElements(), padded = shardOf(type).getNumElements() * count;
  if (type.getRank() != 1)
    whole = graph::ReshapeOp::create(builder, RankedTensorType::get({elements}, type.getElementType()), whole);
  if (padded == elements)
    return whole;
  return graph::PadOp::create(builder, whole, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{padded - elements});
}

Value FlatShards::slice(ImplicitLocOpBuilder &builder, Value whole) const {
  RankedTensorType shard = shardOf(graph::tensorType(whole));
  return dist::SliceOp::create(builder, shard, flatten(builder, whole), /*dim=*/0, axes());
}

Value FlatShards::draw(ImplicitLocOpBuilder &builder, graph::RandomOp random) const {
  RankedTensorType piece = random.getType();
  ArrayRef<int64_t> whole = random.getWhole().value_or(piece.getShape());
  if (piece.getRank() == 0 || piece.getShape().drop_front() != whole.drop_front())
    return {};
  SmallVector<Attribute> shardingAxes;
  if (!random.getPlaces().empty()) {
    auto place = random.getPlaces().front().getDefiningOp<dist::CoordinateOp>();
    if (random.getShardedDims() != ArrayRef<int64_t>{0} || !place || isPadded(piece))
      return {};
    llvm::append_range(shardingAxes, place.getAxes());
  }
  shardingAxes.push_back(axis);
  Value place = dist::CoordinateOp::create(builder, RankedTensorType::get({}, builder.getI32Type()),
                                           builder.getArrayAttr(shardingAxes));
  return graph::RandomOp::create(builder, shardOf(piece), random.getStddevAttr(), random.getSeedAttr(),
                                 random.getStreamAttr(), place, builder.getDenseI64ArrayAttr({0}),
                                 builder.getDenseI64ArrayAttr({llvm::product_of(whole)}));
}

Value FlatShards::reduceScatter(ImplicitLocOpBuilder &builder, Value summand, StringRef why) const {
  RankedTensorType shard = shardOf(graph::tensorType(summand));
  return dist::ReduceScatterOp::create(builder, shard, dist::ReduceKind::Sum, flatten(builder, summand), /*dim=*/0,
                                       axes(), why);
}

Value FlatShards::gather(ImplicitLocOpBuilder &builder, Value shard, ArrayRef<int64_t> shape, StringRef why,
                         dist::AllGatherOp *gather) const {
  RankedTensorType part = graph::tensorType(shard), whole = RankedTensorType::get(shape, part.getElementType());
  int64_t elements = whole.getNumElements(), padded = part.getNumElements() * count;
  auto op = dist::AllGatherOp::create(builder, RankedTensorType::get({padded}, part.getElementType()), shard, /*dim=*/0,
                                      axes(), why);
  if (gather)
    *gather = op;
  Value result = op;
  if (padded != elements)
    result = graph::SliceOp::create(builder, result, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{elements});
  if (whole.getRank() != 1)
    result = graph::ReshapeOp::create(builder, whole, result);
  return result;
}
