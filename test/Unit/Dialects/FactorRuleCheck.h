//===- FactorRuleCheck.h - Holds a factor rule against its operation's meaning
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_DIALECTS_FACTORRULECHECK_H
#define BOWLINE_TEST_UNIT_DIALECTS_FACTORRULECHECK_H

#include "dialects/Graph/FactorRule.h"
#include "test/Unit/Interp/OpHarness.h"

namespace bowline::test {

/// A factor cut into equal parts.
struct Cut {
  int64_t factor, parts;
};

struct RuleReport {
  std::string problem; ///< empty where the rule holds
  int64_t cuts = 0;    ///< how many were tried
};

/// Verifies `rule`, cuts every factor of it that may be cut in two and in three where that divides it, computes the
/// parts by the operation's own local form, puts them together and compares with the operation on the whole
/// operands: parallel parts and maxima bit for bit, sums to the rounding of f64. Parts are cut once more by the same
/// rule.
RuleReport checkRule(mlir::Operation *op, const graph::FactorRule &rule, llvm::ArrayRef<HostTensor> operands);

/// An operation, with the random operands on which it is tried.
struct Example {
  std::vector<Operand> operands;
  BuildOp build;
};
struct RuleCase {
  std::string operation;
  std::function<Example(Random &)> draw;
};

/// At least one case for each operation that has a reference semantics.
std::vector<RuleCase> ruleCases();

/// Those of elementwise operations.
void addElementwiseCases(std::vector<RuleCase> &cases);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_DIALECTS_FACTORRULECHECK_H
