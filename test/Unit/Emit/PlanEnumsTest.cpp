//===- PlanEnumsTest.cpp - Enumerations that the IR and the plan file both have
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/PlanTypes.h"
#include "dialects/Plan/PlanAttrs.h"
#include "dialects/Program/ElementTypes.h"
#include "dialects/Program/ProgramEnums.h"
#include "gtest/gtest.h"
#include "llvm/ADT/StringExtras.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

TEST(PlanEnums, FlagsOfStatesAreThoseOfTheFile) {
  for (fbs::StateFlag flag : fbs::EnumValuesStateFlag()) {
    std::string name = llvm::convertToSnakeFromCamelCase(fbs::EnumNameStateFlag(flag));
    EXPECT_EQ(stringifyStateFlags(static_cast<StateFlags>(flag)), name);
  }
}

TEST(PlanEnums, MemorySpacesAreThoseOfTheFile) {
  for (fbs::MemorySpace space : fbs::EnumValuesMemorySpace()) {
    std::string name = llvm::convertToSnakeFromCamelCase(fbs::EnumNameMemorySpace(space));
    EXPECT_EQ(plan::stringifyMemorySpace(static_cast<plan::MemorySpace>(space)), name);
  }
}

TEST(PlanEnums, KindsOfEntriesAreThoseOfTheFile) {
  for (fbs::EntryKind kind : fbs::EnumValuesEntryKind()) {
    std::string name = llvm::convertToSnakeFromCamelCase(fbs::EnumNameEntryKind(kind));
    EXPECT_EQ(stringifyEntryKind(static_cast<EntryKind>(kind)), name);
  }
}

TEST(PlanEnums, TypesOfTheFileAreTheFirstRowsOfTheTable) {
  for (fbs::DType dtype : fbs::EnumValuesDType()) {
    ElementType type = ElementTypeOf(dtype);
    EXPECT_EQ(NameOf(type), llvm::StringRef(fbs::EnumNameDType(dtype)).lower());
    EXPECT_EQ(ElementSize(dtype), SizeOf(type));
  }
  EXPECT_EQ(fbs::EnumValuesDType()[static_cast<size_t>(kLastInPlans)], fbs::DType::MAX);
  EXPECT_FALSE(IsElementType(ElementTypeOf(static_cast<fbs::DType>(static_cast<int>(fbs::DType::MAX) + 1))));
  EXPECT_EQ(ElementSize(static_cast<fbs::DType>(255)), 0u);
}

TEST(PlanEnums, TypesAreThoseOfTheIrByName) {
  mlir::MLIRContext context;
  for (const ElementTypeInfo& info : kElementTypes) {
    mlir::Type type = toMlirType(&context, info.type);
    EXPECT_EQ(!type, info.mlir.empty()) << info.name;
    if (type) EXPECT_EQ(elementTypeOf(type), info.type) << info.name;
    if (type && info.block_elements == 1 && info.kind != ElementKind::kBool)
      EXPECT_EQ(type.getIntOrFloatBitWidth(), 8 * SizeOf(info.type)) << info.name;
    // Types that plans may contain can be translated.
    if (info.type <= kLastInPlans) {
      EXPECT_EQ(fromDType(&context, static_cast<fbs::DType>(info.type)), type);
      EXPECT_EQ(toDType(type), static_cast<fbs::DType>(info.type));
    }
  }
  // No type becomes another one.
  for (mlir::Type other : {mlir::Type(mlir::IntegerType::get(&context, 24)), mlir::Type(mlir::IndexType::get(&context)),
                           mlir::Type(mlir::Float128Type::get(&context)), mlir::Type(mlir::NoneType::get(&context))}) {
    EXPECT_EQ(elementTypeOf(other), std::nullopt);
    EXPECT_EQ(toDType(other), std::nullopt);
  }
}

}  // namespace
}  // namespace bowline
