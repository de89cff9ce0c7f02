//===- DistOps.cpp - The dist dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Dist/ModuleLookup.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;
using namespace bowline::dist;

/// `"dp", "fsdp"`.
static ParseResult parseAxisList(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> names;
  auto parseName = [&] {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(parseName))
    return failure();
  axes = parser.getBuilder().getArrayAttr(names);
  return success();
}

static void printAxisList(OpAsmPrinter &printer, Operation *, ArrayAttr axes) { llvm::interleaveComma(axes, printer); }

/// Attributes in front of which nothing stands for them in the operation's form: none is read there.
static ParseResult refuseAttributes(OpAsmParser &parser, SMLoc place, const NamedAttrList &attributes) {
  if (attributes.empty())
    return success();
  return parser.emitError(place) << "has attribute '" << attributes.begin()->getName().getValue()
                                 << "' in braces, where nothing reads it; remove it";
}

static ParseResult parseNoBraces(OpAsmParser &parser, NamedAttrList &) {
  SMLoc place = parser.getCurrentLocation();
  NamedAttrList attributes;
  return failure(parser.parseOptionalAttrDict(attributes) || refuseAttributes(parser, place, attributes));
}

static ParseResult parseNoAttributesKeyword(OpAsmParser &parser, NamedAttrList &) {
  SMLoc place = parser.getCurrentLocation();
  NamedAttrList attributes;
  return failure(parser.parseOptionalAttrDictWithKeyword(attributes) || refuseAttributes(parser, place, attributes));
}

static void printNoBraces(OpAsmPrinter &, Operation *, DictionaryAttr) {}
static void printNoAttributesKeyword(OpAsmPrinter &, Operation *, DictionaryAttr) {}

#include "dialects/Dist/DistDialect.cpp.inc"
#include "dialects/Dist/DistOpInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Dist/DistOps.cpp.inc"
      >();
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("needs one size per axis, got ") << getAxisSizes().size() << " for " << getAxisNames().size();
  llvm::StringSet<> seen;
  int64_t ranks = 1;
  // The ranks that later axes need count too, so that no second message follows the first one's advice.
  auto leftBehind = [&](size_t axis) {
    int64_t left = kMaxRanks / ranks;
    for (int64_t size : getAxisSizes().drop_front(axis + 1))
      left /= std::clamp<int64_t>(size, 1, kMaxRanks + 1);
    return left;
  };
  size_t axis = 0;
  for (auto [name, size] : llvm::zip_equal(getAxisNames().getAsRange<StringAttr>(), getAxisSizes())) {
    if (name.empty())
      return emitOpError("axis names must not be empty");
    if (!seen.insert(name).second)
      return emitOpError("axis ") << name << " is named twice; remove one";
    if (size < 1)
      return emitOpError("axis ") << name << " has size " << size << "; the nearest valid one is 1";
    if (size > kMaxRanks / ranks) {
      InFlightDiagnostic diagnostic = emitOpError("axis ") << name << " has size " << size;
      if (int64_t nearest = leftBehind(axis); nearest > 0)
        return diagnostic << "; the nearest valid one is " << nearest << ", for " << kMaxRanks << " ranks in all";
      return diagnostic << ", and those behind it have more than the " << kMaxRanks
                        << " ranks of a mesh without it; give all of them fewer";
    }
    ranks *= size;
    ++axis;
  }
  return success();
}

int64_t MeshOp::getRankCount() {
  int64_t count = 1;
  for (int64_t size : getAxisSizes())
    count *= size;
  return count;
}

int64_t MeshOp::getSize(ArrayRef<StringAttr> axes) {
  int64_t size = 1;
  for (auto [name, extent] : llvm::zip_equal(getAxisNames().getAsRange<StringAttr>(), getAxisSizes()))
    if (llvm::is_contained(axes, name))
      size *= extent;
  return size;
}

SmallVector<StringAttr> MeshOp::getParts(StringRef axis) {
  SmallVector<StringAttr> parts;
  for (auto name : getAxisNames().getAsRange<StringAttr>())
    if (name.getValue() == axis || wholeAxis(name) == axis)
      parts.push_back(name);
  return parts;
}

std::optional<unsigned> MeshOp::getAxis(StringRef name) {
  for (auto [index, axis] : llvm::enumerate(getAxisNames().getAsRange<StringAttr>()))
    if (axis.getValue() == name)
      return index;
  return std::nullopt;
}

MeshOp MeshOp::of(Operation *op) { return firstAround<MeshOp>(op); }

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// A module without a mesh is a fragment under test: its axes are not checked.
static LogicalResult checkIsOfMesh(Operation *op, MeshOp mesh, StringAttr axis) {
  if (!mesh || mesh.getAxis(axis))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("names axis ") << axis << ", but the mesh has ";
  llvm::interleaveComma(mesh.getAxisNames().getAsRange<StringAttr>(), diagnostic);
  return diagnostic;
}

/// The ranks of a group; fails with a diagnostic. Without a mesh: 0, which checks no sizes.
static FailureOr<int64_t> groupSize(Operation *op, ArrayAttr axes) {
  if (axes.empty())
    return op->emitOpError("names no axis");
  MeshOp mesh = MeshOp::of(op);
  SmallVector<StringAttr> names;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    if (llvm::is_contained(names, axis))
      return op->emitOpError("names axis ") << axis << " twice";
    if (failed(checkIsOfMesh(op, mesh, axis)))
      return failure();
    names.push_back(axis);
  }
  return mesh ? mesh.getSize(names) : 0;
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// \p type is that of the variable, argument or result; null where there is none.
static LogicalResult checkSharding(Operation *op, Attribute attribute, Type type) {
  auto sharding = dyn_cast<ShardingAttr>(attribute);
  if (!sharding)
    return op->emitOpError("has ") << attribute << " where a #dist.sharding must be";
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor)
    return op->emitOpError("has a sharding for a value that is no ranked tensor");
  if (sharding.getRank() != tensor.getRank())
    return op->emitOpError("has a sharding of ") << sharding.getRank() << " dimensions for " << tensor;
  return success();
}

/// Fails unless \p attribute is a shape of positive sizes; returns its elements.
static FailureOr<int64_t> countElements(Operation *op, NamedAttribute attribute) {
  auto shape = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  int64_t elements = 1;
  bool valid = shape && llvm::all_of(shape.asArrayRef(), [&](int64_t size) {
                 return size > 0 && !llvm::MulOverflow(elements, size, elements);
               });
  if (valid)
    return elements;
  return op->emitOpError("needs a shape of positive sizes in ")
         << attribute.getName() << ", not " << attribute.getValue();
}

/// The type of the shard that `dist.sharding` alone gives to a rank; a flat shard divides it further. Null where the
/// variable has no tensor type.
static RankedTensorType pieceOf(Operation *variable) {
  auto type = variable->getAttrOfType<TypeAttr>("type");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  auto flat = variable->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kFlatShapeAttr);
  return tensor && flat ? tensor.clone(flat.asArrayRef()) : tensor;
}

/// A flat shard has one dimension, with an equal share of the elements of `dist.flat_shape`, rounded up.
static LogicalResult checkFlat(Operation *op, NamedAttribute attribute) {
  FailureOr<int64_t> elements = countElements(op, attribute);
  if (failed(elements))
    return failure();
  auto axes = op->getAttrOfType<ArrayAttr>(DistDialect::kFlatAxesAttr);
  if (!axes || axes.empty() || !llvm::all_of(axes, llvm::IsaPred<StringAttr>))
    return op->emitOpError("is flat, but names no axes in ") << DistDialect::kFlatAxesAttr;
  FailureOr<int64_t> parts = groupSize(op, axes);
  if (failed(parts))
    return failure();
  auto type = op->getAttrOfType<TypeAttr>("type");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (tensor && tensor.getRank() == 1 && (*parts == 0 || tensor.getDimSize(0) == llvm::divideCeil(*elements, *parts)))
    return success();
  return op->emitOpError("has type ") << Type(tensor) << ", but a shard of " << *elements << " elements over " << *parts
                                      << " ranks has one dimension of "
                                      << llvm::divideCeil(*elements, std::max<int64_t>(*parts, 1));
}

/// A view has the dimensions of the variable and the elements of the global shape.
static LogicalResult checkView(Operation *op, NamedAttribute attribute) {
  FailureOr<int64_t> elements = countElements(op, attribute);
  if (failed(elements))
    return failure();
  RankedTensorType tensor = pieceOf(op);
  auto view = cast<DenseI64ArrayAttr>(attribute.getValue());
  if (!tensor || view.size() != tensor.getRank())
    return op->emitOpError("attribute 'dist.view' has ")
           << view.size() << " dimensions, but its variable is of type " << Type(tensor);
  Attribute global = op->getAttr(DistDialect::kGlobalShapeAttr);
  if (!global)
    return success();
  FailureOr<int64_t> whole = countElements(op, {DistDialect::kGlobalShapeAttr, global});
  if (succeeded(whole) && *whole != *elements)
    return op->emitOpError("attribute 'dist.view' describes ")
           << *elements << " elements, but 'dist.global_shape' has " << *whole;
  return whole;
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kGlobalShapeAttr)
    return countElements(op, attribute);
  if (attribute.getName() == kViewAttr)
    return checkView(op, attribute);
  if (attribute.getName() == kFlatShapeAttr)
    return checkFlat(op, attribute);
  if (attribute.getName() == kShardingAttr)
    return checkSharding(op, attribute.getValue(), pieceOf(op));
  if (attribute.getName() != kShardingsAttr)
    return success();
  auto shardings = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!shardings || shardings.size() != op->getNumResults())
    return op->emitOpError("needs one sharding per result in ") << kShardingsAttr;
  for (auto [sharding, result] : llvm::zip_equal(shardings, op->getResults()))
    if (failed(checkSharding(op, sharding, result.getType())))
      return failure();
  return success();
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned argument,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != kShardingAttr)
    return success();
  return checkSharding(op, attribute.getValue(), op->getRegion(region).getArgument(argument).getType());
}

//===----------------------------------------------------------------------===//
// Checks against the mesh
//===----------------------------------------------------------------------===//

/// Fails unless `whole` is `part` with `scale` times the elements along `dim`; a scale of 0 is any.
static LogicalResult checkScaled(Operation *op, RankedTensorType part, RankedTensorType whole, int64_t dim,
                                 int64_t scale) {
  if (part.getElementType() != whole.getElementType() || part.getRank() != whole.getRank())
    return op->emitOpError("must not change rank or element type");
  if (dim < 0 || dim >= part.getRank())
    return op->emitOpError("dimension ") << dim << " is out of range of " << part;
  for (int64_t i = 0; i < part.getRank(); ++i) {
    int64_t expected = part.getDimSize(i) * (i == dim ? scale : 1);
    if (i == dim && scale == 0 ? whole.getDimSize(i) % part.getDimSize(i) != 0 : whole.getDimSize(i) != expected)
      return op->emitOpError("between ") << part << " and " << whole << ": dimension " << i << " of the whole must be "
                                         << (i == dim ? "the group's size times that" : "that") << " of the shard";
  }
  return success();
}

LogicalResult ReshardOp::verify() {
  if (getSharding().getRank() != getInput().getType().getRank())
    return emitOpError("has a sharding of ") << getSharding().getRank() << " dimensions for " << getInput().getType();
  MeshOp mesh = MeshOp::of(*this);
  for (DimAttr dim : getSharding().getDims())
    for (StringAttr axis : dim.getAxes())
      if (failed(checkIsOfMesh(*this, mesh, axis)))
        return failure();
  for (StringAttr axis : getSharding().getUnreduced())
    if (failed(checkIsOfMesh(*this, mesh, axis)))
      return failure();
  return success();
}

static uint32_t parameterOf(ReduceKind kind) { return static_cast<uint32_t>(kind); }

const collectives::Definition &dist::definitionOf(Operation *op) { return cast<Collective>(op).getForm().definition(); }

CollectiveForm AllReduceOp::getForm() { return {collectives::Kind::kAllReduce, parameterOf(getKind())}; }

CollectiveForm AllGatherOp::getForm() { return {collectives::Kind::kAllGather, 0, 0, static_cast<int64_t>(getDim())}; }

CollectiveForm ReduceScatterOp::getForm() {
  return {collectives::Kind::kReduceScatter, parameterOf(getKind()), static_cast<int64_t>(getDim())};
}

CollectiveForm AllToAllOp::getForm() {
  return {collectives::Kind::kAllToAll, 0, static_cast<int64_t>(getSplitDim()), static_cast<int64_t>(getConcatDim())};
}

CollectiveForm PermuteOp::getForm() {
  auto shift = static_cast<int64_t>(getShift());
  if (MeshOp mesh = MeshOp::of(*this)) {
    int64_t ranks = mesh.getSize(llvm::to_vector(getAxes().getAsRange<StringAttr>()));
    shift = (shift % ranks + ranks) % ranks;
  }
  return {collectives::Kind::kPermute, static_cast<uint32_t>(shift)};
}

CollectiveForm BucketOp::getForm() {
  static_assert(static_cast<int>(CollectiveKind::AllReduce) == static_cast<int>(collectives::Kind::kAllReduce) &&
                static_cast<int>(CollectiveKind::AllGather) == static_cast<int>(collectives::Kind::kAllGather) &&
                static_cast<int>(CollectiveKind::ReduceScatter) == static_cast<int>(collectives::Kind::kReduceScatter));
  return {static_cast<collectives::Kind>(getKind()), parameterOf(getReduction().value_or(ReduceKind::Sum))};
}

LogicalResult AllReduceOp::verify() { return groupSize(*this, getAxes()); }

LogicalResult AllGatherOp::verify() {
  auto size = groupSize(*this, getAxes());
  return failed(size) ? failure() : checkScaled(*this, getInput().getType(), getResult().getType(), getDim(), *size);
}

LogicalResult ReduceScatterOp::verify() {
  auto size = groupSize(*this, getAxes());
  return failed(size) ? failure() : checkScaled(*this, getResult().getType(), getInput().getType(), getDim(), *size);
}

LogicalResult BucketOp::verify() {
  auto size = groupSize(*this, getAxes());
  if (failed(size))
    return failure();
  if (getInputs().empty() || getInputs().size() != getOutputs().size())
    return emitOpError("needs operands and one result for each, not ")
           << getOutputs().size() << " for " << getInputs().size();
  if ((getKind() != CollectiveKind::AllGather) != getReduction().has_value())
    return emitOpError(getReduction() ? "gathers, and has a reduction" : "reduces, and does not say how");
  Type element = cast<RankedTensorType>(getInputs().front().getType()).getElementType();
  for (auto [input, output] : llvm::zip_equal(getInputs(), getOutputs())) {
    auto before = cast<RankedTensorType>(input.getType()), after = cast<RankedTensorType>(output.getType());
    if (before.getElementType() != element)
      return emitOpError("has elements of ") << element << " and of " << before.getElementType();
    bool fits = getKind() == CollectiveKind::AllReduce   ? before == after
                : getKind() == CollectiveKind::AllGather ? succeeded(checkScaled(*this, before, after, 0, *size))
                                                         : succeeded(checkScaled(*this, after, before, 0, *size));
    if (!fits)
      return getKind() == CollectiveKind::AllReduce ? emitOpError("must not change ") << before : failure();
  }
  return success();
}

LogicalResult SliceOp::verify() {
  auto size = groupSize(*this, getAxes());
  return failed(size) ? failure() : checkScaled(*this, getResult().getType(), getInput().getType(), getDim(), *size);
}

LogicalResult AllToAllOp::verify() {
  auto size = groupSize(*this, getAxes());
  if (failed(size))
    return failure();
  RankedTensorType input = getInput().getType();
  int64_t split = getSplitDim(), concat = getConcatDim();
  if (split < 0 || split >= input.getRank() || (*size > 0 && input.getDimSize(split) % *size != 0))
    return emitOpError("cannot split dimension ") << split << " of " << input << " among " << *size << " ranks";
  SmallVector<int64_t> shape = llvm::to_vector(input.getShape());
  if (*size > 0)
    shape[split] /= *size;
  return checkScaled(*this, RankedTensorType::get(shape, input.getElementType()), getResult().getType(), concat, *size);
}

LogicalResult PermuteOp::verify() {
  auto size = groupSize(*this, getAxes());
  if (failed(size))
    return failure();
  auto shift = static_cast<int64_t>(getShift());
  if (shift == 0 || (*size > 0 && shift % *size == 0))
    return emitOpError("shifts by ") << shift << ", with which every rank of a group" << (*size > 0 ? " of " : "")
                                     << (*size > 0 ? std::to_string(*size) : "") << " keeps its own tensor";
  return success();
}

LogicalResult CoordinateOp::verify() { return groupSize(*this, getAxes()); }
