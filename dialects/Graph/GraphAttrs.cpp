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
#include "llvm/Support/MathExtras.h"

#include <algorithm>
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

//===----------------------------------------------------------------------===//
// Roles of parameters
//===----------------------------------------------------------------------===//

/// Parses the words between the brackets of `#graph.role<...>` and `role(...)`.
ParseResult bowline::graph::parseRole(AsmParser &parser, RoleAttr &role) {
  SMLoc location = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<RoleKind> kind = symbolizeRoleKind(word);
  if (!kind)
    return parser.emitError(location) << "there is no role '" << word
                                      << "'; use none, column, row, keys, fused, vocabulary or expert";
  SmallVector<int64_t> parts;
  int64_t size = 0, sharedBy = 1;
  if (*kind == RoleKind::Fused && parser.parseOptionalInteger(size).has_value()) {
    parts.push_back(size);
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseInteger(parts.emplace_back()))
        return failure();
  }
  if (*kind == RoleKind::Keys && succeeded(parser.parseOptionalKeyword("shared")) && parser.parseInteger(sharedBy))
    return failure();
  role = RoleAttr::getChecked([&] { return parser.emitError(location); }, parser.getContext(), *kind, parts, sharedBy);
  return success(role != nullptr);
}

void bowline::graph::printRole(AsmPrinter &printer, RoleAttr role) {
  printer << stringifyRoleKind(role.getKind());
  if (role.getKind() == RoleKind::Fused) {
    printer << ' ';
    llvm::interleaveComma(role.getParts(), printer);
  }
  if (role.getSharedBy() > 1)
    printer << " shared " << role.getSharedBy();
}

Attribute RoleAttr::parse(AsmParser &parser, Type) {
  RoleAttr role;
  if (parser.parseLess() || parseRole(parser, role) || parser.parseGreater())
    return {};
  return role;
}

void RoleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printRole(printer, *this);
  printer << '>';
}

LogicalResult RoleAttr::verify(function_ref<InFlightDiagnostic()> emitError, RoleKind kind, ArrayRef<int64_t> parts,
                               int64_t sharedBy) {
  if (kind == RoleKind::Fused && parts.size() < 2)
    return emitError() << "role fused needs the sizes of at least two parts, as in fused 64, 64, 64";
  if (kind != RoleKind::Fused && !parts.empty())
    return emitError() << "role " << stringifyRoleKind(kind) << " has no parts; only fused has";
  for (int64_t size : parts)
    if (size < 1)
      return emitError() << "role fused has a part of size " << size << "; the nearest valid one is 1";
  if (kind != RoleKind::Keys && sharedBy != 1)
    return emitError() << "role " << stringifyRoleKind(kind) << " has no heads to share; only keys has";
  if (sharedBy < 1)
    return emitError() << "role keys has heads shared by " << sharedBy
                       << " of the queries; the nearest valid number is 1";
  return success();
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

void GraphDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Graph/GraphAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Scaling of rotary positions
//===----------------------------------------------------------------------===//

LogicalResult RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr factor, int64_t original,
                                      FloatAttr low, FloatAttr high) {
  if (!std::isfinite(factor.getValueAsDouble()) || factor.getValueAsDouble() < 1)
    return emitError() << "the factor must be finite and at least 1, got " << factor.getValueAsDouble();
  if (original == 0 && !low && !high)
    return success();
  if (original < 1)
    return emitError() << "the original number of positions must be at least 1, got " << original;
  if (!low || !high || !(low.getValueAsDouble() > 0) || !(low.getValueAsDouble() < high.getValueAsDouble()) ||
      !std::isfinite(high.getValueAsDouble()))
    return emitError() << "low and high must be finite, with 0 < low < high";
  return success();
}

double RopeScalingAttr::scale(double frequency) const {
  if (!isByTurns())
    return frequency / getFactor();
  double turns = static_cast<double>(getOriginal()) * frequency / (2 * llvm::numbers::pi);
  double kept = std::clamp((turns - getLow()) / (getHigh() - getLow()), 0.0, 1.0);
  return frequency * (kept + (1 - kept) / getFactor());
}

Attribute RopeScalingAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  FloatAttr factor, low, high;
  int64_t original = 0;
  if (parser.parseLess() || parser.parseKeyword("factor") || parseReal(parser, factor))
    return {};
  if (succeeded(parser.parseOptionalKeyword("original")) &&
      (parser.parseInteger(original) || parser.parseKeyword("low") || parseReal(parser, low) ||
       parser.parseKeyword("high") || parseReal(parser, high)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), factor, original, low, high);
}

void RopeScalingAttr::print(AsmPrinter &printer) const {
  printer << "<factor ";
  printReal(printer, getFactorAttr());
  if (isByTurns()) {
    printer << " original " << getOriginal() << " low ";
    printReal(printer, getLowAttr());
    printer << " high ";
    printReal(printer, getHighAttr());
  }
  printer << '>';
}
