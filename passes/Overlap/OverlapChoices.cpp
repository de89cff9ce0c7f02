//===- OverlapChoices.cpp - How much communication may overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/OverlapChoices.h"
#include "passes/Overlap/EventElision.h"
#include "passes/Overlap/EventInsertion.h"

using namespace mlir;
using namespace bowline;

SmallVector<OverlapOptions> bowline::overlapChoices(const OverlapOptions &most) {
  OverlapOptions noPrefetch = most, noMerging = most;
  noPrefetch.mostPrefetch = noMerging.mostPrefetch = 0;
  noMerging.mergesRuns = false;
  return {most, noPrefetch, noMerging};
}

double bowline::overlapCopy(ModuleOp copy, const OverlapOptions &options) {
  SymbolTable symbols(copy);
  CommandOverlap overlap(copy, symbols, options);
  double saved = 0;
  for (auto program : copy.getOps<plan::ProgramOp>())
    if (std::optional<CommandOverlap::Result> result = overlap.run(program))
      saved += result->serialSeconds - result->seconds;
  for (auto program : copy.getOps<plan::ProgramOp>()) {
    EventInsertion(program, symbols).run();
    EventElision(program).run();
  }
  return saved;
}
