//===- RegionTest.cpp - Regions of several operations as one kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace bowline::test;
using llvm::formatv;

namespace {

using Pairs = llvm::SmallVector<std::pair<int, int>>;

std::vector<HostTensor> randomInputs(Kernels &kernels, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<HostTensor> inputs;
  for (mlir::Type type : kernels.function(0).getArgumentTypes())
    inputs.push_back(Kernels::random(type, generator));
  return inputs;
}

std::string adamW(const std::string &shape) {
  // Parameter, gradient, two moments; step size, root scale, decay factor, gradient scale.
  return formatv(R"(func.func @adamw(%p: {0}, %g: {0}, %m: {0}, %v: {0}, %lr: tensor<f32>, %rs: tensor<f32>,
                   %decay: tensor<f32>, %gs: tensor<f32>) -> ({0}, {0}, {0}) {{
    %gsb = graph.broadcast %gs dims [] : (tensor<f32>) -> {0}
    %gg = arith.mulf %g, %gsb : {0}
    %b1 = arith.constant dense<0.9> : {0}
    %c1 = arith.constant dense<0.1> : {0}
    %b2 = arith.constant dense<0.95> : {0}
    %c2 = arith.constant dense<0.05> : {0}
    %eps = arith.constant dense<1.0e-8> : {0}
    %m0 = arith.mulf %m, %b1 : {0}
    %m1 = arith.mulf %gg, %c1 : {0}
    %m2 = arith.addf %m0, %m1 : {0}
    %vabs = math.absf %v : {0}
    %v0 = arith.mulf %vabs, %b2 : {0}
    %g2 = arith.mulf %gg, %gg : {0}
    %v1 = arith.mulf %g2, %c2 : {0}
    %v2 = arith.addf %v0, %v1 : {0}
    %root = math.sqrt %v2 : {0}
    %rsb = graph.broadcast %rs dims [] : (tensor<f32>) -> {0}
    %rabs = math.absf %rsb : {0}
    %scaled = arith.mulf %root, %rabs : {0}
    %den = arith.addf %scaled, %eps : {0}
    %u = arith.divf %m2, %den : {0}
    %db = graph.broadcast %decay dims [] : (tensor<f32>) -> {0}
    %p0 = arith.mulf %p, %db : {0}
    %lrb = graph.broadcast %lr dims [] : (tensor<f32>) -> {0}
    %step = arith.mulf %u, %lrb : {0}
    %p1 = arith.subf %p0, %step : {0}
    return %p1, %m2, %v2 : {0}, {0}, {0}
  })",
                 shape);
}

TEST(Region, AdamWInPlace) {
  for (const char *shape : {"tensor<f32>", "tensor<1xf32>", "tensor<100003xf32>", "tensor<129x65xf32>"}) {
    SCOPED_TRACE(shape);
    Kernels kernels(adamW(shape));
    ASSERT_TRUE(kernels.isLoaded());
    kernels.check(0, randomInputs(kernels, 1), 2e-5, 1e-6);
    const Pairs &pairs = kernels.info(0).inPlace;
    for (auto pair : {std::pair(0, 0), std::pair(1, 2), std::pair(2, 3)})
      EXPECT_TRUE(llvm::is_contained(pairs, pair)) << pair.first << " in place of " << pair.second;
  }
}

TEST(Region, ResidualAddThenRmsNorm) {
  for (auto [rows, width] : {std::pair(1, 1), std::pair(7, 384), std::pair(3, 1000), std::pair(65, 17)}) {
    std::string t = formatv("tensor<{0}x{1}xf32>", rows, width), w = formatv("tensor<{0}xf32>", width);
    Kernels kernels(formatv(R"(func.func @k(%x: {0}, %d: {0}, %s: {1}) -> ({0}, {0}) {{
      %r = arith.addf %x, %d : {0}
      %n = graph.rms_norm %r, %s eps 1.0e-6 : ({0}, {1}) -> {0}
      return %r, %n : {0}, {0} })",
                            t, w));
    ASSERT_TRUE(kernels.isLoaded());
    kernels.check(0, randomInputs(kernels, 2), 2e-6, 4e-7);
    EXPECT_EQ(kernels.info(0).parallelExtent, rows) << "rows are not the parallel loop";
    EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(0, 0)) || width == 1);
  }
}

TEST(Region, NormThenGate) {
  Kernels kernels(
      R"(func.func @k(%x: tensor<2x5x100xf32>, %s: tensor<100xf32>, %g: tensor<2x5x100xf32>) -> tensor<2x5x100xf32> {
    %n = graph.rms_norm %x, %s eps 1.0e-6 : (tensor<2x5x100xf32>, tensor<100xf32>) -> tensor<2x5x100xf32>
    %a = graph.silu %g : tensor<2x5x100xf32>
    %r = arith.mulf %n, %a : tensor<2x5x100xf32>
    return %r : tensor<2x5x100xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  EXPECT_EQ(kernels.info(0).parallelExtent, 10);
  kernels.check(0, randomInputs(kernels, 3), 2e-6, 4e-7);
}

/// dx and, over rows, dscale: two nests in one kernel.
TEST(Region, RmsNormBackward) {
  for (auto [rows, width] : {std::pair(6, 384), std::pair(33, 70), std::pair(1, 5), std::pair(70, 1)}) {
    std::string t = formatv("tensor<{0}x{1}xf32>", rows, width), r = formatv("tensor<{0}xf32>", rows),
                w = formatv("tensor<{0}xf32>", width);
    std::string text = formatv(R"(func.func @k(%x: {0}, %s: {2}, %g: {0}) -> ({0}, {2}) {{
      %sq = arith.mulf %x, %x : {0}
      %sum = graph.reduce sum %sq dims [1] : ({0}) -> {1}
      %inv = arith.constant dense<{3}> : {1}
      %mean = arith.mulf %sum, %inv : {1}
      %eps = arith.constant dense<1.0e-6> : {1}
      %me = arith.addf %mean, %eps : {1}
      %rs = math.rsqrt %me : {1}
      %rb = graph.broadcast %rs dims [0] : ({1}) -> {0}
      %n = arith.mulf %x, %rb : {0}
      %sb = graph.broadcast %s dims [1] : ({2}) -> {0}
      %gs = arith.mulf %g, %sb : {0}
      %gn = arith.mulf %gs, %n : {0}
      %psum = graph.reduce sum %gn dims [1] : ({0}) -> {1}
      %pm = arith.mulf %psum, %inv : {1}
      %pb = graph.broadcast %pm dims [0] : ({1}) -> {0}
      %np = arith.mulf %n, %pb : {0}
      %d = arith.subf %gs, %np : {0}
      %dx = arith.mulf %rb, %d : {0}
      %gx = arith.mulf %g, %n : {0}
      %ds = graph.reduce sum %gx dims [0] : ({0}) -> {2}
      return %dx, %ds : {0}, {2} })",
                               t, r, w, formatv("{0:e8}", 1.0 / width));
    Kernels kernels(text);
    ASSERT_TRUE(kernels.isLoaded());
    kernels.check(0, randomInputs(kernels, 4), 4e-6, 2e-6);
    for (auto [output, input] : kernels.info(0).inPlace)
      EXPECT_EQ(input, 1) << "input " << input << " is read by both nests, of which one may be ahead";
  }
}

TEST(Region, ColumnSumsOfAProduct) {
  for (auto [rows, width] : {std::pair(2048, 384), std::pair(5, 3), std::pair(100, 65), std::pair(1, 200)}) {
    Kernels kernels(formatv(
        R"(func.func @k(%a: tensor<{0}x{1}xf32>, %b: tensor<{0}x{1}xf32>, %c: tensor<{1}xf32>) -> (tensor<{1}xf32>, tensor<{1}xf32>) {{
      %p = arith.mulf %a, %b : tensor<{0}x{1}xf32>
      %s = graph.reduce sum %p dims [0] : (tensor<{0}x{1}xf32>) -> tensor<{1}xf32>
      %t = graph.reduce sum %b dims [0] : (tensor<{0}x{1}xf32>) -> tensor<{1}xf32>
      %r = arith.addf %c, %s : tensor<{1}xf32>
      return %r, %t : tensor<{1}xf32>, tensor<{1}xf32> })",
        rows, width));
    ASSERT_TRUE(kernels.isLoaded());
    // The bound of adding `rows` numbers one after the other, for sums that nearly vanish.
    kernels.check(0, randomInputs(kernels, 5), 1e-5, 1e-6 * std::sqrt(rows));
    EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(0, 2))) << "accumulation is in place";
  }
}

TEST(Region, SoftmaxRows) {
  for (auto [rows, width] :
       {std::pair(4, 17), std::pair(3, 2000), std::pair(1, 1), std::pair(1, 300), std::pair(1, 5000)}) {
    std::string t = formatv("tensor<{0}x{1}xf32>", rows, width), r = formatv("tensor<{0}xf32>", rows);
    Kernels kernels(formatv(R"(func.func @k(%x: {0}) -> {0} {{
      %m = graph.reduce max %x dims [1] : ({0}) -> {1}
      %mb = graph.broadcast %m dims [0] : ({1}) -> {0}
      %d = arith.subf %x, %mb : {0}
      %e = math.exp %d : {0}
      %s = graph.reduce sum %e dims [1] : ({0}) -> {1}
      %sb = graph.broadcast %s dims [0] : ({1}) -> {0}
      %r = arith.divf %e, %sb : {0}
      return %r : {0} })",
                            t, r));
    ASSERT_TRUE(kernels.isLoaded());
    std::mt19937_64 generator(6);
    kernels.check(0, {Kernels::random(kernels.function(0).getArgumentTypes()[0], generator, 30)}, 1e-5, 2e-7);
    EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(0, 0)) || rows * width == 1);
  }
}

/// Whole-tensor statistics used by every element: not in place, since other ranges still read.
TEST(Region, CentredByTheMeanOfEverything) {
  Kernels kernels(R"(func.func @k(%x: tensor<9x40xf32>) -> tensor<9x40xf32> {
    %s = graph.reduce sum %x dims [0, 1] : (tensor<9x40xf32>) -> tensor<f32>
    %b = graph.broadcast %s dims [] : (tensor<f32>) -> tensor<9x40xf32>
    %r = arith.subf %x, %b : tensor<9x40xf32>
    return %r : tensor<9x40xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  kernels.check(0, randomInputs(kernels, 7), 1e-6, 1e-6);
}

TEST(Region, SwiGluBackward) {
  Kernels kernels(
      R"(func.func @k(%a: tensor<3x7x130xf32>, %b: tensor<3x7x130xf32>, %g: tensor<3x7x130xf32>) -> (tensor<3x7x130xf32>, tensor<3x7x130xf32>) {
    %one = arith.constant dense<1.0> : tensor<3x7x130xf32>
    %l = graph.logistic %a : tensor<3x7x130xf32>
    %s = arith.mulf %a, %l : tensor<3x7x130xf32>
    %db = arith.mulf %g, %s : tensor<3x7x130xf32>
    %gb = arith.mulf %g, %b : tensor<3x7x130xf32>
    %ol = arith.subf %one, %l : tensor<3x7x130xf32>
    %t = arith.mulf %a, %ol : tensor<3x7x130xf32>
    %u = arith.addf %one, %t : tensor<3x7x130xf32>
    %sl = arith.mulf %l, %u : tensor<3x7x130xf32>
    %da = arith.mulf %gb, %sl : tensor<3x7x130xf32>
    return %da, %db : tensor<3x7x130xf32>, tensor<3x7x130xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  kernels.check(0, randomInputs(kernels, 8), 2e-6, 2e-7);
  EXPECT_EQ(kernels.info(0).inPlace.size(), 6u) << "every result may take any argument's place";
}

/// Movements cost nothing and change nothing when chained.
TEST(Region, MovementsBetweenArithmetic) {
  Kernels kernels(R"(func.func @k(%x: tensor<2x5x24xf32>, %y: tensor<3x9xf32>) -> tensor<2x6x10x3xf32> {
    %h = graph.reshape %x : (tensor<2x5x24xf32>) -> tensor<2x5x3x8xf32>
    %t = graph.transpose %h perm [0, 2, 1, 3] : (tensor<2x5x3x8xf32>) -> tensor<2x3x5x8xf32>
    %p = graph.pad %t low [0, 1, 0, 0] high [0, 2, 0, 1] : (tensor<2x3x5x8xf32>) -> tensor<2x6x5x9xf32>
    %c = graph.concat %p, %p dim 2 : (tensor<2x6x5x9xf32>, tensor<2x6x5x9xf32>) -> tensor<2x6x10x9xf32>
    %m = graph.reduce max %y dims [0] : (tensor<3x9xf32>) -> tensor<9xf32>
    %b = graph.broadcast %m dims [3] : (tensor<9xf32>) -> tensor<2x6x10x9xf32>
    %a = arith.addf %c, %b : tensor<2x6x10x9xf32>
    %s = graph.slice %a at [0, 0, 0, 6] sizes [2, 6, 10, 3] : (tensor<2x6x10x9xf32>) -> tensor<2x6x10x3xf32>
    return %s : tensor<2x6x10x3xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  kernels.check(0, randomInputs(kernels, 9), 1e-7, 1e-7);
}

/// A sum of sums: one reduction inside of another over equal extents.
TEST(Region, NestedReductions) {
  Kernels kernels(R"(func.func @k(%x: tensor<20x20xf32>, %y: tensor<20x20xf32>) -> (tensor<20xf32>, tensor<f32>) {
    %s = graph.reduce max %x dims [1] : (tensor<20x20xf32>) -> tensor<20xf32>
    %b = graph.broadcast %s dims [0] : (tensor<20xf32>) -> tensor<20x20xf32>
    %d = arith.mulf %b, %y : tensor<20x20xf32>
    %c = graph.reduce sum %d dims [0] : (tensor<20x20xf32>) -> tensor<20xf32>
    %cc = arith.mulf %c, %c : tensor<20xf32>
    %n = graph.reduce sum %cc dims [0] : (tensor<20xf32>) -> tensor<f32>
    return %c, %n : tensor<20xf32>, tensor<f32> })");
  ASSERT_TRUE(kernels.isLoaded());
  kernels.check(0, randomInputs(kernels, 10), 1e-5, 1e-6);
}

/// Results of different shapes: rows of one are elements of the other, and a mean over them.
TEST(Region, LossPerRowAndItsSum) {
  Kernels kernels(
      R"(func.func @k(%x: tensor<2x9x300xf32>, %l: tensor<2x9xi32>) -> (tensor<2x9xf32>, tensor<2x9x300xf32>, tensor<f32>) {
    %a, %b = graph.softmax_cross_entropy %x, %l : (tensor<2x9x300xf32>, tensor<2x9xi32>) -> (tensor<2x9xf32>, tensor<2x9xf32>)
    %one = arith.constant dense<1.0> : tensor<2x9xf32>
    %g = graph.softmax_cross_entropy_grad %x, %l, %b, %one : (tensor<2x9x300xf32>, tensor<2x9xi32>, tensor<2x9xf32>, tensor<2x9xf32>) -> tensor<2x9x300xf32>
    %s = graph.reduce sum %a dims [0, 1] : (tensor<2x9xf32>) -> tensor<f32>
    return %a, %g, %s : tensor<2x9xf32>, tensor<2x9x300xf32>, tensor<f32> })");
  ASSERT_TRUE(kernels.isLoaded());
  auto inputs = randomInputs(kernels, 11);
  kernels.check(0, inputs, 1e-5, 1e-6);
}

/// The learning-rate schedule: scalars in f64.
TEST(Region, ScheduleOfScalars) {
  Kernels kernels(R"(func.func @k(%step: tensor<i32>) -> (tensor<i32>, tensor<f32>) {
    %one = arith.constant dense<1> : tensor<i32>
    %next = arith.addi %step, %one : tensor<i32>
    %t = arith.sitofp %next : tensor<i32> to tensor<f64>
    %beta = arith.constant dense<0.95> : tensor<f64>
    %w = arith.constant dense<10.0> : tensor<f64>
    %p = math.powf %beta, %t : tensor<f64>
    %x = arith.divf %t, %w : tensor<f64>
    %c = math.cos %x : tensor<f64>
    %warm = arith.cmpf ole, %t, %w : tensor<f64>
    %r = arith.select %warm, %p, %c : tensor<i1>, tensor<f64>
    %n = arith.truncf %r : tensor<f64> to tensor<f32>
    return %next, %n : tensor<i32>, tensor<f32> })");
  ASSERT_TRUE(kernels.isLoaded());
  for (double step : {0.0, 9.0, 10.0, 1000.0}) {
    HostTensor input(std::vector<int64_t>{});
    input.data[0] = step;
    kernels.check(0, {input}, 1e-7, 0);
  }
}

/// bf16 in memory, f32 in between.
TEST(Region, NarrowStorage) {
  Kernels kernels(R"(func.func @k(%x: tensor<5x77xbf16>, %s: tensor<77xbf16>) -> tensor<5x77xbf16> {
    %n = graph.rms_norm %x, %s eps 1.0e-6 : (tensor<5x77xbf16>, tensor<77xbf16>) -> tensor<5x77xbf16>
    %r = graph.silu %n : tensor<5x77xbf16>
    return %r : tensor<5x77xbf16> })");
  ASSERT_TRUE(kernels.isLoaded());
  // Half a step of bf16.
  kernels.check(0, randomInputs(kernels, 12), 0x1p-8, 1e-6);
}

TEST(Region, WideRowsInPlaceAreWrittenAfterTheyAreRead) {
  Kernels kernels(R"(func.func @k(%x: tensor<3x50257xf32>, %s: tensor<50257xf32>) -> tensor<3x50257xf32> {
    %n = graph.layer_norm %x, %s, %s eps 1.0e-6 : (tensor<3x50257xf32>, tensor<50257xf32>, tensor<50257xf32>) -> tensor<3x50257xf32>
    return %n : tensor<3x50257xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  EXPECT_EQ(kernels.info(0).inPlace, (Pairs{{0, 0}}));
  kernels.check(0, randomInputs(kernels, 13), 4e-6, 1e-6);
}

TEST(Region, TransposedInputIsNotInPlace) {
  Kernels kernels(R"(func.func @k(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %t = graph.transpose %x perm [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %r = arith.addf %t, %y : tensor<32x32xf32>
    return %r : tensor<32x32xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  EXPECT_EQ(kernels.info(0).inPlace, (Pairs{{0, 1}}));
  kernels.check(0, randomInputs(kernels, 14), 1e-7, 0);
}

/// Gradient of one matrix with respect to itself: a column is read after a row was written.
TEST(Region, ReductionsOverBothDimensionsAreNotInPlace) {
  Kernels kernels(R"(func.func @k(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %c = graph.reduce sum %x dims [0] : (tensor<32x32xf32>) -> tensor<32xf32>
    %b = graph.broadcast %c dims [1] : (tensor<32xf32>) -> tensor<32x32xf32>
    %r = arith.subf %x, %b : tensor<32x32xf32>
    return %r : tensor<32x32xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  EXPECT_TRUE(kernels.info(0).inPlace.empty());
  kernels.check(0, randomInputs(kernels, 15), 1e-6, 1e-6);
}

/// A sum of row sums, rows along memory: nothing is gathered, and blocks of rows end anywhere.
TEST(Region, SumOfRowSums) {
  for (auto [rows, width] : {std::pair(300, 77), std::pair(64, 16), std::pair(129, 1), std::pair(1, 33)}) {
    Kernels kernels(formatv(R"(func.func @k(%x: tensor<3x{0}x{1}xf32>) -> (tensor<f32>, tensor<f32>) {{
      %q = arith.mulf %x, %x : tensor<3x{0}x{1}xf32>
      %r = graph.reduce sum %q dims [2] : (tensor<3x{0}x{1}xf32>) -> tensor<3x{0}xf32>
      %s = graph.reduce sum %r dims [0, 1] : (tensor<3x{0}xf32>) -> tensor<f32>
      %a = graph.reduce sum %x dims [2] : (tensor<3x{0}x{1}xf32>) -> tensor<3x{0}xf32>
      %m = graph.reduce max %a dims [0, 1] : (tensor<3x{0}xf32>) -> tensor<f32>
      return %s, %m : tensor<f32>, tensor<f32> })",
                            rows, width));
    ASSERT_TRUE(kernels.isLoaded());
    kernels.check(0, randomInputs(kernels, 16), 2e-6, 1e-6);
  }
}

/// The first and the last row reach beyond the memory that they are read from.
TEST(Region, ReductionsOverPaddedRows) {
  Kernels kernels(R"(func.func @k(%x: tensor<6x33xf32>, %y: tensor<6x40xbf16>) -> tensor<6xf32> {
    %p = graph.pad %x low [0, 9] high [0, 98] : (tensor<6x33xf32>) -> tensor<6x140xf32>
    %w = arith.extf %y : tensor<6x40xbf16> to tensor<6x40xf32>
    %c = graph.concat %w, %x, %w, %x dim 1 : (tensor<6x40xf32>, tensor<6x33xf32>, tensor<6x40xf32>, tensor<6x33xf32>) -> tensor<6x146xf32>
    %a = graph.reduce sum %p dims [1] : (tensor<6x140xf32>) -> tensor<6xf32>
    %b = graph.reduce max %c dims [1] : (tensor<6x146xf32>) -> tensor<6xf32>
    %r = arith.addf %a, %b : tensor<6xf32>
    return %r : tensor<6xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  kernels.check(0, randomInputs(kernels, 17), 2e-6, 1e-6);
}

/// The loss and its gradient in one kernel share the exponentials; the gradient takes the place of the logits.
TEST(Region, LossAndItsGradient) {
  for (const char *type : {"f32", "bf16"})
    for (auto [rows, classes] : {std::pair(3, 50257), std::pair(5, 64), std::pair(7, 33), std::pair(4, 200000)}) {
      SCOPED_TRACE(formatv("{0} x {1} {2}", rows, classes, type).str());
      Kernels kernels(formatv(
          R"(func.func @k(%x: tensor<{0}x{1}x{2}>, %l: tensor<{0}xi32>, %d: tensor<{0}xf32>) -> (tensor<{0}xf32>, tensor<{0}x{1}x{2}>) {{
        %a, %b = graph.softmax_cross_entropy %x, %l : (tensor<{0}x{1}x{2}>, tensor<{0}xi32>) -> (tensor<{0}xf32>, tensor<{0}xf32>)
        %g = graph.softmax_cross_entropy_grad %x, %l, %b, %d : (tensor<{0}x{1}x{2}>, tensor<{0}xi32>, tensor<{0}xf32>, tensor<{0}xf32>) -> tensor<{0}x{1}x{2}>
        return %a, %g : tensor<{0}xf32>, tensor<{0}x{1}x{2}> })",
          rows, classes, type));
      ASSERT_TRUE(kernels.isLoaded());
      EXPECT_EQ(kernels.info(0).parallelExtent, rows);
      EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(1, 0)));
      auto inputs = randomInputs(kernels, 18);
      for (double &label : inputs[1].data)
        label = std::fmod(std::fabs(label), classes);
      // A row without a label, one far from zero, one with impossible classes.
      inputs[1].data[0] = -1;
      for (int i = 0; i < classes; ++i) {
        inputs[0].data[classes + i] *= 64;
        if (i % 3)
          inputs[0].data[2 * classes + i] = -HUGE_VAL;
      }
      inputs[1].data[2] = 3;
      kernels.check(0, inputs, type == std::string("f32") ? 4e-6 : 0x1p-8, 2e-7);
    }
}

/// A sum of which one term counts, which is read where it is: indices that begin elsewhere than at zero, on either side
/// of the comparison; labels at both ends, beyond them and at the ends of their type.
TEST(Region, TermOfAShiftedIndex) {
  for (const char *label : {"i32", "i64"})
    for (int first : {0, 7})
      for (bool isSwapped : {false, true}) {
        SCOPED_TRACE(formatv("{0} from {1}, {2}", label, first, isSwapped ? "label first" : "index first").str());
        Kernels kernels(
            formatv(R"(func.func @k(%x: tensor<9x50xf32>, %l: tensor<9x{0}>, %z: tensor<9x50xf32>) -> tensor<9xf32> {{
          %i = graph.iota dim 1 : tensor<9x70x{0}>
          %s = graph.slice %i at [0, {1}] sizes [9, 50] : (tensor<9x70x{0}>) -> tensor<9x50x{0}>
          %b = graph.broadcast %l dims [0] : (tensor<9x{0}>) -> tensor<9x50x{0}>
          %is = arith.cmpi eq, {2} : tensor<9x50x{0}>
          %zero = arith.constant dense<0.0> : tensor<9x50xf32>
          %y = arith.maximumf %x, %z : tensor<9x50xf32>
          %c = arith.select %is, %y, %zero : tensor<9x50xi1>, tensor<9x50xf32>
          %r = graph.reduce sum %c dims [1] : (tensor<9x50xf32>) -> tensor<9xf32>
          return %r : tensor<9xf32> })",
                    label, first, isSwapped ? "%b, %s" : "%s, %b"));
        ASSERT_TRUE(kernels.isLoaded());
        auto inputs = randomInputs(kernels, 20);
        // f64 holds the ends of i32 exactly, and that of i64 which it can be.
        double least = label == std::string("i32") ? -0x1p31 : -0x1p63;
        inputs[1].data = {0, 6, 7, 30, 49, 50, 56, 57, least};
        for (double &other : llvm::MutableArrayRef(inputs[0].data).take_back(50))
          other = std::nan("");
        kernels.check(0, inputs, 0, 0);
      }
}

TEST(Region, LossOfNotANumberIsNone) {
  Kernels kernels(R"(func.func @k(%x: tensor<3x100xf32>, %l: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %a, %b = graph.softmax_cross_entropy %x, %l : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
    return %a, %b : tensor<3xf32>, tensor<3xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  for (size_t at : {0, 17, 63, 64, 99}) {
    auto inputs = randomInputs(kernels, 19);
    inputs[0].data[100 + at] = std::nan("");
    kernels.check(0, inputs, 2e-6, 1e-6);
    EXPECT_TRUE(std::isnan(decode(kernels.run(0, inputs)[1].data(), kernels.function(0).getResultTypes()[1]).data[1]));
  }
}

} // namespace
