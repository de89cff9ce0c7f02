//===- StreamsTest.cpp - Results that are written past the caches
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/LowerToLLVM.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Codegen/KernelHarness.h"

#include <gtest/gtest.h>

using namespace bowline;
using namespace bowline::test;

namespace {

/// How often a streaming store and the fence behind it occur in the code for the only function of `source`.
struct Streams {
  size_t stores = 0, fences = 0;
};

Streams streamsOf(const std::string &source, int64_t streamedBytes) {
  mlir::DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  std::string text;
  llvm::raw_string_ostream stream(text);
  CpuTarget target;
  target.streamedBytes = streamedBytes;
  target.dump = &stream;
  CpuCodegen codegen(target);
  if (!module || failed(codegen.add(*module->getOps<mlir::func::FuncOp>().begin()))) {
    ADD_FAILURE() << "does not compile:\n" << source;
    return {};
  }
  std::string optimised = text.substr(text.find("; optimised"));
  auto count = [&](const std::string &word) {
    size_t found = 0;
    for (size_t at = optimised.find(word); at != std::string::npos; at = optimised.find(word, at + 1))
      ++found;
    return found;
  };
  return {count("!nontemporal") + count("\"vmovntps"), count("call void @llvm.x86.sse.sfence")};
}

std::string cast(const std::string &shape) {
  return "func.func @k(%a: tensor<" + shape + "xf32>) -> tensor<" + shape + "xbf16> {\n%r = arith.truncf %a : tensor<" +
         shape + "xf32> to tensor<" + shape + "xbf16>\nreturn %r : tensor<" + shape + "xbf16> }";
}

TEST(Streams, LargeResultsAreStreamed) {
  Streams streams = streamsOf(cast("64x128"), 2 * 64 * 128);
  EXPECT_GT(streams.stores, 0U);
  EXPECT_EQ(streams.fences, 1U);
}

TEST(Streams, SmallOnesAreNot) {
  Streams streams = streamsOf(cast("64x128"), 2 * 64 * 128 + 1);
  EXPECT_EQ(streams.stores, 0U);
  EXPECT_EQ(streams.fences, 0U);
}

/// The columns of a transposed tensor are its rows: 33 elements do not fill lines, 32 do.
TEST(Streams, RowsThatShareLinesAreNot) {
  auto transpose = [](const std::string &from, const std::string &to) {
    return "func.func @k(%a: tensor<" + from + "xf32>) -> tensor<" + to +
           "xf32> {\n%r = graph.transpose %a perm [1, 0] : " + "(tensor<" + from + "xf32>) -> tensor<" + to +
           "xf32>\nreturn %r : tensor<" + to + "xf32> }";
  };
  EXPECT_EQ(streamsOf(transpose("33x64", "64x33"), 0).stores, 0U);
  EXPECT_GT(streamsOf(transpose("32x64", "64x32"), 0).stores, 0U);
}

TEST(Streams, WhatMayTakeAnArgumentsPlaceIsNot) {
  Streams streams = streamsOf(R"(func.func @k(%a: tensor<4096xf32>) -> tensor<4096xf32> {
    %r = arith.addf %a, %a : tensor<4096xf32>
    return %r : tensor<4096xf32> })",
                              0);
  EXPECT_EQ(streams.stores, 0U);
}

/// Types of every width, whole vectors and tails, pieces of rows, several results, and reductions of a row beside its
/// elements.
TEST(Streams, EveryElementArrives) {
  for (const std::string &cpu : runnableTargets()) {
    SCOPED_TRACE(cpu);
    Kernels kernels(R"(
func.func @narrowed(%a: tensor<9x1024xf32>) -> (tensor<9x1024xbf16>, tensor<9x1024xf16>) {
  %b = arith.truncf %a : tensor<9x1024xf32> to tensor<9x1024xbf16>
  %h = arith.truncf %a : tensor<9x1024xf32> to tensor<9x1024xf16>
  return %b, %h : tensor<9x1024xbf16>, tensor<9x1024xf16> }
func.func @widened(%a: tensor<50000xbf16>) -> tensor<50000xf32> {
  %r = arith.extf %a : tensor<50000xbf16> to tensor<50000xf32>
  return %r : tensor<50000xf32> }
func.func @compared(%a: tensor<7x192xf32>, %b: tensor<192xf32>) -> tensor<7x192xi1> {
  %c = graph.broadcast %b dims [1] : (tensor<192xf32>) -> tensor<7x192xf32>
  %r = arith.cmpf ogt, %a, %c : tensor<7x192xf32>
  return %r : tensor<7x192xi1> }
func.func @joined(%a: tensor<6x48xf32>, %b: tensor<6x17xf32>) -> tensor<6x80xf32> {
  %p = graph.pad %b low [0, 0] high [0, 15] : (tensor<6x17xf32>) -> tensor<6x32xf32>
  %r = graph.concat %a, %p dim 1 : (tensor<6x48xf32>, tensor<6x32xf32>) -> tensor<6x80xf32>
  return %r : tensor<6x80xf32> }
func.func @normalised(%a: tensor<5x160xbf16>, %w: tensor<160xf32>) -> (tensor<5x160xf32>, tensor<5xf32>) {
  %x = arith.extf %a : tensor<5x160xbf16> to tensor<5x160xf32>
  %s = graph.reduce sum %x dims [1] : (tensor<5x160xf32>) -> tensor<5xf32>
  %m = graph.broadcast %s dims [0] : (tensor<5xf32>) -> tensor<5x160xf32>
  %v = graph.broadcast %w dims [1] : (tensor<160xf32>) -> tensor<5x160xf32>
  %d = arith.subf %x, %m : tensor<5x160xf32>
  %r = arith.mulf %d, %v : tensor<5x160xf32>
  return %r, %s : tensor<5x160xf32>, tensor<5xf32> })",
                    cpu, /*streamedBytes=*/0);
    ASSERT_TRUE(kernels.isLoaded());
    for (size_t i = 0; i < 5; ++i)
      kernels.checkRandom(i, 3 + i, i == 0 ? 0x1p-8 : 0, i == 4 ? 1e-6 : 0);
  }
}

} // namespace
