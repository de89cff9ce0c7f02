//===- PhasesTest.cpp - Where passes may run
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <set>

#include "compiler/Pipelines/Pipeline.h"
#include "compiler/Pipelines/VerifyPhase.h"
#include "compiler/Support/Registration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Analysis/PhasePass.h"

using namespace mlir;
using namespace bowline;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

class Phases : public testing::Test {
 protected:
  Phases() {
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  /// The first error of `run`; empty where it succeeds.
  std::string errorOf(llvm::function_ref<LogicalResult()> run) {
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic& diagnostic) {
      if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error) error = diagnostic.str();
      return success();
    });
    bool passes = succeeded(run());
    EXPECT_EQ(passes, error.empty());
    return error;
  }

  std::string errorOf(std::unique_ptr<Pass> pass, ModuleOp module) {
    return errorOf([&] {
      PassManager manager(&context);
      manager.addPass(std::move(pass));
      return manager.run(module);
    });
  }

  /// All steps, of every option that adds or replaces some.
  static std::vector<Step> allSteps() {
    std::vector<Step> steps;
    for (bool training : {true, false})
      for (const targets::Target* target : targets::AllTargets()) {
        PipelineOptions options;
        options.training = training;
        options.dtype = "bf16";
        options.target = target;
        options.codegen = defaultCodegen(*target);
        std::vector<Step> some = pipelineSteps(options);
        steps.insert(steps.end(), some.begin(), some.end());
      }
    return steps;
  }

  /// MLIR's own passes run anywhere.
  static bool isOurs(const Step& step) {
    return step.create && !step.name.starts_with("canonicalize-") && !step.name.starts_with("cse-");
  }

  /// The name of the pass of a step, from the message that refuses it in a wrong phase.
  std::string argumentOf(const Step& step) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    setPhase(*module, Phase::Input);
    std::string refused = errorOf(step.create(), *module);
    return refused.substr(1, refused.find('\'', 1) - 1);
  }

  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

constexpr StringLiteral kFunctions = "graph.entry @run [@f] repeat [1]\ngraph.func @f() {\n  graph.return\n}\n";
constexpr StringLiteral kCommands = "plan.program @p timeline [0, 0] {\n  plan.segment \"s\" {\n  }\n}\n";

}  // namespace

TEST_F(Phases, StepsAreInTheOrderOfPhases) {
  std::optional<Phase> last;
  for (const Step& step : allSteps()) {
    if (last && step.phase < *last) EXPECT_EQ(step.name, "insert-entries") << "the first step of the next options";
    last = step.phase;
  }
}

TEST_F(Phases, APassRunsInThePhaseOfItsStepAlone) {
  std::set<std::string> tried;
  for (const Step& step : allSteps()) {
    if (!isOurs(step) || !tried.insert(step.name.str()).second) continue;
    for (const PhaseInfo& info : allPhases()) {
      if (info.phase == step.phase || info.phase == phaseBefore(step.phase)) continue;
      // The module's content does not matter: passes refuse a module that says a wrong phase without looking at it.
      OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
      setPhase(*module, info.phase);
      EXPECT_THAT(errorOf(step.create(), *module),
                  AllOf(HasSubstr("' is a pass of phase '" + nameOf(step.phase).str() + "'"),
                        HasSubstr("the module is at the end of '" + info.name.str() + "'")));
    }
  }
  EXPECT_GT(tried.size(), 25u);
}

TEST_F(Phases, AModuleThatSaysNothingIsJudgedByWhatItHolds) {
  for (const Step& step : allSteps()) {
    if (!isOurs(step)) continue;
    OwningOpRef<ModuleOp> module = parse(step.phase <= Phase::Schedule ? kCommands : kFunctions);
    ASSERT_TRUE(module);
    EXPECT_THAT(errorOf(step.create(), *module),
                HasSubstr(step.phase <= Phase::Schedule ? "run it on functions" : "run schedule-commands first"))
        << step.name.str();
  }
}

TEST_F(Phases, NestedProgramsAreInThePhaseOfTheirModule) {
  OwningOpRef<ModuleOp> module = parse("module attributes {bowline.phase = \"fuse\"} {\nmodule @stage0 {\n}\n}\n");
  ASSERT_TRUE(module);
  auto nested = *module->getOps<ModuleOp>().begin();
  EXPECT_EQ(phaseOf(nested), Phase::Fuse);
  EXPECT_THAT(errorOf([&] { return verifyNeeds(nested, Phase::Schedule, "schedule-commands"); }), IsEmpty());
  EXPECT_THAT(errorOf([&] { return verifyNeeds(nested, Phase::Overlap, "insert-events"); }),
              HasSubstr("run the phases between them, as bowline-compile does with --compile-from=fuse"));
  EXPECT_THAT(errorOf([&] { return verifyNeeds(nested, Phase::Train, "differentiate"); }),
              HasSubstr("begin with an earlier module, as printed by --compile-to=graph"));
}

TEST_F(Phases, AModuleOfProgramsIsNoProgram) {
  constexpr StringLiteral kPrograms = "module {\nmodule @stage0 {\n}\nmodule @stage1 {\n}\n}\n";
  registerAllPasses();
  std::set<std::string> tried;
  for (const Step& step : allSteps()) {
    if (!isOurs(step) || step.phase < Phase::Local) continue;
    // As bowline-opt runs it: without the passes that the pipeline puts around it.
    std::string name = argumentOf(step);
    if (!PassInfo::lookup(name) || !tried.insert(name).second) continue;  // bowline-opt cannot generate code
    if (name == "nest-program") continue;                                 // leaves a module of roles as it is
    OwningOpRef<ModuleOp> module = parse(kPrograms);
    ASSERT_TRUE(module);
    auto run = [&](bool nested) {
      setPhase(*module, phaseBefore(step.phase));
      return errorOf([&] {
        PassManager manager(&context);
        return failure(failed(parsePassPipeline(name, nested ? manager.nest<ModuleOp>() : manager)) ||
                       failed(manager.run(*module)));
      });
    };
    EXPECT_THAT(run(/*nested=*/false),
                AllOf(HasSubstr("'" + name + "' is a pass on one program"),
                      HasSubstr("--pass-pipeline='builtin.module(builtin.module(" + name + "))'")));
    EXPECT_THAT(run(/*nested=*/true), Not(HasSubstr("is a pass on one program")));
  }
  EXPECT_GT(tried.size(), 18u);
}

TEST_F(Phases, AnUnknownPhaseIsRefused) {
  OwningOpRef<ModuleOp> module = parse("module attributes {bowline.phase = \"stage\"} {\n}\n");
  ASSERT_TRUE(module);
  EXPECT_THAT(errorOf([&] { return verifyNeeds(*module, Phase::Local, "apply-zero"); }),
              AllOf(HasSubstr(", which is no phase; use"), HasSubstr("input, graph, train")));
}

TEST_F(Phases, TheEndOfAPhaseIsVerifiedAndWrittenDown) {
  OwningOpRef<ModuleOp> module = parse(kFunctions);
  ASSERT_TRUE(module);
  EXPECT_THAT(errorOf(createVerifyPhasePass(Phase::Graph), *module), IsEmpty());
  EXPECT_EQ(phaseOf(*module), Phase::Graph);
  EXPECT_THAT(errorOf(createVerifyPhasePass(Phase::Schedule), *module), HasSubstr("must not be there after phase"));
  EXPECT_EQ(phaseOf(*module), Phase::Graph);
}

TEST_F(Phases, WhatOverlapAndHoistLeave) {
  auto error = [&](Phase phase, StringRef text) {
    OwningOpRef<ModuleOp> module = parse(text);
    return module ? errorOf([&] { return verifyPhase(*module, phase); }) : "does not parse";
  };
  StringRef waits =
      "plan.program @p timeline [0, 0] streams [\"compute\", \"dp\"] {\n  plan.segment \"s\" {\n    plan.wait 3\n  "
      "}\n}\n";
  EXPECT_THAT(error(Phase::Overlap, waits), HasSubstr("no command of the program signals its event"));
  EXPECT_THAT(error(Phase::Hoist, waits), IsEmpty());
  EXPECT_THAT(error(Phase::Overlap,
                    "plan.program @p timeline [0, 0] streams [\"compute\", \"dp\"] {\n  plan.segment \"s\" {\n    "
                    "plan.signal 3\n    plan.wait 3 on 1\n  }\n}\n"),
              IsEmpty());
}
