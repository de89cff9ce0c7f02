//===- GraphAttrs.cpp - Attributes of the graph dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphAttrs.h"
#include "dialects/Graph/GraphDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace bowline::graph;

/// `custom<Real>`: a number without its type, which is always f64.
static ParseResult parseReal(AsmParser &parser, FloatAttr &value) {
  return parser.parseAttribute(value, Float64Type::get(parser.getContext()));
}
static void printReal(AsmPrinter &printer, FloatAttr value) { printer.printAttributeWithoutType(value); }

#include "dialects/Graph/GraphEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.cpp.inc"

LogicalResult NormalAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr attr) {
  double stddev = attr.getValueAsDouble();
  if (!std::isfinite(stddev) || stddev < 0)
    return emitError() << "the standard deviation must be finite and not negative, got " << stddev;
  return success();
}

LogicalResult FillAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr attr) {
  if (!std::isfinite(attr.getValueAsDouble()))
    return emitError() << "the fill value must be finite";
  return success();
}

void GraphDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Graph/GraphAttrs.cpp.inc"
      >();
}
