//===- ArithmeticTest.cpp - Arithmetic modulo a prime keeps the laws that it promises
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/DistributedInterpreter.h"
#include "compiler/Interp/ModularArithmetic.h"
#include "compiler/Interp/Residues.h"
#include "mlir/Parser/Parser.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Residue : public testing::Test {
protected:
  double draw() {
    return static_cast<double>(std::uniform_int_distribution<uint64_t>(0, residues::kPrime - 1)(random));
  }

  std::mt19937_64 random{TestSeed()};
};

/// Runs functions of a module in f64 and modulo the prime, on whole numbers.
class Modular : public SmallPipelines {
protected:
  SmallVector<HostTensor> run(ModuleOp module, StringRef name, ArrayRef<HostTensor> arguments, bool isModular) {
    SmallVector<HostTensor> converted(arguments);
    if (isModular)
      for (HostTensor &tensor : converted)
        llvm::transform(tensor.data, tensor.data.begin(), residues::of);
    Interpreter interpreter(module,
                            isModular ? static_cast<const graph::Arithmetic &>(modular) : graph::Arithmetic::reals());
    auto results = interpreter.run(name, converted);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? std::move(*results) : SmallVector<HostTensor>();
  }

  HostTensor draw(std::vector<int64_t> shape, int64_t low, int64_t high) {
    HostTensor tensor(std::move(shape));
    for (double &value : tensor.data)
      value = static_cast<double>(std::uniform_int_distribution<int64_t>(low, high)(random));
    return tensor;
  }

  ModularArithmetic modular;
  std::mt19937_64 random{TestSeed()};
};

} // namespace

TEST_F(Residue, Field) {
  for (int i = 0; i < 1000; ++i) {
    double a = draw(), b = draw(), c = draw();
    EXPECT_EQ(residues::add(residues::add(a, b), c), residues::add(a, residues::add(b, c)));
    EXPECT_EQ(residues::multiply(residues::multiply(a, b), c), residues::multiply(a, residues::multiply(b, c)));
    EXPECT_EQ(residues::multiply(a, residues::add(b, c)),
              residues::add(residues::multiply(a, b), residues::multiply(a, c)));
    EXPECT_EQ(residues::subtract(residues::add(a, b), b), a);
    if (b != 0)
      EXPECT_EQ(residues::multiply(residues::divide(a, b), b), a);
    EXPECT_LT(residues::add(a, b), static_cast<double>(residues::kPrime));
  }
  EXPECT_EQ(residues::divide(5, 0), 0);
}

TEST_F(Residue, OfNumbers) {
  std::uniform_real_distribution<double> reals(-8, 8);
  for (int i = 0; i < 1000; ++i) {
    // Exact in f64: products of numbers with few digits.
    double a = std::ldexp(std::trunc(std::ldexp(reals(random), 20)), -20 - i % 40);
    double b = std::ldexp(std::trunc(std::ldexp(reals(random), 20)), i % 50);
    EXPECT_EQ(residues::of(a * b), residues::multiply(residues::of(a), residues::of(b)));
    EXPECT_EQ(residues::of(-a), residues::negative(residues::of(a)));
  }
  EXPECT_EQ(residues::of(0), 0);
  EXPECT_EQ(residues::of(-0.0), 0);
  EXPECT_EQ(residues::multiply(residues::of(0.25), 4), 1);
  EXPECT_NE(residues::of(0.1), residues::divide(1, 10)); // 0.1 is not a tenth
  EXPECT_EQ(residues::of(-1e30), -kInfinity);
}

TEST_F(Residue, Functions) {
  EXPECT_EQ(residues::exp(0), 1);
  EXPECT_EQ(residues::log(1), 0);
  EXPECT_EQ(residues::exp(-kInfinity), 0);
  EXPECT_EQ(residues::log(0), -kInfinity);
  EXPECT_EQ(residues::cos(0), 1);
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    double a = draw(), b = draw(), minus = residues::negative(a);
    EXPECT_EQ(residues::log(residues::exp(a)), a);
    EXPECT_EQ(residues::exp(residues::log(a)), a);
    EXPECT_EQ(residues::cos(minus), residues::cos(a));
    EXPECT_EQ(residues::abs(minus), residues::abs(a));
    for (residues::Odd odd : {residues::Odd::Tanh, residues::Odd::Erf, residues::Odd::Sin})
      EXPECT_EQ(residues::odd(odd, minus), residues::negative(residues::odd(odd, a)));
    different += residues::exp(residues::add(a, b)) != residues::multiply(residues::exp(a), residues::exp(b));
    different += residues::odd(residues::Odd::Tanh, a) != residues::odd(residues::Odd::Erf, a);
  }
  EXPECT_GE(different, 1999); // identities that are not promised do not hold
  // A number so low that nothing is added to it.
  EXPECT_EQ(residues::add(-kInfinity, 7), -kInfinity);
  EXPECT_EQ(residues::subtract(-kInfinity, -kInfinity), 0);
  EXPECT_EQ(residues::multiply(-kInfinity, 0), 0);
  EXPECT_TRUE(std::isnan(residues::multiply(-kInfinity, 2)));
}

TEST_F(Modular, WholeNumbersAreThose) {
  // Where f64 is exact, residues are those of its results.
  auto module = parseSourceString<ModuleOp>(R"mlir(
graph.func @f(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %u: tensor<3x5xf32>, %x: tensor<2x3x2x4xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>, %n: tensor<3xi32>) -> (tensor<2x3x5xf32>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x3x5xf32>, tensor<3xf32>) {
  %0 = graph.dot_general %a, %b batch [0] x [0] contract [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %1 = graph.reduce sum %0 dims [1] : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
  %2 = graph.scatter_add %u at %n : (tensor<3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  %3 = graph.rope %x, %c, %s : (tensor<2x3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2x4xf32>
  %4 = graph.rope inverse %x, %c, %s : (tensor<2x3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2x4xf32>
  %5 = graph.broadcast %u dims [1, 2] : (tensor<3x5xf32>) -> tensor<2x3x5xf32>
  %6 = arith.subf %0, %5 : tensor<2x3x5xf32>
  %7 = arith.sitofp %n : tensor<3xi32> to tensor<3xf32>
  graph.return %0, %1, %2, %3, %4, %6, %7 : tensor<2x3x5xf32>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x3x5xf32>, tensor<3xf32>
}
)mlir",
                                            ParserConfig(&context));
  ASSERT_TRUE(module);
  for (int i = 0; i < 20; ++i) {
    HostTensor arguments[] = {draw({2, 3, 4}, -1000, 1000),
                              draw({2, 4, 5}, -1000, 1000),
                              draw({3, 5}, -1000, 1000),
                              draw({2, 3, 2, 4}, -1000, 1000),
                              draw({3, 2}, -1000, 1000),
                              draw({3, 2}, -1000, 1000),
                              draw({3}, 0, 3)};
    auto real = run(*module, "f", arguments, false), modular = run(*module, "f", arguments, true);
    ASSERT_EQ(real.size(), modular.size());
    for (auto [expected, actual] : llvm::zip_equal(real, modular))
      for (auto [a, b] : llvm::zip_equal(expected.data, actual.data))
        EXPECT_EQ(residues::of(a), b);
  }
}

TEST_F(Modular, LayersAreWhatTheyConsistOf) {
  // Operations of layers against their definitions in smaller operations.
  auto module = parseSourceString<ModuleOp>(R"mlir(
graph.func @layers(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %n: tensor<3xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<1x3x1x4xf32>) {
  %0 = graph.rms_norm %x, %g eps 0.5 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = graph.layer_norm %x, %g, %b eps 0.5 : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %2 = graph.silu %x : tensor<3x4xf32>
  %3, %4 = graph.softmax_cross_entropy %x, %n : (tensor<3x4xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %5 = graph.reshape %x : (tensor<3x4xf32>) -> tensor<1x3x1x4xf32>
  %6, %7 = graph.attention %5, %5, %5 scale 0.5 : (tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>) -> (tensor<1x3x1x4xf32>, tensor<1x1x3xf32>)
  graph.return %0, %1, %2, %3, %6 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<1x3x1x4xf32>
}
graph.func @parts(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %n: tensor<3xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<1x3x1x4xf32>) {
  %quarter = arith.constant dense<0.25> : tensor<3xf32>
  %half = arith.constant dense<0.5> : tensor<3xf32>
  %gs = graph.broadcast %g dims [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %bs = graph.broadcast %b dims [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %sq = arith.mulf %x, %x : tensor<3x4xf32>
  %ss = graph.reduce sum %sq dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %ms = arith.mulf %ss, %quarter : tensor<3xf32>
  %me = arith.addf %ms, %half : tensor<3xf32>
  %r = math.rsqrt %me : tensor<3xf32>
  %rs = graph.broadcast %r dims [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %xr = arith.mulf %x, %rs : tensor<3x4xf32>
  %0 = arith.mulf %xr, %gs : tensor<3x4xf32>
  %s = graph.reduce sum %x dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %m = arith.mulf %s, %quarter : tensor<3xf32>
  %mm = graph.broadcast %m dims [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %c = arith.subf %x, %mm : tensor<3x4xf32>
  %cc = arith.mulf %c, %c : tensor<3x4xf32>
  %cs = graph.reduce sum %cc dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %v = arith.mulf %cs, %quarter : tensor<3xf32>
  %ve = arith.addf %v, %half : tensor<3xf32>
  %vr = math.rsqrt %ve : tensor<3xf32>
  %vs = graph.broadcast %vr dims [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %cv = arith.mulf %c, %vs : tensor<3x4xf32>
  %cg = arith.mulf %cv, %gs : tensor<3x4xf32>
  %1 = arith.addf %cg, %bs : tensor<3x4xf32>
  %lx = graph.logistic %x : tensor<3x4xf32>
  %2 = arith.mulf %x, %lx : tensor<3x4xf32>
  %e = math.exp %x : tensor<3x4xf32>
  %es = graph.reduce sum %e dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %lse = math.log %es : tensor<3xf32>
  %i = graph.iota dim 1 : tensor<3x4xi32>
  %ns = graph.broadcast %n dims [0] : (tensor<3xi32>) -> tensor<3x4xi32>
  %is = arith.cmpi eq, %i, %ns : tensor<3x4xi32>
  %zero = arith.constant dense<0.0> : tensor<3x4xf32>
  %own = arith.select %is, %x, %zero : tensor<3x4xi1>, tensor<3x4xf32>
  %logit = graph.reduce sum %own dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %3 = arith.subf %lse, %logit : tensor<3xf32>
  %halves = arith.constant dense<0.5> : tensor<3x3xf32>
  %d = graph.dot_general %x, %x contract [1] x [1] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
  %ds = arith.mulf %d, %halves : tensor<3x3xf32>
  %de = math.exp %ds : tensor<3x3xf32>
  %dl = graph.reduce sum %de dims [1] : (tensor<3x3xf32>) -> tensor<3xf32>
  %dlog = math.log %dl : tensor<3xf32>
  %dlogs = graph.broadcast %dlog dims [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %shift = arith.subf %ds, %dlogs : tensor<3x3xf32>
  %p = math.exp %shift : tensor<3x3xf32>
  %pv = graph.dot_general %p, %x contract [1] x [0] : (tensor<3x3xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = graph.reshape %pv : (tensor<3x4xf32>) -> tensor<1x3x1x4xf32>
  graph.return %0, %1, %2, %3, %4 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<1x3x1x4xf32>
}
)mlir",
                                            ParserConfig(&context));
  ASSERT_TRUE(module);
  for (int i = 0; i < 5; ++i) {
    HostTensor arguments[] = {draw({3, 4}, -3, 3), draw({4}, -3, 3), draw({4}, -3, 3), draw({3}, 0, 3)};
    for (bool isModular : {false, true}) {
      auto layers = run(*module, "layers", arguments, isModular), parts = run(*module, "parts", arguments, isModular);
      ASSERT_EQ(layers.size(), parts.size());
      for (auto [index, a, b] : llvm::enumerate(layers, parts))
        for (auto [x, y] : llvm::zip_equal(a.data, b.data))
          EXPECT_NEAR(x, y, isModular ? 0 : 1e-12) << "result " << index;
    }
  }
}

TEST_F(Modular, MaximaShiftExponents) {
  // log-sum-exp with the maximum of a row, of parts of a row, and without one, are the same function.
  auto module = parseSourceString<ModuleOp>(R"mlir(
graph.func @f(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %m = graph.reduce max %x dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %ms = graph.broadcast %m dims [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %c = arith.subf %x, %ms : tensor<3x4xf32>
  %e = math.exp %c : tensor<3x4xf32>
  %s = graph.reduce sum %e dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %l = math.log %s : tensor<3xf32>
  %0 = arith.addf %m, %l : tensor<3xf32>
  %pe = math.exp %x : tensor<3x4xf32>
  %ps = graph.reduce sum %pe dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %1 = math.log %ps : tensor<3xf32>
  graph.return %0, %1 : tensor<3xf32>, tensor<3xf32>
}
)mlir",
                                            ParserConfig(&context));
  ASSERT_TRUE(module);
  HostTensor arguments[] = {draw({3, 4}, -3, 3)};
  auto results = run(*module, "f", arguments, true);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].data, results[1].data);
}

TEST_F(Modular, WhatHasNoMeaningIsSaid) {
  auto module = parseSourceString<ModuleOp>(R"mlir(
graph.func @f(%x: tensor<3xf32>) -> tensor<3xi32> {
  %0 = arith.fptosi %x : tensor<3xf32> to tensor<3xi32>
  graph.return %0 : tensor<3xi32>
}
)mlir",
                                            ParserConfig(&context));
  ASSERT_TRUE(module);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  Interpreter interpreter(*module, modular);
  EXPECT_TRUE(failed(interpreter.run("f", {draw({3}, 0, 3)})));
  EXPECT_EQ(message, "'arith.fptosi' op has no meaning modulo a prime");
}
