//===- RolesTest.cpp - The programs of the ranks, each in a module of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Roles.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Analysis/PrepareProgram.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr StringLiteral
    kCard(R"(attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>})");

/// Small buffers, whose alignment is most of the bytes that they take.
constexpr StringLiteral kProgram(R"(
  %w = plan.buffer "w" parameter : !plan.buffer<tensor<3xf32>>
  %x = plan.buffer "x" input : !plan.buffer<tensor<5xf32>>
  %y = plan.buffer "y" temporary : !plan.buffer<tensor<5xf32>>
  %z = plan.buffer "z" output : !plan.buffer<tensor<5xf32>>
  plan.program @p timeline [0, 0] {
    plan.segment "s" {
      plan.copy %x to %y : !plan.buffer<tensor<5xf32>> to !plan.buffer<tensor<5xf32>>
      plan.copy %y to %z : !plan.buffer<tensor<5xf32>> to !plan.buffer<tensor<5xf32>>
    }
  }
)");

OwningOpRef<ModuleOp> parse(const std::string &text) {
  context().loadDialect<dist::DistDialect, plan::PlanDialect>();
  return parseSourceString<ModuleOp>(text, ParserConfig(&context()));
}

std::string flat(StringRef attributes) { return ("module " + attributes + " {" + kProgram + "}").str(); }

/// A pipeline of two stages, for the target of the module around them.
OwningOpRef<ModuleOp> pipeline(StringRef attributes) {
  return parse(("module " + attributes + R"( {
    dist.mesh @mesh ["pp"] [2]
    plan.attachment "config.json" "{}"
    module @stage0 {)" +
                kProgram + "}\nmodule @stage1 {" + kProgram + "}\n}")
                   .str());
}

} // namespace

TEST(Roles, ACopyIsCompiledForTheTargetAroundIt) {
  OwningOpRef<ModuleOp> alone = parse(flat(kCard)), module = pipeline(kCard), elsewhere = pipeline("");
  ASSERT_TRUE(alone && module && elsewhere);
  int64_t bytes = arenaBytes(*alone);
  // Cards place buffers further apart than processors.
  ASSERT_GT(bytes, arenaBytes(*parse(flat(""))));
  EXPECT_LT(arenaBytes(*elsewhere->getOps<ModuleOp>().begin()), bytes);
  for (auto role : module->getOps<ModuleOp>()) {
    EXPECT_EQ(arenaBytes(role), bytes);
    RoleCopy copy(role);
    EXPECT_EQ(arenaBytes(*copy), bytes);
    EXPECT_EQ((*copy).getSymName(), role.getSymName());
    EXPECT_EQ((*ModuleTarget::of(*copy))->name, "cuda");
    EXPECT_EQ(dist::MeshOp::of(*copy).getRankCount(), 2);
    EXPECT_TRUE(llvm::hasSingleElement((*copy)->getParentOfType<ModuleOp>().getOps<ModuleOp>()));
  }
  EXPECT_EQ(arenaBytes(*RoleCopy(*alone)), bytes);
}

TEST(Roles, WhatIsTriedOnACopyStaysThere) {
  OwningOpRef<ModuleOp> module = pipeline(kCard);
  auto role = *module->getOps<ModuleOp>().begin();
  RoleCopy copy(role);
  for (auto buffer : (*copy).getOps<plan::BufferOp>())
    buffer.setOffset(4096);
  for (auto buffer : role.getOps<plan::BufferOp>())
    EXPECT_FALSE(buffer.getOffset());
}

TEST(Roles, OneRoleIsPreparedAsAModuleThatStandsAlone) {
  auto isPossible = [](ModuleOp module) {
    SymbolTable symbols(module);
    return PrepareProgram(module, symbols).isPossible();
  };
  OwningOpRef<ModuleOp> module = parse(flat(""));
  EXPECT_TRUE(isPossible(*module));
  nestProgram(*module);
  auto role = *module->getOps<ModuleOp>().begin();
  EXPECT_TRUE(isOnlyRole(role));
  EXPECT_TRUE(isPossible(role));
  EXPECT_TRUE(isPossible(*RoleCopy(role)));
  // Entries of a stage are those of all stages, also where it is looked at without the others.
  OwningOpRef<ModuleOp> stages = pipeline("");
  auto stage = *stages->getOps<ModuleOp>().begin();
  EXPECT_FALSE(isOnlyRole(stage));
  EXPECT_FALSE(isPossible(stage));
  EXPECT_FALSE(isPossible(*RoleCopy(stage)));
}

TEST(Roles, TheProgramAloneMoves) {
  OwningOpRef<ModuleOp> module = parse(R"(module @model attributes {plan.seed = 7 : i64} {
    %w = plan.buffer "w" parameter : !plan.buffer<tensor<3xf32>>
    dist.mesh @mesh ["dp"] [2]
    plan.attachment "config.json" "{}"
    plan.communicator @dp over ["dp"]
  })");
  ASSERT_TRUE(module);
  for (int time = 0; time < 2; ++time) {
    nestProgram(*module);
    EXPECT_TRUE(succeeded(verifyRoles(*module)));
    EXPECT_TRUE(module->getOperation()->hasAttr(plan::PlanDialect::kSeedAttr));
    auto outside = llvm::to_vector(llvm::make_pointer_range(*module->getBody()));
    ASSERT_EQ(outside.size(), 3u);
    EXPECT_TRUE(isa<dist::MeshOp>(outside[0]) && isa<plan::AttachmentOp>(outside[1]));
    auto inside = llvm::to_vector(llvm::make_pointer_range(*cast<ModuleOp>(outside[2]).getBody()));
    ASSERT_EQ(inside.size(), 2u);
    EXPECT_TRUE(isa<plan::BufferOp>(inside[0]) && isa<plan::CommunicatorOp>(inside[1]));
  }
}
