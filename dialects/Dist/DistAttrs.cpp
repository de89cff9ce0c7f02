//===- DistAttrs.cpp - Attributes of the dist dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistAttrs.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline::dist;

#include "dialects/Dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.cpp.inc"

void DistDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// DimAttr: `{"dp", "tp", ?}`
//===----------------------------------------------------------------------===//

/// Strings and, where `open` is asked for, a last `?`, in braces.
static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes, bool *open) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
    if (open && *open)
      return parser.emitError(parser.getCurrentLocation(), "expected '}' after '?'");
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      return success();
    }
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

static void printAxes(AsmPrinter &printer, ArrayRef<StringAttr> axes, bool open) {
  printer << '{';
  llvm::interleaveComma(axes, printer);
  if (open)
    printer << (axes.empty() ? "?" : ", ?");
  printer << '}';
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  bool open = false;
  if (parser.parseLess() || parseAxes(parser, axes, &open) || parser.parseGreater())
    return {};
  return parser.getChecked<DimAttr>(parser.getContext(), axes, open);
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, getAxes(), getOpen());
  printer << '>';
}

/// Each axis of `axes` is not empty and not in `seen` yet.
static LogicalResult checkAxes(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> axes,
                               SmallPtrSetImpl<StringAttr> &seen) {
  for (StringAttr axis : axes) {
    if (axis.empty())
      return emitError() << "an axis name must not be empty";
    if (!seen.insert(axis).second)
      return emitError() << "axis " << axis << " is named twice; it can shard one dimension, or be unreduced";
  }
  return success();
}

LogicalResult DimAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> axes, bool) {
  SmallPtrSet<StringAttr, 4> seen;
  return checkAxes(emitError, axes, seen);
}

//===----------------------------------------------------------------------===//
// ShardingAttr: `<[{"dp"}, {}], unreduced = {"tp"}>`
//===----------------------------------------------------------------------===//

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimAttr> dims;
  SmallVector<StringAttr> unreduced;
  auto parseDim = [&]() -> ParseResult {
    SmallVector<StringAttr> axes;
    bool open = false;
    if (parseAxes(parser, axes, &open))
      return failure();
    auto dim = parser.getChecked<DimAttr>(parser.getContext(), axes, open);
    if (!dim)
      return failure();
    dims.push_back(dim);
    return success();
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("unreduced") || parser.parseEqual() || parseAxes(parser, unreduced, nullptr)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(parser.getContext(), dims, unreduced);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](DimAttr dim) { printAxes(printer, dim.getAxes(), dim.getOpen()); });
  printer << ']';
  if (!getUnreduced().empty()) {
    printer << ", unreduced = ";
    printAxes(printer, getUnreduced(), false);
  }
  printer << '>';
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<DimAttr> dims,
                                   ArrayRef<StringAttr> unreduced) {
  SmallPtrSet<StringAttr, 4> seen;
  for (DimAttr dim : dims)
    if (failed(checkAxes(emitError, dim.getAxes(), seen)))
      return failure();
  return checkAxes(emitError, unreduced, seen);
}

ShardingAttr ShardingAttr::replicated(MLIRContext *context, int64_t rank) {
  SmallVector<DimAttr> dims(rank, DimAttr::get(context, {}, false));
  return get(context, dims, {});
}

bool ShardingAttr::isReplicated() const {
  return getUnreduced().empty() && llvm::all_of(getDims(), [](DimAttr dim) { return dim.getAxes().empty(); });
}

ShardingAttr ShardingAttr::closed() const {
  SmallVector<DimAttr> dims;
  for (DimAttr dim : getDims())
    dims.push_back(DimAttr::get(getContext(), dim.getAxes(), false));
  return get(getContext(), dims, getUnreduced());
}

ShardingAttr ShardingAttr::withUnreduced(ArrayRef<StringAttr> axes) const { return get(getContext(), getDims(), axes); }
