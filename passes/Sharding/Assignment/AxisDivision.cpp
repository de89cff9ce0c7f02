//===- AxisDivision.cpp - One axis of the mesh becomes two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/AxisDivision.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

std::string bowline::partOfAxis(StringRef axis, int part) { return (axis + "/" + Twine(part)).str(); }

static SmallVector<StringAttr> divided(ArrayRef<StringAttr> axes, StringRef axis) {
  SmallVector<StringAttr> result;
  for (StringAttr name : axes)
    if (name.getValue() != axis)
      result.push_back(name);
    else
      for (int part : {0, 1})
        result.push_back(StringAttr::get(name.getContext(), partOfAxis(axis, part)));
  return result;
}

static dist::ShardingAttr divided(dist::ShardingAttr sharding, StringRef axis) {
  SmallVector<dist::DimAttr> dims;
  for (dist::DimAttr dim : sharding.getDims())
    dims.push_back(dist::DimAttr::get(sharding.getContext(), divided(dim.getAxes(), axis), dim.getOpen()));
  return dist::ShardingAttr::get(sharding.getContext(), dims, divided(sharding.getUnreduced(), axis));
}

static void divideMesh(dist::MeshOp mesh, StringRef axis, int64_t outer) {
  SmallVector<std::string> names;
  SmallVector<int64_t> sizes;
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes())) {
    if (name != axis) {
      names.push_back(name.str());
      sizes.push_back(size);
      continue;
    }
    names.append({partOfAxis(axis, 0), partOfAxis(axis, 1)});
    sizes.append({outer, size / outer});
  }
  Builder builder(mesh.getContext());
  mesh.setAxisNamesAttr(builder.getStrArrayAttr(SmallVector<StringRef>(names.begin(), names.end())));
  mesh.setAxisSizes(sizes);
}

void bowline::divideAxis(ModuleOp module, StringRef axis, int64_t outer) {
  divideMesh(dist::MeshOp::of(module), axis, outer);
  for (Operation &op : *module.getBody()) {
    if (auto sharding = op.getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr))
      op.setAttr(DistDialect::kShardingAttr, divided(sharding, axis));
    auto function = dyn_cast<graph::FuncOp>(op);
    if (!function)
      continue;
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      if (auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr))
        function.setArgAttr(index, DistDialect::kShardingAttr, divided(sharding, axis));
    for (Operation &inner : function.getBody().front()) {
      if (auto reshard = dyn_cast<dist::ReshardOp>(inner))
        reshard.setShardingAttr(divided(reshard.getSharding(), axis));
      if (auto shardings = inner.getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr))
        inner.setAttr(
            DistDialect::kShardingsAttr,
            ArrayAttr::get(op.getContext(), llvm::map_to_vector(shardings.getAsRange<dist::ShardingAttr>(),
                                                                [&](dist::ShardingAttr sharding) -> Attribute {
                                                                  return divided(sharding, axis);
                                                                })));
    }
  }
}
