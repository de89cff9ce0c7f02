//===- ElementTypes.cpp - The table of element types, in MLIR's types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Program/ElementTypes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "types/computed_types.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

std::optional<bowline::ElementType> bowline::elementTypeOf(Type type) {
  if (!type.isIntOrFloat())
    return std::nullopt;
  llvm::SmallString<16> name;
  llvm::raw_svector_ostream(name) << type;
  return ElementTypeFromMlir(name.str());
}

Type bowline::toMlirType(MLIRContext *context, ElementType type) {
  if (!IsElementType(type) || InfoOf(type).mlir.empty())
    return nullptr;
  return parseType(InfoOf(type).mlir, context);
}

bool bowline::isComputedIn(Type type) {
  std::optional<ElementType> element = elementTypeOf(type);
  return element && IsComputedIn(*element);
}

std::string bowline::mlirNamesOf(function_ref<bool(ElementType)> property) {
  std::string names;
  for (const ElementTypeInfo &info : kElementTypes)
    if (property(info.type))
      names.append(names.empty() ? "" : ", ").append(info.mlir);
  return names;
}

LogicalResult bowline::verifyPlanElements(function_ref<InFlightDiagnostic()> emitError, Type type) {
  auto isInPlans = [](ElementType element) { return element <= kLastInPlans; };
  if (std::optional<ElementType> element = elementTypeOf(type); element && isInPlans(*element))
    return success();
  return emitError() << "plans have no elements of type " << type << "; they have " << mlirNamesOf(isInPlans);
}
