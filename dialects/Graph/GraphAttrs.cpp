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

#include <array>
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace bowline::graph;

ParseResult bowline::graph::parseReal(AsmParser &parser, FloatAttr &value) {
  return parser.parseAttribute(value, Float64Type::get(parser.getContext()));
}

void bowline::graph::printReal(AsmPrinter &printer, FloatAttr attr) {
  double value = attr.getValueAsDouble();
  if (!std::isfinite(value)) {
    printer.printAttributeWithoutType(attr);
    return;
  }
  std::array<char, 32> buffer;
  char *end = std::to_chars(buffer.begin(), buffer.end(), value).ptr;
  // A literal needs a point: 1e-05 is written 1.0e-05.
  StringRef text(buffer.data(), end - buffer.data());
  auto [mantissa, exponent] = text.split('e');
  printer << mantissa;
  if (!mantissa.contains('.'))
    printer << ".0";
  if (!exponent.empty())
    printer << 'e' << exponent;
}

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
