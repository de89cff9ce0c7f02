//===- InPlaceUpdatesTest.cpp - Calls of kernels that change an operand
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/InPlaceUpdates.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

/// The error for a function of these lines, in which @add(x, y) adds y to x in place and scratch comes last; "" where
/// the function is right.
static std::string refusalOf(const std::string &body) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "graph.state @sum cache : tensor<4xf32> init(#graph.fill<0.0>)\n"
      "graph.state @other cache : tensor<4xf32> init(#graph.fill<0.0>)\n"
      "plan.kernel @add registered \"test_add\" [#plan.arg<read, tensor<4xf32>>, #plan.arg<read_write, tensor<4xf32>>, "
      "#plan.arg<write, tensor<4xf32>>] cost 4.0, 64.0\n"
      "graph.func @f(%x: tensor<4xf32>) {\n" +
          body + "graph.return\n}\n",
      &context());
  EXPECT_TRUE(module) << body;
  if (!module)
    return "";
  std::string said;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { said += diagnostic.str(); });
  bool ok = succeeded(verifyInPlaceUpdates(*module->getOps<graph::FuncOp>().begin()));
  EXPECT_EQ(ok, said.empty()) << said;
  return said;
}

static const std::string kRead = "%old = graph.read @sum : tensor<4xf32>\n",
                         kWrite = "graph.write @sum, %new : tensor<4xf32>\n",
                         kType = " : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n",
                         kCall = "%new, %copy = plan.call @add(%x, %old)" + kType;

TEST(InPlaceUpdates, CallsChangeWhatNobodyNeeds) {
  EXPECT_EQ(refusalOf(kRead + kCall + kWrite), "");
  EXPECT_EQ(refusalOf(kRead + "graph.write @other, %old : tensor<4xf32>\n" + kCall + kWrite), "");
  // One call after the other, and the kernel's second result is no update.
  EXPECT_EQ(refusalOf(kRead + "%one, %a = plan.call @add(%x, %old)" + kType + "%new, %b = plan.call @add(%a, %one)" +
                      kType + kWrite + "graph.write @other, %b : tensor<4xf32>\n"),
            "");
}

TEST(InPlaceUpdates, CallsOfWhatIsNeededAreRefused) {
  const std::string place = "'plan.call' op changes operand 1 in place, ";
  EXPECT_EQ(refusalOf(kRead + kCall + kWrite + "graph.write @other, %old : tensor<4xf32>\n"),
            place + "but its old value is used afterwards");
  EXPECT_EQ(refusalOf(kRead + "%view = graph.reshape %old : (tensor<4xf32>) -> tensor<2x2xf32>\n" + kCall + kWrite +
                      "%back = graph.reshape %view : (tensor<2x2xf32>) -> tensor<4xf32>\n"
                      "graph.write @other, %back : tensor<4xf32>\n"),
            place + "but its old value is used afterwards");
  EXPECT_EQ(refusalOf(kRead + "%one, %a = plan.call @add(%x, %old)" + kType + "%new, %b = plan.call @add(%x, %old)" +
                      kType + kWrite),
            place + "but its old value is used afterwards");
  EXPECT_EQ(refusalOf(kRead + "%new, %copy = plan.call @add(%old, %old)" + kType + kWrite),
            place + "and uses the same value in another place");
  EXPECT_EQ(refusalOf("%new, %copy = plan.call @add(%x, %x)" + kType + kWrite),
            place + "but this operand is no value of a variable; pass the result of a graph.read");
  EXPECT_EQ(refusalOf(kRead + "%a, %old2 = plan.call @add(%x, %old)" + kType + "%new, %b = plan.call @add(%x, %old2)" +
                      kType + "graph.write @sum, %a : tensor<4xf32>\ngraph.write @other, %new : tensor<4xf32>\n"),
            place + "but this operand is no value of a variable; pass the result of a graph.read");
  EXPECT_EQ(refusalOf(kRead + kCall), place + "but @sum is not written with the result; add a graph.write");
  EXPECT_EQ(refusalOf(kRead + kCall + "graph.write @sum, %copy : tensor<4xf32>\n"),
            place + "but @sum is not written with the result; add a graph.write");
}
