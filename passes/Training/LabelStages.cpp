//===- LabelStages.cpp - Write down the stage of each operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/StageLabels.h"
#include "passes/Training/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_LABELSTAGES
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class LabelStages : public bowline::impl::LabelStagesBase<LabelStages> {
public:
  using LabelStagesBase::LabelStagesBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    std::optional<int64_t> count = stage::countOf(module);
    if (!count)
      return markAllAnalysesPreserved();
    if (failed(labelStages(module, *count)))
      signalPassFailure();
  }
};

} // namespace
