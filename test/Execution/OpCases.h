//===- OpCases.h - Every operation on random shapes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_OPCASES_H
#define BOWLINE_TEST_EXECUTION_OPCASES_H

#include "test/Execution/PlanHarness.h"

namespace bowline::test {

// Each call draws other shapes, several for every operation.
std::vector<Case> elementwiseCases(Random &random);
std::vector<Case> shapeCases(Random &random);
std::vector<Case> contractionCases(Random &random);
std::vector<Case> layerCases(Random &random);
std::vector<Case> samplingCases(Random &random);

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_OPCASES_H
