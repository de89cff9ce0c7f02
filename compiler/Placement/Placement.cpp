//===- Placement.cpp - How ranks hold a value of the whole program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/Placement.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bowline;

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

ValuePlacement ValuePlacement::replicated(Value whole) {
  ValuePlacement placement;
  placement.whole = whole;
  placement.axes.resize(rankOf(whole));
  return placement;
}

ValuePlacement ValuePlacement::uniform(Value scalar) {
  ValuePlacement placement;
  placement.whole = scalar;
  placement.isUniform = true;
  return placement;
}

bool ValuePlacement::operator==(const ValuePlacement &other) const {
  return whole == other.whole && axes == other.axes && partial == other.partial && combine == other.combine &&
         flat == other.flat && isUniform == other.isUniform && repeated == other.repeated;
}

bool ValuePlacement::isDivided() const {
  return flat || llvm::any_of(axes, [](const MeshAxes &dim) { return !dim.empty(); });
}

bool ValuePlacement::isEqualAlong(StringAttr axis) const {
  return !llvm::is_contained(partial, axis) && !(flat && llvm::is_contained(*flat, axis)) &&
         llvm::none_of(axes, [&](const MeshAxes &dim) { return llvm::is_contained(dim, axis); });
}

static std::string namesOf(ArrayRef<StringAttr> axes) {
  return llvm::join(llvm::map_range(axes, [](StringAttr axis) { return axis.getValue(); }), ", ");
}

std::string ValuePlacement::str() const {
  SmallVector<std::string> parts;
  for (auto [dim, names] : llvm::enumerate(axes))
    if (!names.empty())
      parts.push_back(namesOf(names) + " divides dimension " + std::to_string(dim));
  if (flat)
    parts.push_back("flat" + (flat->empty() ? std::string() : ", " + namesOf(*flat) + " divides its elements"));
  if (!partial.empty())
    parts.push_back((combine == dist::ReduceKind::Sum ? "a summand over " : "a part of a maximum over ") +
                    namesOf(partial));
  return parts.empty() ? "equal on all ranks" : llvm::join(parts, "; ");
}

void ValuePlacement::setPadding(size_t dim, std::optional<double> number) {
  padding.resize(axes.size());
  padding[dim] = number;
}

MeshAxes bowline::meshAxes(ArrayRef<StringAttr> names, dist::MeshOp mesh) {
  MeshAxes axes;
  llvm::copy_if(names, std::back_inserter(axes), [&](StringAttr name) { return mesh && mesh.getSize(name) > 1; });
  return axes;
}

MeshAxes bowline::meshAxes(ArrayAttr names, dist::MeshOp mesh) {
  return meshAxes(llvm::to_vector(names.getAsRange<StringAttr>()), mesh);
}

void bowline::sortAxes(MeshAxes &axes) {
  llvm::sort(axes, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
}

MeshAxes bowline::sortedAxes(ArrayRef<StringAttr> axes) {
  MeshAxes result(axes);
  sortAxes(result);
  return result;
}

std::optional<double> bowline::splatOf(Value value) {
  while (isa_and_nonnull<graph::BroadcastOp, graph::ReshapeOp, dist::SliceOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (auto pad = value.getDefiningOp<graph::PadOp>())
    return splatOf(pad.getOperand()) == 0.0 ? std::optional(0.0) : std::nullopt;
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  APInt number = elements.getSplatValue<APInt>();
  return elements.getElementType().isInteger(1) ? static_cast<double>(number.getZExtValue())
                                                : static_cast<double>(number.getSExtValue());
}

Value bowline::scalarOf(Value value) {
  if (auto broadcast = value.getDefiningOp<graph::BroadcastOp>())
    if (Value operand = broadcast.getOperand(); rankOf(operand) == 0)
      return operand;
  return rankOf(value) == 0 ? value : Value();
}
