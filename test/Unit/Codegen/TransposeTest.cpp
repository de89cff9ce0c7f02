//===- TransposeTest.cpp - Kernels that read in another order than they write
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

using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

namespace {

std::string typeOf(const std::vector<int64_t> &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string listOf(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

struct Permutation {
  std::vector<int64_t> shape, order;

  std::vector<int64_t> result() const {
    std::vector<int64_t> sizes;
    for (int64_t dim : order)
      sizes.push_back(shape[dim]);
    return sizes;
  }
};

/// Squares that are whole, parts of one in either direction, in both, several tiles and blocks, and rows that lie
/// apart.
const std::vector<Permutation> kPermutations = {{{1, 9}, {1, 0}},
                                                {{4, 4}, {1, 0}},
                                                {{3, 100}, {1, 0}},
                                                {{100, 3}, {1, 0}},
                                                {{16, 16}, {1, 0}},
                                                {{17, 31}, {1, 0}},
                                                {{32, 64}, {1, 0}},
                                                {{37, 1040}, {1, 0}},
                                                {{1025, 33}, {1, 0}},
                                                {{7, 2051}, {1, 0}},
                                                {{3, 20, 37}, {0, 2, 1}},
                                                {{5, 40, 18}, {2, 0, 1}},
                                                {{18, 3, 70}, {2, 1, 0}},
                                                {{9, 17, 33}, {1, 2, 0}},
                                                {{2, 19, 3, 35}, {0, 3, 2, 1}},
                                                {{23, 6, 64}, {1, 0, 2}},
                                                {{2, 21, 5, 70}, {0, 2, 1, 3}},
                                                {{3, 24, 4, 32}, {0, 2, 1, 3}},
                                                {{2, 3, 40, 64}, {0, 2, 1, 3}},
                                                {{5, 4, 36, 3, 32}, {4, 2, 1, 0, 3}},
                                                {{70, 300, 16}, {1, 0, 2}},
                                                {{3, 7, 5, 11}, {3, 2, 1, 0}}};

void checkAll(const std::string &source, double relative, double absolute) {
  for (const std::string &cpu : runnableTargets())
    for (bool isStreamed : {false, true}) {
      SCOPED_TRACE(cpu + (isStreamed ? ", streamed" : ""));
      Kernels kernels(source, cpu, isStreamed ? 0 : CpuTarget().streamedBytes);
      ASSERT_TRUE(kernels.isLoaded());
      for (size_t i = 0; i < kPermutations.size(); ++i) {
        SCOPED_TRACE(listOf(kPermutations[i].shape) + " in order " + listOf(kPermutations[i].order));
        kernels.checkRandom(i, 31 + i, relative, absolute);
      }
    }
}

class Transpose : public testing::TestWithParam<const char *> {};

TEST_P(Transpose, EveryElementArrives) {
  std::string source, element = GetParam();
  for (auto [i, permutation] : llvm::enumerate(kPermutations)) {
    std::string from = typeOf(permutation.shape, element), to = typeOf(permutation.result(), element);
    source += formatv("func.func @k{0}(%a: {1}) -> {2} {{\n%r = graph.transpose %a perm {3} : ({1}) -> {2}\n"
                      "return %r : {2} }\n",
                      i, from, to, listOf(permutation.order));
  }
  checkAll(source, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(Elements, Transpose, testing::Values("f32", "bf16", "f16", "f64", "i1", "i32"));

/// Two arguments that are transposed, one of them narrow, one as it is written, which gives its memory, and one whose
/// rows are repeated; the result as it is and rounded.
TEST(Transpose, WithArithmetic) {
  std::string source;
  for (auto [i, permutation] : llvm::enumerate(kPermutations)) {
    std::vector<int64_t> shape = permutation.result();
    std::string from = typeOf(permutation.shape, "f32"), narrow = typeOf(permutation.shape, "bf16"),
                to = typeOf(shape, "f32"), rounded = typeOf(shape, "bf16"), row = typeOf({shape.back()}, "f32");
    source += formatv(R"(func.func @k{0}(%a: {1}, %b: {2}, %c: {3}, %d: {5}) -> ({3}, {4}) {{
  %w = arith.extf %b : {2} to {1}
  %p = arith.mulf %a, %w : {1}
  %t = graph.transpose %p perm {6} : ({1}) -> {3}
  %s = arith.subf %t, %c : {3}
  %e = graph.broadcast %d dims [{7}] : ({5}) -> {3}
  %r = arith.mulf %s, %e : {3}
  %n = graph.transpose %b perm {6} : ({2}) -> {4}
  return %r, %n : {3}, {4} }
)",
                      i, from, narrow, to, rounded, row, listOf(permutation.order), shape.size() - 1);
  }
  // The difference cancels.
  checkAll(source, 2e-7, 2e-7);
}

/// Kernels do not read beyond the argument's end.
TEST(Transpose, OfPaddedAndJoinedRows) {
  Kernels kernels(R"(
func.func @padded(%a: tensor<30x37xf32>) -> tensor<44x35xf32> {
  %p = graph.pad %a low [2, 3] high [3, 4] : (tensor<30x37xf32>) -> tensor<35x44xf32>
  %t = graph.transpose %p perm [1, 0] : (tensor<35x44xf32>) -> tensor<44x35xf32>
  return %t : tensor<44x35xf32> }
func.func @sliced(%a: tensor<50x61xbf16>) -> tensor<33x18xbf16> {
  %s = graph.slice %a at [32, 28] sizes [18, 33] : (tensor<50x61xbf16>) -> tensor<18x33xbf16>
  %t = graph.transpose %s perm [1, 0] : (tensor<18x33xbf16>) -> tensor<33x18xbf16>
  return %t : tensor<33x18xbf16> }
func.func @joined(%a: tensor<20x37xf32>, %b: tensor<37x50xf32>) -> tensor<37x70xf32> {
  %t = graph.transpose %a perm [1, 0] : (tensor<20x37xf32>) -> tensor<37x20xf32>
  %j = graph.concat %t, %b dim 1 : (tensor<37x20xf32>, tensor<37x50xf32>) -> tensor<37x70xf32>
  return %j : tensor<37x70xf32> }
func.func @both(%a: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %t = graph.transpose %a perm [1, 0] : (tensor<40x40xf32>) -> tensor<40x40xf32>
  %s = arith.addf %a, %t : tensor<40x40xf32>
  return %s : tensor<40x40xf32> }
func.func @regrouped(%a: tensor<6x35x16xf32>) -> tensor<16x210xf32> {
  %f = graph.reshape %a : (tensor<6x35x16xf32>) -> tensor<210x16xf32>
  %t = graph.transpose %f perm [1, 0] : (tensor<210x16xf32>) -> tensor<16x210xf32>
  return %t : tensor<16x210xf32> })");
  ASSERT_TRUE(kernels.isLoaded());
  for (size_t i = 0; i < 5; ++i)
    kernels.checkRandom(i, 7 + i, 0, i == 3 ? 1e-7 : 0);
  EXPECT_TRUE(kernels.info(3).inPlace.empty());
}

} // namespace
