//===- PlanOps.cpp - Generated operation and type code, in a translation unit of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::plan;

static collectives::Parameter parameterOf(CollectiveKindAttr kind) {
  return collectives::Of(static_cast<collectives::Kind>(kind.getValue())).parameter;
}

/// Parses `by max`, or `by` and a number. Without it, the parameter is 0.
static ParseResult parseParameter(OpAsmParser &parser, CollectiveKindAttr kind, IntegerAttr &parameter) {
  collectives::Parameter meaning = parameterOf(kind);
  int64_t value = 0;
  if (meaning != collectives::Parameter::kNone && succeeded(parser.parseOptionalKeyword("by"))) {
    StringRef word;
    if (OptionalParseResult number = parser.parseOptionalInteger(value); number.has_value()) {
      if (failed(*number))
        return failure();
    } else if (succeeded(parser.parseOptionalKeyword(&word)) && symbolizeReduction(word)) {
      value = static_cast<int64_t>(*symbolizeReduction(word));
    } else {
      return parser.emitError(parser.getCurrentLocation(), "expected a ") << collectives::WordsOf(meaning).name;
    }
  }
  parameter = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printParameter(OpAsmPrinter &printer, Operation *, CollectiveKindAttr kind, IntegerAttr parameter) {
  if (parameter && parameter.getInt() != 0)
    printer << " by " << DescribeParameter(parameterOf(kind), static_cast<uint64_t>(parameter.getInt()));
}

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanInterfaces.cpp.inc"
#include "dialects/Plan/PlanTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

void PlanDialect::registerOps() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}
