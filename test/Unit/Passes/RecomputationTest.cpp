//===- RecomputationTest.cpp - Estimated sizes of values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Recomputation/Recomputation.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;

/// Of two values of 12 bytes that are alive at one time, on a device.
static int64_t peakBytesOn(StringRef device) {
  std::string text = "module attributes {plan.target = #plan.target<device = \"" + device.str() +
                     R"(", arch = "x86_64", cpu = "x86-64-v3", threads = 1>} {
    graph.state @s accumulator : tensor<3xf32> init(#graph.fill<0.0>)
    graph.func @f(%x: tensor<3xf32>) {
      %0 = math.exp %x : tensor<3xf32>
      %1 = arith.mulf %0, %0 : tensor<3xf32>
      graph.write @s, %1 : tensor<3xf32>
      graph.return
    }
  })";
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, graph::GraphDialect, math::MathDialect, plan::PlanDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  if (!module)
    return 0;
  Block &body = (*module->getOps<graph::FuncOp>().begin()).getBody().front();
  return Recomputation(body, {&body.front()}).keepAll().peakBytes;
}

// Buffers lie at multiples of the device's alignment, and estimates of their sizes are such multiples, too.
TEST(Recomputation, ValuesTakeWhatTheDeviceAligns) {
  EXPECT_EQ(peakBytesOn("cpu"), 2 * 64);
  EXPECT_EQ(peakBytesOn("discrete"), 2 * 256);
}
