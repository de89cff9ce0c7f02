//===- OpAgreementTest.cpp - The executed plan and the reference agree on every operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Execution/OpCases.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

TEST(OpAgreement, Elementwise) {
  Random random;
  checkCases(random, elementwiseCases(random));
}

TEST(OpAgreement, ShapesAndIndices) {
  Random random;
  checkCases(random, shapeCases(random));
}

TEST(OpAgreement, ContractionsAndReductions) {
  Random random;
  checkCases(random, contractionCases(random));
}

TEST(OpAgreement, Layers) {
  Random random;
  checkCases(random, layerCases(random));
}

/// A new operation fails here until it has cases above.
TEST(OpAgreement, NoOperationIsForgotten) {
  Random random;
  std::set<std::string> seen;
  for (auto cases : {elementwiseCases, shapeCases, contractionCases, layerCases}) {
    OwningOpRef<ModuleOp> module = moduleOf(cases(random));
    ASSERT_TRUE(module);
    module->walk([&](Operation *op) { seen.insert(op->getName().getStringRef().str()); });
  }
  size_t known = 0;
  for (RegisteredOperationName name : context().getRegisteredOperations()) {
    // What goes between stages becomes sends and receives before there are kernels.
    if (!name.hasInterface<graph::Interpretable>() || name.getDialectNamespace() == "stage")
      continue;
    ++known;
    EXPECT_TRUE(seen.count(name.getStringRef().str())) << name.getStringRef().str() << " has no case";
  }
  EXPECT_GE(known, 40u);
}
