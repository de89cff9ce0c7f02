//===- PlanTypes.cpp - Types and locations of the plan file and of MLIR
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/PlanTypes.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;

std::optional<fbs::DType> bowline::toDType(Type type) {
  std::optional<ElementType> element = elementTypeOf(type);
  if (!element || *element > kLastInPlans)
    return std::nullopt;
  return static_cast<fbs::DType>(*element);
}

Type bowline::fromDType(MLIRContext *context, fbs::DType dtype) { return toMlirType(context, ElementTypeOf(dtype)); }

std::string bowline::describeLocation(Location location) {
  return llvm::TypeSwitch<LocationAttr, std::string>(location)
      .Case([](NameLoc named) {
        std::string child = describeLocation(named.getChildLoc());
        std::string name = named.getName().str();
        return child.empty() ? name : name + " of " + child;
      })
      .Case([](FileLineColLoc file) {
        return file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
      })
      .Case([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (std::string text = describeLocation(part); !text.empty())
            return text;
        return std::string();
      })
      .Case([](CallSiteLoc call) { return describeLocation(call.getCallee()); })
      .Default([](LocationAttr) { return std::string(); });
}
