//===- OpsTest.cpp - Every operation against its reference semantics
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include <cmath>

#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace bowline::test;
using llvm::formatv;

namespace {

/// One func.func per entry: its arguments, results and body.
struct Case {
  std::string signature, body;
};

std::string moduleOf(const std::vector<Case> &cases) {
  std::string text;
  for (auto [i, current] : llvm::enumerate(cases))
    text += "func.func @k" + std::to_string(i) + current.signature + " {\n" + current.body + "\n}\n";
  return text;
}

void checkAll(const std::vector<Case> &cases, double relative, double absolute, double scale = 1) {
  for (const char *cpu : {"native", "x86-64-v3", "x86-64-v2"}) {
    SCOPED_TRACE(cpu);
    Kernels kernels(moduleOf(cases), cpu);
    ASSERT_TRUE(kernels.isLoaded());
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cases[i].body);
      kernels.checkRandom(i, 17 + i, relative, absolute, scale);
    }
  }
}

/// Sizes of one, primes, just beside and far beyond the widths of vectors.
const std::vector<std::string> kShapes = {"",     "1x",   "3x",   "16x",      "17x",    "64x",
                                          "129x", "1x1x", "5x7x", "2x3x1x5x", "20011x", "1x9001x"};

TEST(Ops, Elementwise) {
  std::vector<Case> cases;
  for (const std::string &shape : kShapes) {
    std::string t = "tensor<" + shape + "f32>", c = "tensor<" + shape + "i1>", n = "tensor<" + shape + "i32>";
    for (const char *op : {"addf", "subf", "mulf", "divf", "maximumf", "minimumf"})
      cases.push_back(
          {formatv("(%a: {0}, %b: {0}) -> {0}", t), formatv("%r = arith.{0} %a, %b : {1}\nreturn %r : {1}", op, t)});
    cases.push_back({formatv("(%a: {0}) -> {0}", t), formatv("%r = arith.negf %a : {0}\nreturn %r : {0}", t)});
    cases.push_back({formatv("(%a: {0}, %b: {0}) -> {1}", t, c),
                     formatv("%r = arith.cmpf olt, %a, %b : {0}\nreturn %r : {1}", t, c)});
    cases.push_back({formatv("(%c: {1}, %a: {0}, %b: {0}) -> {0}", t, c),
                     formatv("%r = arith.select %c, %a, %b : {1}, {0}\nreturn %r : {0}", t, c)});
    cases.push_back({formatv("(%a: {0}, %b: {0}) -> ({0}, {1}, {2})", n, c, t),
                     formatv("%s = arith.muli %a, %b : {0}\n%m = arith.subi %s, %b : {0}\n"
                             "%l = arith.cmpi slt, %a, %b : {0}\n%f = arith.sitofp %s : {0} to {2}\n"
                             "return %m, %l, %f : {0}, {1}, {2}",
                             n, c, t)});
    cases.push_back({formatv("(%a: {0}) -> (tensor<{1}f64>, {2})", t, shape, n),
                     formatv("%w = arith.extf %a : {0} to tensor<{1}f64>\n%i = arith.fptosi %a : {0} to {2}\n"
                             "return %w, %i : tensor<{1}f64>, {2}",
                             t, shape, n)});
    cases.push_back({formatv("() -> {0}", t), formatv("%r = arith.constant dense<2.5> : {0}\nreturn %r : {0}", t)});
  }
  checkAll(cases, 1e-7, 0);
}

TEST(Ops, TranscendentalOnRandomNumbers) {
  std::vector<Case> cases;
  for (const std::string &shape : kShapes) {
    std::string t = "tensor<" + shape + "f32>";
    for (const char *op : {"math.exp", "math.tanh", "math.erf", "graph.logistic", "graph.silu", "graph.gelu tanh",
                           "graph.gelu erf", "math.absf", "math.cos", "math.sin"})
      cases.push_back({formatv("(%a: {0}) -> {0}", t), formatv("%r = {0} %a : {1}\nreturn %r : {1}", op, t)});
    for (const char *op : {"math.log", "math.sqrt", "math.rsqrt"})
      cases.push_back({formatv("(%a: {0}) -> {0}", t),
                       formatv("%p = math.absf %a : {1}\n%r = {0} %p : {1}\nreturn %r : {1}", op, t)});
  }
  checkAll(cases, 1e-6, 2e-7, 3);
}

TEST(Ops, ScalarsInF64CallTheLibrary) {
  std::string t = "tensor<f64>";
  std::vector<Case> cases;
  for (const char *op : {"exp", "tanh", "erf", "cos", "sin", "sqrt", "log", "rsqrt"})
    cases.push_back({formatv("(%a: {0}) -> {0}", t),
                     formatv("%p = math.absf %a : {1}\n%r = math.{0} %p : {1}\nreturn %r : {1}", op, t)});
  cases.push_back({formatv("(%a: {0}, %b: {0}) -> {0}", t),
                   formatv("%p = math.absf %a : {0}\n%r = math.powf %p, %b : {0}\nreturn %r : {0}", t)});
  cases.push_back(
      {"(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<5xf64>",
       "%p = math.absf %a : tensor<5xf64>\n%r = math.powf %p, %b : tensor<5xf64>\nreturn %r : tensor<5xf64>"});
  checkAll(cases, 1e-14, 0);
}

TEST(Ops, Reductions) {
  std::vector<Case> cases;
  struct Shape {
    std::string input, dims, result;
  };
  for (const Shape &shape : std::vector<Shape>{{"1x", "[0]", ""},
                                               {"16x", "[0]", ""},
                                               {"1009x", "[0]", ""},
                                               {"5x384x", "[1]", "5x"},
                                               {"384x37x", "[0]", "37x"},
                                               {"31x257x", "[0, 1]", ""},
                                               {"3x4x65x", "[0, 1]", "65x"},
                                               {"3x4x65x", "[1, 2]", "3x"},
                                               {"3x4x65x", "[0, 2]", "4x"},
                                               {"3x4x65x", "[1]", "3x65x"},
                                               {"3x1x65x", "[1]", "3x65x"},
                                               {"2x3x5x7x2x", "[1, 3]", "2x5x2x"},
                                               {"70x300x", "[0]", "300x"}})
    for (const char *kind : {"sum", "max"})
      for (const char *element : {"f32", "i32"}) {
        std::string from = "tensor<" + shape.input + element + ">", to = "tensor<" + shape.result + element + ">";
        cases.push_back(
            {formatv("(%a: {0}) -> {1}", from, to),
             formatv("%r = graph.reduce {0} %a dims {1} : ({2}) -> {3}\nreturn %r : {3}", kind, shape.dims, from, to)});
      }
  for (const char *cpu : {"native", "x86-64-v3", "x86-64-v2"}) {
    SCOPED_TRACE(cpu);
    Kernels kernels(moduleOf(cases), cpu);
    ASSERT_TRUE(kernels.isLoaded());
    std::mt19937_64 generator(7);
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cases[i].body);
      // Whole numbers, so that every order of adding gives the exact sum.
      HostTensor input = Kernels::random(kernels.function(i).getArgumentTypes()[0], generator, 100);
      for (double &value : input.data)
        value = std::round(value);
      kernels.check(i, {input}, 0, 0);
    }
  }
}

TEST(Ops, LongSumsKeepTheirDigits) {
  Kernels kernels("func.func @k(%a: tensor<2000003xf32>) -> tensor<f32> {\n%r = graph.reduce sum %a dims [0] : "
                  "(tensor<2000003xf32>) -> tensor<f32>\nreturn %r : tensor<f32> }");
  ASSERT_TRUE(kernels.isLoaded());
  std::mt19937_64 generator(8);
  HostTensor input = Kernels::random(kernels.function(0).getArgumentTypes()[0], generator);
  for (double &value : input.data)
    value = std::fabs(value);
  kernels.check(0, {input}, 2e-6, 0);
}

TEST(Ops, MaximumOfNan) {
  Kernels kernels("func.func @k(%a: tensor<37xf32>) -> tensor<f32> {\n%r = graph.reduce max %a dims [0] : "
                  "(tensor<37xf32>) -> tensor<f32>\nreturn %r : tensor<f32> }");
  ASSERT_TRUE(kernels.isLoaded());
  for (size_t place : {0, 5, 36}) {
    HostTensor input({37});
    input.data[place] = std::numeric_limits<double>::quiet_NaN();
    kernels.check(0, {input}, 0, 0);
  }
}

TEST(Ops, Movements) {
  std::vector<Case> cases;
  auto add = [&](std::string op, std::string from, std::string to, std::string element) {
    std::string source = "tensor<" + from + element + ">", target = "tensor<" + to + element + ">";
    cases.push_back({formatv("(%a: {0}) -> {1}", source, target),
                     formatv("%r = graph.{0} : ({1}) -> {2}\nreturn %r : {2}", op, source, target)});
  };
  for (std::string element : {"f32", "i1", "f64"}) {
    add("broadcast %a dims []", "", "5x70x", element);
    add("broadcast %a dims [1]", "70x", "5x70x", element);
    add("broadcast %a dims [0]", "5x", "5x70x", element);
    add("broadcast %a dims [0, 2]", "3x17x", "3x4x17x", element);
    add("transpose %a perm [1, 0]", "33x70x", "70x33x", element);
    add("transpose %a perm [0, 2, 1, 3]", "2x3x5x18x", "2x5x3x18x", element);
    add("transpose %a perm [3, 1, 4, 0, 2]", "2x3x4x5x7x", "5x3x7x2x4x", element);
    add("reshape %a", "4x6x10x", "24x10x", element);
    add("reshape %a", "4x6x10x", "8x3x5x2x", element);
    add("reshape %a", "1x1x", "", element);
    add("reshape %a", "240x", "4x60x", element);
    add("slice %a at [1, 3] sizes [2, 17]", "4x40x", "2x17x", element);
    add("slice %a at [0, 0, 5, 0] sizes [3, 2, 1, 4]", "3x2x7x4x", "3x2x1x4x", element);
    add("pad %a low [1, 0] high [2, 5]", "3x20x", "6x25x", element);
    add("pad %a low [2, 3, 4] high [0, 1, 70]", "3x2x5x", "5x6x79x", element);
    add("pad %a low [7] high [9]", "5x", "21x", element);
  }
  for (int dim : {0, 1, 2}) {
    std::vector<std::string> sizes = {"3", "4", "20"}, other = sizes, joined = sizes;
    other[dim] = "7";
    joined[dim] = std::to_string(2 * std::stoi(sizes[dim]) + 7);
    auto type = [](const std::vector<std::string> &shape) { return "tensor<" + llvm::join(shape, "x") + "xf32>"; };
    cases.push_back({formatv("(%a: {0}, %b: {1}, %c: {0}) -> {2}", type(sizes), type(other), type(joined)),
                     formatv("%r = graph.concat %a, %b, %c dim {0} : ({1}, {2}, {1}) -> {3}\nreturn %r : {3}", dim,
                             type(sizes), type(other), type(joined))});
  }
  for (const char *type : {"tensor<5xi32>", "tensor<3x50xi32>", "tensor<3x50xi64>"})
    for (int dim : {0, 1})
      if (dim == 0 || type != std::string("tensor<5xi32>"))
        cases.push_back(
            {formatv("() -> {0}", type), formatv("%r = graph.iota dim {0} : {1}\nreturn %r : {1}", dim, type)});
  checkAll(cases, 0, 0);
}

TEST(Ops, Layers) {
  std::vector<Case> cases;
  for (std::string shape : {"1x", "13x", "3x384x", "2x5x100x", "7x4099x"}) {
    std::string t = "tensor<" + shape + "f32>";
    std::string width = shape.substr(0, shape.size() - 1);
    width = width.substr(width.rfind('x') == std::string::npos ? 0 : width.rfind('x') + 1);
    std::string w = "tensor<" + width + "xf32>";
    cases.push_back({formatv("(%x: {0}, %s: {1}) -> {0}", t, w),
                     formatv("%r = graph.rms_norm %x, %s eps 1.0e-6 : ({0}, {1}) -> {0}\nreturn %r : {0}", t, w)});
    cases.push_back(
        {formatv("(%x: {0}, %s: {1}, %b: {1}) -> {0}", t, w),
         formatv("%r = graph.layer_norm %x, %s, %b eps 1.0e-5 : ({0}, {1}, {1}) -> {0}\nreturn %r : {0}", t, w)});
  }
  for (const char *inverse : {"", "inverse "})
    for (auto [shape, table] :
         {std::pair("2x5x3x64x", "5x32x"), std::pair("1x7x1x2x", "7x1x"), std::pair("2x3x4x10x", "3x5x")})
      cases.push_back(
          {formatv("(%x: tensor<{0}f32>, %c: tensor<{1}f32>, %s: tensor<{1}f32>) -> tensor<{0}f32>", shape, table),
           formatv("%r = graph.rope {2}%x, %c, %s : (tensor<{0}f32>, tensor<{1}f32>, tensor<{1}f32>) -> "
                   "tensor<{0}f32>\nreturn %r : tensor<{0}f32>",
                   shape, table, inverse)});
  checkAll(cases, 2e-6, 4e-7);
}

TEST(Ops, SoftmaxCrossEntropy) {
  std::vector<std::pair<std::string, int64_t>> shapes = {
      {"", 3}, {"1x", 1}, {"7x", 256}, {"2x3x", 1009}, {"3x", 50257}};
  std::vector<Case> cases;
  for (auto &[rows, width] : shapes) {
    std::string logits = formatv("tensor<{0}{1}xf32>", rows, width), labels = "tensor<" + rows + "i32>",
                per = "tensor<" + rows + "f32>";
    cases.push_back({formatv("(%x: {0}, %l: {1}) -> ({2}, {2})", logits, labels, per),
                     formatv("%a, %b = graph.softmax_cross_entropy %x, %l : ({0}, {1}) -> ({2}, {2})\n"
                             "return %a, %b : {2}, {2}",
                             logits, labels, per)});
    cases.push_back({formatv("(%x: {0}, %l: {1}, %e: {2}, %g: {2}) -> {0}", logits, labels, per),
                     formatv("%r = graph.softmax_cross_entropy_grad %x, %l, %e, %g : ({0}, {1}, {2}, {2}) -> {0}\n"
                             "return %r : {0}",
                             logits, labels, per)});
  }
  for (double scale : {1.0, 1000.0}) {
    Kernels kernels(moduleOf(cases));
    ASSERT_TRUE(kernels.isLoaded());
    std::mt19937_64 generator(5);
    for (size_t i = 0; i < cases.size(); ++i) {
      auto types = kernels.function(i).getArgumentTypes();
      int64_t width = shapes[i / 2].second;
      std::vector<HostTensor> inputs = {Kernels::random(types[0], generator, scale),
                                        Kernels::random(types[1], generator, 1, -1, width)};
      if (i % 2) {
        // The statistics that belong to the logits.
        HostTensor sums = kernels.evaluate(i - 1, inputs)[1];
        std::vector<char> rounded(bytesOf(types[2]));
        encode(sums, types[2], rounded.data());
        inputs.push_back(decode(rounded.data(), types[2]));
        inputs.push_back(Kernels::random(types[3], generator));
      }
      // The exponent's absolute error is that of a difference of numbers of the size of the scale.
      kernels.check(i, inputs, 4e-6, 1e-6 * std::max(1.0, i % 2 ? scale / 4 : 1.0));
    }
  }
}

} // namespace
