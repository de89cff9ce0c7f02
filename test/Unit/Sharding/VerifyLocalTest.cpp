//===- VerifyLocalTest.cpp - Programs of several ranks that their phases refuse
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/VerifyPhase.h"
#include "compiler/Support/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr StringLiteral kEntry = "graph.entry @run [@f] repeat [1]\n";
constexpr StringLiteral kMesh = "dist.mesh @mesh [\"tp\"] [2]\n";

/// The first error of a phase's verifier on `text`; empty for none.
std::string errorIn(Phase phase, const std::string &text) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      error = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "does not parse: " + error;
  PassManager passes(&context);
  passes.addPass(createVerifyPhasePass(phase));
  return succeeded(passes.run(*module)) ? "" : error;
}

/// The same of functions on a mesh of two ranks, and from phase `local` on in a role.
std::string errorOf(Phase phase, const std::string &functions, StringRef mesh = kMesh) {
  std::string program = kEntry.str() + functions;
  return errorIn(phase, mesh.str() + (phase < Phase::Local ? program : "module {\n" + program + "}\n"));
}

std::string function(const std::string &body, const std::string &argument = "dist.sharding = #dist.sharding<[{}]>") {
  return "graph.func @f(%x: tensor<4xf32> {" + argument + "}) {\n" + body + "\ngraph.return\n}\n";
}

const std::string kLocalArgument = "dist.sharding = #dist.sharding<[{}]>, dist.global_shape = array<i64: 4>";

} // namespace

TEST(VerifyLocal, EveryValueHasASharding) {
  EXPECT_THAT(
      errorOf(Phase::Shard, function(R"(%0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[{}]>]} : tensor<4xf32>
    %1 = dist.reshard %0 to <[{"tp"}]> : tensor<4xf32>)")),
      IsEmpty());
  EXPECT_THAT(errorOf(Phase::Shard, function("%0 = arith.addf %x, %x : tensor<4xf32>")), HasSubstr("has no sharding"));
  EXPECT_THAT(errorOf(Phase::Shard, function("", "")), HasSubstr("argument 'arg0' has no sharding"));
  EXPECT_THAT(
      errorOf(Phase::Shard, "graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key(\"w\")\n" + function("")),
      HasSubstr("has no sharding after phase 'shard'"));
}

TEST(VerifyLocal, OneRankNeedsNone) {
  EXPECT_THAT(
      errorOf(Phase::Shard, function("%0 = arith.addf %x, %x : tensor<4xf32>", ""), "dist.mesh @m [\"tp\"] [1]\n"),
      IsEmpty());
  EXPECT_THAT(
      errorOf(Phase::Local, function("%0 = arith.addf %x, %x : tensor<4xf32>", ""), "dist.mesh @m [\"tp\"] [1]\n"),
      IsEmpty());
}

TEST(VerifyLocal, CollectivesHaveTheFormOfACommunicator) {
  auto local = [](const std::string &body) { return errorOf(Phase::Local, function(body, kLocalArgument)); };
  EXPECT_THAT(local(R"(%0 = dist.all_gather %x dim 0 over ["tp"] : tensor<4xf32> -> tensor<8xf32>
    %1 = dist.reduce_scatter sum %x dim 0 over ["tp"] : tensor<4xf32> -> tensor<2xf32>
    %2 = dist.all_to_all %x split 0 concat 0 over ["tp"] : tensor<4xf32> -> tensor<4xf32>
    %3 = dist.all_reduce max %x over ["tp"] : tensor<4xf32>
    %4 = dist.coordinate over ["tp"] : tensor<i32>)"),
              IsEmpty());
  EXPECT_THAT(local(R"(%0 = dist.slice %x dim 0 over ["tp"] : tensor<4xf32> -> tensor<2xf32>)"),
              HasSubstr("run lower-collectives"));
  EXPECT_THAT(local(R"(%0 = graph.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = dist.all_gather %0 dim 1 over ["tp"] : tensor<1x4xf32> -> tensor<1x8xf32>)"),
              HasSubstr("along the first dimension"));
  EXPECT_THAT(local(R"(%0 = dist.reshard %x to <[{"tp"}]> : tensor<4xf32>)"), HasSubstr("run lower-collectives"));
}

TEST(VerifyLocal, ProgramsAreInRoles) {
  std::string program = kEntry.str() + function("", kLocalArgument), mesh = kMesh.str();
  std::string role = "module {\n" + program + "}\n", other = "module @other {\n" + program + "}\n";
  EXPECT_THAT(errorIn(Phase::Local, mesh + role), IsEmpty());
  EXPECT_THAT(errorIn(Phase::Local, mesh + role + "plan.attachment \"a\" \"b\"\n"), IsEmpty());
  EXPECT_THAT(errorIn(Phase::Local, mesh + role + other), HasSubstr("role 0 of 2 has no name"));
  EXPECT_THAT(errorIn(Phase::Local, mesh + program), HasSubstr("'graph.entry' op is in no role: "));
  EXPECT_THAT(errorIn(Phase::Local, mesh + role + program), HasSubstr("'graph.entry' op is in no role: "));
  EXPECT_THAT(errorIn(Phase::Local, mesh), HasSubstr("the module has no role: "));
  EXPECT_THAT(errorIn(Phase::Local, mesh + "module {\n}\n"), HasSubstr("nothing can be run"));
}

TEST(VerifyLocal, GlobalFormsAreGone) {
  EXPECT_THAT(
      errorOf(Phase::Local, function("%0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[{}]>]} : tensor<4xf32>",
                                     kLocalArgument)),
      HasSubstr("run global-to-local"));
  EXPECT_THAT(errorOf(Phase::Local, function("")), HasSubstr("has no 'dist.global_shape'"));
  EXPECT_THAT(
      errorOf(Phase::Local,
              function("%0 = arith.addf %x, %x {dist.global_shape = array<i64: 4>} : tensor<4xf32>", kLocalArgument)),
      HasSubstr("must not have 'dist.global_shape'"));
}
