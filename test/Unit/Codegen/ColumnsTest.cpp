//===- ColumnsTest.cpp - Column sums in one pass with what they sum
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace bowline::test;
using llvm::formatv;

namespace {

using Pairs = llvm::SmallVector<std::pair<int, int>>;

struct Size {
  int blocks, rows, width;
};
const std::vector<Size> kSizes = {{1, 2, 2},     {8, 16, 384}, {3, 7, 70}, {5, 2, 17},
                                  {2, 33, 1000}, {4, 3, 1},    {6, 1, 40}};

/// Replaces $X by tensor<[rows]x[width]x[type]>, $Z by the same in f32, $B in blocks, $P partial sums, $W one row,
/// $R one value per row, $L rows apart in two dimensions, $M one over the width.
std::string instantiate(std::string text, Size size, const std::string &type) {
  int total = size.blocks * size.rows;
  std::pair<char, std::string> names[] = {
      {'X', formatv("tensor<{0}x{1}x{2}>", total, size.width, type)},
      {'Z', formatv("tensor<{0}x{1}xf32>", total, size.width)},
      {'B', formatv("tensor<{0}x{1}x{2}xf32>", size.blocks, size.rows, size.width)},
      {'P', formatv("tensor<{0}x{1}xf32>", size.blocks, size.width)},
      {'W', formatv("tensor<{0}xf32>", size.width)},
      {'R', formatv("tensor<{0}xf32>", total)},
      {'M', formatv("{0:e8}", 1.0 / size.width)},
  };
  for (auto &[name, value] : names)
    for (size_t at; (at = text.find(std::string("$") + name)) != std::string::npos;)
      text.replace(at, 2, value);
  return text;
}

void checkKernel(const std::string &source, Size size, const std::string &type, bool isOnePass,
                 llvm::function_ref<void(Kernels &)> inspect = nullptr) {
  for (const char *cpu : {"native", "x86-64-v3", "x86-64-v2"}) {
    SCOPED_TRACE(
        formatv("{0} blocks of {1} rows of {2} {3}, {4}", size.blocks, size.rows, size.width, type, cpu).str());
    Kernels kernels(instantiate(source, size, type), cpu);
    ASSERT_TRUE(kernels.isLoaded());
    kernels.checkRandom(0, 100 + size.width, type == "f32" ? 8e-6 : 0x1p-8, 4e-6);
    if (isOnePass && size.rows > 1 && size.width > 1)
      EXPECT_EQ(kernels.info(0).parallelExtent, size.blocks) << "not in one pass";
    if (inspect)
      inspect(kernels);
  }
}

/// dx and dscale: statistics of each row, one pass.
const char *kRmsNormBackward = R"(func.func @k(%x: $X, %s: $W, %g: $X) -> ($X, $P) {
  %xw = arith.extf %x : $X to $Z
  %gw = arith.extf %g : $X to $Z
  %sq = arith.mulf %xw, %xw : $Z
  %sum = graph.reduce sum %sq dims [1] : ($Z) -> $R
  %inv = arith.constant dense<$M> : $R
  %mean = arith.mulf %sum, %inv : $R
  %eps = arith.constant dense<1.0e-6> : $R
  %me = arith.addf %mean, %eps : $R
  %rs = math.rsqrt %me : $R
  %rb = graph.broadcast %rs dims [0] : ($R) -> $Z
  %n = arith.mulf %xw, %rb : $Z
  %sb = graph.broadcast %s dims [1] : ($W) -> $Z
  %gs = arith.mulf %gw, %sb : $Z
  %gn = arith.mulf %gs, %n : $Z
  %psum = graph.reduce sum %gn dims [1] : ($Z) -> $R
  %pm = arith.mulf %psum, %inv : $R
  %pb = graph.broadcast %pm dims [0] : ($R) -> $Z
  %np = arith.mulf %n, %pb : $Z
  %d = arith.subf %gs, %np : $Z
  %dxw = arith.mulf %rb, %d : $Z
  %dx = arith.truncf %dxw : $Z to $X
  %gx = arith.mulf %gw, %n : $Z
  %blocks = graph.reshape %gx : ($Z) -> $B
  %ds = graph.reduce sum %blocks dims [1] : ($B) -> $P
  return %dx, %ds : $X, $P })";

/// f32 needs no conversion, and arith.extf refuses one.
std::string withoutConversions(std::string text) {
  for (auto [from, to] : {std::pair("arith.extf %x : $X to $Z", "arith.negf %x : $Z"),
                          std::pair("arith.extf %g : $X to $Z", "arith.negf %g : $Z"),
                          std::pair("arith.truncf %dxw : $Z to $X", "arith.negf %dxw : $Z")})
    if (size_t at = text.find(from); at != std::string::npos)
      text.replace(at, std::string(from).size(), to);
  return text;
}

TEST(Columns, RmsNormBackward) {
  for (Size size : kSizes) {
    checkKernel(withoutConversions(kRmsNormBackward), size, "f32", true, [&](Kernels &kernels) {
      if (size.rows == 1 || size.width == 1)
        return;
      EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(0, 0)));
      EXPECT_TRUE(llvm::is_contained(kernels.info(0).inPlace, std::pair(0, 2)));
      for (auto [output, input] : kernels.info(0).inPlace)
        EXPECT_EQ(output, 0) << "partial sums are written while rows are read";
    });
    checkKernel(kRmsNormBackward, size, "bf16", true);
  }
}

/// dx, dscale, dbias and a value per row.
TEST(Columns, LayerNormBackwardWithTwoSums) {
  const char *source = R"(func.func @k(%x: $Z, %s: $W, %g: $Z) -> ($P, $R, $Z, $P) {
    %inv = arith.constant dense<$M> : $R
    %sum = graph.reduce sum %x dims [1] : ($Z) -> $R
    %mean = arith.mulf %sum, %inv : $R
    %mb = graph.broadcast %mean dims [0] : ($R) -> $Z
    %c = arith.subf %x, %mb : $Z
    %sq = arith.mulf %c, %c : $Z
    %vs = graph.reduce sum %sq dims [1] : ($Z) -> $R
    %v = arith.mulf %vs, %inv : $R
    %eps = arith.constant dense<1.0e-2> : $R
    %ve = arith.addf %v, %eps : $R
    %rs = math.rsqrt %ve : $R
    %rb = graph.broadcast %rs dims [0] : ($R) -> $Z
    %n = arith.mulf %c, %rb : $Z
    %sb = graph.broadcast %s dims [1] : ($W) -> $Z
    %gs = arith.mulf %g, %sb : $Z
    %gm = graph.reduce sum %gs dims [1] : ($Z) -> $R
    %gmm = arith.mulf %gm, %inv : $R
    %gmb = graph.broadcast %gmm dims [0] : ($R) -> $Z
    %d0 = arith.subf %gs, %gmb : $Z
    %dx = arith.mulf %d0, %rb : $Z
    %gx = arith.mulf %g, %n : $Z
    %b0 = graph.reshape %gx : ($Z) -> $B
    %ds = graph.reduce sum %b0 dims [1] : ($B) -> $P
    %b1 = graph.reshape %g : ($Z) -> $B
    %db = graph.reduce sum %b1 dims [1] : ($B) -> $P
    return %ds, %mean, %dx, %db : $P, $R, $Z, $P })";
  for (Size size : kSizes)
    checkKernel(source, size, "f32", true);
}

/// The gradient through an activation, and the bias gradient of the layer in front of it.
TEST(Columns, ActivationBackwardAndBias) {
  const char *source = R"(func.func @k(%x: $X, %g: $X) -> ($X, $P) {
    %xw = arith.extf %x : $X to $Z
    %gw = arith.extf %g : $X to $Z
    %a = graph.logistic %xw : $Z
    %dxw = arith.mulf %gw, %a : $Z
    %dx = arith.truncf %dxw : $Z to $X
    %b = graph.reshape %dxw : ($Z) -> $B
    %db = graph.reduce sum %b dims [1] : ($B) -> $P
    return %dx, %db : $X, $P })";
  for (Size size : kSizes) {
    checkKernel(withoutConversions(source), size, "f32", true);
    checkKernel(source, size, "bf16", true);
  }
}

/// Nothing is saved by one pass: blocks of columns run in parallel too, where there are few blocks of rows.
TEST(Columns, SumsAloneDivideColumnsToo) {
  const char *source = R"(func.func @k(%x: $Z, %g: $Z) -> ($P, $P) {
    %m = arith.mulf %x, %g : $Z
    %b0 = graph.reshape %m : ($Z) -> $B
    %s0 = graph.reduce sum %b0 dims [1] : ($B) -> $P
    %b1 = graph.reshape %g : ($Z) -> $B
    %s1 = graph.reduce sum %b1 dims [1] : ($B) -> $P
    return %s0, %s1 : $P, $P })";
  for (Size size : kSizes)
    checkKernel(source, size, "f32", false, [&](Kernels &kernels) {
      if (size.rows >= 16)
        EXPECT_GE(kernels.info(0).parallelExtent, std::min(8, size.blocks * ((size.width + 255) / 256)));
    });
}

/// Rows that lie in two dimensions, and blocks that do not end where the outer one does; conditions along the row.
TEST(Columns, BlocksAcrossTheOuterDimension) {
  Kernels kernels(
      R"(func.func @k(%x: tensor<6x10x33xf32>) -> (tensor<6x10x50xf32>, tensor<4x50xf32>, tensor<6x10xf32>) {
    %p = graph.pad %x low [0, 0, 9] high [0, 0, 8] : (tensor<6x10x33xf32>) -> tensor<6x10x50xf32>
    %q = arith.mulf %p, %p : tensor<6x10x50xf32>
    %r = graph.reduce sum %q dims [2] : (tensor<6x10x50xf32>) -> tensor<6x10xf32>
    %rb = graph.broadcast %r dims [0, 1] : (tensor<6x10xf32>) -> tensor<6x10x50xf32>
    %f = arith.addf %p, %rb : tensor<6x10x50xf32>
    %b = graph.reshape %f : (tensor<6x10x50xf32>) -> tensor<4x15x50xf32>
    %s = graph.reduce sum %b dims [1] : (tensor<4x15x50xf32>) -> tensor<4x50xf32>
    return %f, %s, %r : tensor<6x10x50xf32>, tensor<4x50xf32>, tensor<6x10xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  EXPECT_EQ(kernels.info(0).parallelExtent, 4);
  kernels.checkRandom(0, 1, 2e-6, 1e-6);
}

/// Reductions across rows and nothing else: few rows, rows that no number of rows at a time divides, several blocks of
/// columns, of which one range computes some together, parts of vectors.
TEST(Columns, ReductionsAlone) {
  for (const char *cpu : {"native", "x86-64-v3", "x86-64-v2"})
    for (std::string element : {"f32", "bf16", "f64"})
      for (auto [blocks, rows, width] :
           std::vector<Size>{{1, 16, 65}, {3, 17, 300}, {2, 100, 1025}, {9, 31, 2050}, {1, 67, 4001}}) {
        SCOPED_TRACE(formatv("{0} blocks of {1} rows of {2} {3}, {4}", blocks, rows, width, element, cpu).str());
        std::string sums = element == "f64" ? "f64" : "f32",
                    in = formatv("tensor<{0}x{1}x{2}x{3}>", blocks, rows, width, element),
                    wide = formatv("tensor<{0}x{1}x{2}x{3}>", blocks, rows, width, sums),
                    out = formatv("tensor<{0}x{1}x{2}>", blocks, width, sums),
                    all = formatv("tensor<{0}x{1}>", width, sums);
        std::string widen = element == "bf16" ? formatv("arith.extf %x : {0} to {1}", in, wide).str()
                                              : formatv("arith.negf %x : {0}", in).str();
        Kernels kernels(formatv(R"(func.func @k(%x: {0}) -> ({2}, {2}, {2}, {3}) {{
  %w = {4}
  %q = arith.mulf %w, %w : {1}
  %s = graph.reduce sum %w dims [1] : ({1}) -> {2}
  %m = graph.reduce max %w dims [1] : ({1}) -> {2}
  %n = graph.reduce sum %q dims [1] : ({1}) -> {2}
  %r = arith.subf %n, %m : {2}
  %a = graph.reduce sum %q dims [0, 1] : ({1}) -> {3}
  return %s, %m, %r, %a : {2}, {2}, {2}, {3} })",
                                in, wide, out, all, widen),
                        cpu);
        ASSERT_TRUE(kernels.isLoaded());
        kernels.checkRandom(0, 300 + width, 1e-6, 1e-6);
      }
}

} // namespace
