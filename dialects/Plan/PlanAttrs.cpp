//===- PlanAttrs.cpp - Attributes of the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanAttrs.h"
#include "dialects/Plan/PlanDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline::plan;

#include "dialects/Plan/PlanEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef, StringRef, StringRef,
                                 uint32_t threads) {
  if (threads == 0)
    return emitError() << "a target has at least one thread";
  return success();
}

LogicalResult ArgumentAttr::verify(function_ref<InFlightDiagnostic()> emitError, Access, TypeAttr typeAttr) {
  auto type = dyn_cast<RankedTensorType>(typeAttr.getValue());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitError() << "a kernel argument must be a ranked tensor of static shape with integer or floating-point "
                          "elements, got "
                       << typeAttr;
  return success();
}

RankedTensorType ArgumentAttr::getType() const { return cast<RankedTensorType>(getTypeAttr().getValue()); }

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
}
