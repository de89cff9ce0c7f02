//===- RanksBesideOne.h - A program on the ranks of a mesh beside the whole program on one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_SHARDING_RANKSBESIDEONE_H
#define BOWLINE_TEST_UNIT_SHARDING_RANKSBESIDEONE_H

#include "compiler/Interp/DistributedInterpreter.h"
#include "test/Unit/Sharding/ShardedModel.h"

namespace bowline::test {

/// Both by the reference interpreter. Bounds are relative to the largest element.
struct RanksBesideOne {
  /// Both modules outlive this. Adds a test failure where a variable cannot be initialised.
  RanksBesideOne(mlir::ModuleOp whole, mlir::ModuleOp local) : one(whole), many(local) {
    EXPECT_TRUE(succeeded(one.initializeVariables()));
    EXPECT_TRUE(succeeded(many.initialize()));
  }

  /// Runs a function or an entry on both.
  void expectSameResults(llvm::StringRef name, llvm::ArrayRef<graph::HostTensor> inputs, double bound) {
    auto expected = one.run(name, inputs), actual = many.run(name, inputs);
    ASSERT_TRUE(succeeded(expected) && succeeded(actual)) << name.str();
    ASSERT_EQ(expected->size(), actual->size()) << name.str();
    for (auto [a, b] : llvm::zip_equal(*expected, *actual)) {
      ASSERT_EQ(b.shape, a.shape) << name.str();
      EXPECT_LE(distance(a, b), bound) << name.str();
    }
  }

  /// Joining the pieces of a variable checks that its padding is zero.
  void expectSameVariable(llvm::StringRef name, double bound) {
    const graph::HostTensor *expected = one.getVariable(name);
    llvm::FailureOr<graph::HostTensor> actual = many.getVariable(name);
    ASSERT_TRUE(expected && succeeded(actual)) << name.str();
    ASSERT_EQ(actual->shape, expected->shape) << name.str();
    EXPECT_LE(distance(*expected, *actual), bound) << name.str();
  }

  Interpreter one;
  DistributedInterpreter many;
};

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_SHARDING_RANKSBESIDEONE_H
