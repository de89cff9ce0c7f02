//===- TrainingInStages.h - Training on the ranks of a pipeline beside training on one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_STAGES_TRAININGINSTAGES_H
#define BOWLINE_TEST_UNIT_STAGES_TRAININGINSTAGES_H

#include "compiler/Interp/Interpreter.h"
#include "passes/Local/Passes.h"
#include "passes/Sharding/Passes.h"
#include "test/Unit/Stages/StagedModels.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bowline::test {

/// A model, and how ranks divide the work on it.
struct StagedCase {
  const char *name;
  StagedModel model;
  int64_t ranks;                 ///< of the pipeline
  const char *schedule = "1f1b"; ///< a name, or a file
  const char *split = "balanced";
  int64_t dp = 1, tp = 1;
  int64_t zero = 0;
  bool vocabulary = false; ///< tables are cut too
};

inline void PrintTo(const StagedCase &c, std::ostream *os) { *os << c.name; }
inline std::string nameOf(const testing::TestParamInfo<StagedCase> &info) { return info.param.name; }

class TrainingInStages : public StagedModels, public testing::WithParamInterface<StagedCase> {
protected:
  StrategyFlags flags() {
    const StagedCase &c = GetParam();
    StrategyFlags flags;
    flags.mesh = "pp=" + std::to_string(c.ranks);
    if (c.dp * c.tp > 1)
      flags.mesh += ",dp=" + std::to_string(c.dp) + ",tp=" + std::to_string(c.tp);
    flags.schedule = c.schedule;
    flags.stages = c.split;
    flags.zero = c.zero;
    flags.bucketBytes = 1000; // several buckets, though models are small
    return flags;
  }

  /// From global tensors to the parts of a rank.
  void addDivision(mlir::PassManager &passes) {
    passes.addPass(createPadForDivisibility());
    passes.addPass(createPropagateShardings());
    passes.addPass(createGlobalToLocal());
    passes.addPass(createApplyZero());
  }

  /// Parameters of the whole program in \p one are those that \p lookup gives of \p staged, whose mirrors are equal to
  /// their owners bit for bit.
  void compareParameters(mlir::ModuleOp whole, Interpreter &one, mlir::ModuleOp staged,
                         llvm::function_ref<llvm::FailureOr<graph::HostTensor>(llvm::StringRef)> lookup,
                         double tolerance) {
    for (auto param : whole.getOps<graph::ParamOp>()) {
      auto actual = lookup(param.getName());
      ASSERT_TRUE(succeeded(actual)) << param.getName().str();
      compare(*one.getVariable(param.getName()), *actual, tolerance, param.getName());
    }
    staged.walk([&](graph::ParamOp param) {
      if (param.isMirror())
        EXPECT_EQ(lookup(param.getName())->data, lookup(*param.getMirrorOf())->data) << param.getName().str();
    });
  }

  /// The results of a training step.
  void compareSteps(llvm::FailureOr<Interpreter::Tensors> expected, llvm::FailureOr<Interpreter::Tensors> actual,
                    double ofLoss, double ofNorm) {
    ASSERT_TRUE(succeeded(expected) && succeeded(actual));
    ASSERT_EQ(expected->size(), 3u);
    ASSERT_EQ(actual->size(), 3u);
    compare((*expected)[0], (*actual)[0], ofLoss, "loss");
    compare((*expected)[1], (*actual)[1], ofNorm, "gradient norm");
    compare((*expected)[2], (*actual)[2], 0, "learning rate");
  }
};

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_STAGES_TRAININGINSTAGES_H
