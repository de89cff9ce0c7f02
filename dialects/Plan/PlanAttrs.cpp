//===- PlanAttrs.cpp - Attributes of the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanAttrs.h"
#include "dialects/Plan/PlanDialect.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::plan;

#include "dialects/Plan/PlanEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef, StringRef, StringRef,
                                 uint32_t threads) {
  // The parser reads -1 as the largest number.
  if (threads < 1 || threads > 4096)
    return emitError() << "a target has 1 to 4096 threads, got "
                       << (threads > std::numeric_limits<int32_t>::max()
                               ? static_cast<int64_t>(static_cast<int32_t>(threads))
                               : static_cast<int64_t>(threads));
  return success();
}

LogicalResult SequencesAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef, StringRef, StringRef,
                                    int64_t tokens, int64_t blockTokens, int64_t blockCount) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (tokens < 1 || tokens > kMost || blockTokens < 1 || blockTokens > kMost || blockCount < 2 || blockCount > kMost)
    return emitError() << "a step has at least one token, as a block has, and there are at least two blocks; got "
                       << tokens << ", " << blockTokens << " and " << blockCount;
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, DenseI64ArrayAttr globalShape,
                                 DenseI64ArrayAttr view, ArrayAttr dimShardings, ArrayAttr flatAxes) {
  auto areNames = [](ArrayAttr names) {
    return llvm::all_of(names, [](Attribute name) { return isa<StringAttr>(name); });
  };
  if (!areNames(flatAxes) || !llvm::all_of(dimShardings, [&](Attribute axes) {
        auto names = dyn_cast<ArrayAttr>(axes);
        return names && areNames(names);
      }))
    return emitError() << "a layout's shardings and flat axes are lists of names of axes";
  size_t rank = view.empty() ? globalShape.size() : view.size();
  if (!dimShardings.empty() && dimShardings.size() != rank)
    return emitError() << "a layout has one sharding per dimension or none; got " << dimShardings.size() << " for "
                       << rank << " dimensions";
  return success();
}

LogicalResult ArgumentAttr::verify(function_ref<InFlightDiagnostic()> emitError, Access, TypeAttr typeAttr,
                                   int64_t alignment) {
  auto type = dyn_cast<RankedTensorType>(typeAttr.getValue());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitError() << "a kernel argument must be a ranked tensor of static shape with integer or floating-point "
                          "elements, got "
                       << typeAttr;
  if (alignment != 0 && !isAlignment(alignment))
    return emitError() << "alignment " << alignment << " is no power of two up to " << kMaxAlignment;
  return bowline::verifyPlanElements(emitError, type.getElementType());
}

bool bowline::plan::isAlignment(int64_t bytes) {
  return bytes > 0 && bytes <= kMaxAlignment && llvm::isPowerOf2_64(static_cast<uint64_t>(bytes));
}

RankedTensorType ArgumentAttr::getType() const { return cast<RankedTensorType>(getTypeAttr().getValue()); }

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
}
