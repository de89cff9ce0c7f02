//===- PlanTypes.cpp - Types and locations of the plan file and of MLIR
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/PlanTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;

std::optional<fbs::DType> bowline::toDType(Type type) {
  if (type.isF32())
    return fbs::DType::F32;
  if (type.isF64())
    return fbs::DType::F64;
  if (type.isBF16())
    return fbs::DType::BF16;
  if (type.isF16())
    return fbs::DType::F16;
  if (type.isSignlessInteger(64))
    return fbs::DType::I64;
  if (type.isSignlessInteger(32))
    return fbs::DType::I32;
  if (type.isUnsignedInteger(16))
    return fbs::DType::U16;
  if (type.isSignlessInteger(8))
    return fbs::DType::I8;
  if (type.isUnsignedInteger(8))
    return fbs::DType::U8;
  if (type.isSignlessInteger(1))
    return fbs::DType::Bool;
  return std::nullopt;
}

Type bowline::fromDType(MLIRContext *context, fbs::DType dtype) {
  auto integer = [&](unsigned width, IntegerType::SignednessSemantics signedness = IntegerType::Signless) -> Type {
    return IntegerType::get(context, width, signedness);
  };
  switch (dtype) {
  case fbs::DType::F32:
    return Float32Type::get(context);
  case fbs::DType::F64:
    return Float64Type::get(context);
  case fbs::DType::BF16:
    return BFloat16Type::get(context);
  case fbs::DType::F16:
    return Float16Type::get(context);
  case fbs::DType::I64:
    return integer(64);
  case fbs::DType::I32:
    return integer(32);
  case fbs::DType::U16:
    return integer(16, IntegerType::Unsigned);
  case fbs::DType::I8:
    return integer(8);
  case fbs::DType::U8:
    return integer(8, IntegerType::Unsigned);
  case fbs::DType::Bool:
    return integer(1);
  }
  llvm_unreachable("the semantic verifier refused other values");
}

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
