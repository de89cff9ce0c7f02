//===- PlanEnumsTest.cpp - Enumerations that the IR and the plan file both have
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanAttrs.h"
#include "dialects/Program/ProgramEnums.h"
#include "gtest/gtest.h"
#include "llvm/ADT/StringExtras.h"
#include "runtime/plan/plan_generated.h"

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

}  // namespace
}  // namespace bowline
