//===- Layout.cpp - From the tensor of a checkpoint to the part that each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/Layout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::dist;

/// An attribute of the variable that is a shape; empty where there is none.
static ArrayRef<int64_t> shapeIn(Operation *variable, StringRef name) {
  auto shape = variable->getAttrOfType<DenseI64ArrayAttr>(name);
  return shape ? shape.asArrayRef() : ArrayRef<int64_t>();
}

bool Layout::isPadded() const { return view != padded || (isFlat() && llvm::product_of(local) != shard * shards); }

/// Reads the attributes of a flat shard into `layout`. Returns the shape that the shard has before it is flattened, or
/// that of `tensor` where the variable is no flat shard.
static FailureOr<ArrayRef<int64_t>> readFlat(Operation *variable, RankedTensorType tensor, MeshOp mesh,
                                             Layout &layout) {
  ArrayRef<int64_t> piece = shapeIn(variable, DistDialect::kFlatShapeAttr);
  if (piece.empty())
    return tensor.getShape();
  auto axes = variable->getAttrOfType<ArrayAttr>(DistDialect::kFlatAxesAttr);
  if (tensor.getRank() != 1 || !axes || axes.empty())
    return variable->emitOpError("is flat, but has type ") << tensor << " or no " << DistDialect::kFlatAxesAttr;
  layout.flatAxes = llvm::to_vector(axes.getAsRange<StringAttr>());
  layout.shard = tensor.getDimSize(0);
  int64_t elements = llvm::product_of(piece), parts = mesh ? mesh.getSize(layout.flatAxes) : 1;
  layout.shards = parts;
  if (layout.shard != static_cast<int64_t>(llvm::divideCeil(elements, parts)))
    return variable->emitOpError("has ") << layout.shard << " elements, but a shard of " << elements << " over "
                                         << parts << " ranks has " << llvm::divideCeil(elements, parts);
  return piece;
}

FailureOr<Layout> Layout::of(Operation *variable) {
  auto type = variable->getAttrOfType<TypeAttr>("type");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!tensor)
    return variable->emitOpError("has no tensor type");
  MeshOp mesh = MeshOp::of(variable);
  Layout layout;
  FailureOr<ArrayRef<int64_t>> piece = readFlat(variable, tensor, mesh, layout);
  if (failed(piece))
    return failure();
  layout.local = llvm::to_vector(*piece);
  auto sharding = variable->getAttrOfType<ShardingAttr>(DistDialect::kShardingAttr);
  if (!sharding)
    sharding = ShardingAttr::replicated(variable->getContext(), static_cast<int64_t>(piece->size()));
  layout.unreduced = llvm::to_vector(sharding.getUnreduced());
  for (auto [size, dim] : llvm::zip_equal(layout.local, sharding.getDims())) {
    layout.axes.push_back(llvm::to_vector(dim.getAxes()));
    int64_t &padded = layout.padded.emplace_back();
    if (llvm::MulOverflow(size, mesh ? mesh.getSize(dim.getAxes()) : 1, padded))
      return variable->emitOpError("is larger than any tensor on all ranks together");
  }
  layout.global = llvm::to_vector(shapeIn(variable, DistDialect::kGlobalShapeAttr));
  layout.view = llvm::to_vector(shapeIn(variable, DistDialect::kViewAttr));
  if (layout.view.empty())
    layout.view = layout.global.empty() ? layout.padded : layout.global;
  if (layout.global.empty())
    layout.global = layout.view;
  if (layout.view.size() != layout.padded.size())
    return variable->emitOpError("has ") << layout.view.size() << " dimensions in its whole, but is of type " << tensor;
  for (auto [dim, size, padded] : llvm::enumerate(layout.view, layout.padded))
    if (size > padded)
      return variable->emitOpError("of ") << tensor << " on each rank: dimension " << dim << " has " << padded
                                          << " elements on all of them, but its whole has " << size;
  return layout;
}
