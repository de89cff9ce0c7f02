//===- VerifyNestsTest.cpp - Nests that write too little, too much or beside
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Decompose.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/Nests/Nest.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

using namespace bowline;
using namespace bowline::codegen;
using ::testing::HasSubstr;

namespace {

/// A kernel and its nests, as planned for a processor with vectors of 8 numbers.
class Planned {
public:
  explicit Planned(const std::string &source) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    kernel = *module->getOps<mlir::func::FuncOp>().begin();
    decomposeLayers(kernel.getBody().front());
    nests = std::move(*planNests(kernel));
    for (const auto &nest : nests)
      divideForCaches(*nest, kernel, 8);
  }

  /// The verifier's complaint; empty where it has none.
  std::string verdict() {
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      message = diagnostic.str();
      return mlir::success();
    });
    bool isRight = succeeded(verifyNests(nests, kernel));
    EXPECT_EQ(isRight, message.empty()) << message;
    return message;
  }

  Nest &first() { return *nests[0]; }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp kernel;
  llvm::SmallVector<std::unique_ptr<Nest>> nests;
};

const char *const kRowsAndSums = R"(func.func @k(%x: tensor<6x100xf32>) -> (tensor<6x100xf32>, tensor<6xf32>) {
  %m = graph.reduce sum %x dims [1] : (tensor<6x100xf32>) -> tensor<6xf32>
  %b = graph.broadcast %m dims [0] : (tensor<6xf32>) -> tensor<6x100xf32>
  %s = arith.divf %x, %b : tensor<6x100xf32>
  return %s, %m : tensor<6x100xf32>, tensor<6xf32> })";
const char *const kConcat = R"(func.func @k(%x: tensor<5x3xf32>, %y: tensor<5x4xf32>) -> tensor<5x7xf32> {
  %r = graph.concat %x, %y dim 1 : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<5x7xf32>
  return %r : tensor<5x7xf32> })";
const char *const kTranspose = R"(func.func @k(%x: tensor<100x64xf32>) -> tensor<64x100xf32> {
  %r = graph.transpose %x perm [1, 0] : (tensor<100x64xf32>) -> tensor<64x100xf32>
  return %r : tensor<64x100xf32> })";
const char *const kColumns = R"(func.func @k(%x: tensor<40x3000xf32>) -> tensor<3000xf32> {
  %r = graph.reduce sum %x dims [0] : (tensor<40x3000xf32>) -> tensor<3000xf32>
  return %r : tensor<3000xf32> })";

/// Reads all arguments `amount` elements further on.
void shiftLoads(Planned &planned, int64_t amount) {
  Nest &nest = planned.first();
  for (Nest::Store &store : nest.segments[0].stores)
    forEachExpr(store.value, [&](const Expr *expr) {
      if (expr->kind == Expr::Kind::Load)
        const_cast<Expr *>(expr)->index = nest.space.add(expr->index, nest.space.constant(amount));
    });
}

TEST(VerifyNests, AcceptsPlans) {
  for (const char *source : {kRowsAndSums, kConcat, kTranspose, kColumns})
    EXPECT_EQ(Planned(source).verdict(), "") << source;
}

struct Mistake {
  const char *source;
  std::function<void(Planned &)> make;
  const char *complaint;
};

TEST(VerifyNests, RefusesMistakes) {
  const char *const incomplete = "do not write each element of result 0 once";
  const Mistake mistakes[] = {
      // A result that nobody writes, and one that two nests write.
      {kConcat, [](Planned &p) { p.nests.clear(); }, "do not write result 0 exactly once"},
      {kColumns, [](Planned &p) { p.nests.push_back(std::move((*planNests(p.kernel))[0])); },
       "do not write result 0 exactly once"},
      {kRowsAndSums, [](Planned &p) { p.first().rowStores.clear(); }, "do not write result 1 exactly once"},
      // A part of each row is left out, or written twice.
      {kConcat, [](Planned &p) { p.first().segments.pop_back(); }, incomplete},
      {kConcat, [](Planned &p) { p.first().segments[0] = p.first().segments[1]; }, incomplete},
      {kConcat, [](Planned &p) { p.first().segments[1].stores.clear(); }, incomplete},
      // Rows: one short, two on the same place, the first not at the begin.
      {kConcat,
       [](Planned &p) {
         auto &store = p.first().segments[0].stores[0];
         store.index = p.first().space.add(store.index, p.first().space.constant(1));
       },
       incomplete},
      {kTranspose,
       [](Planned &p) {
         auto &store = p.first().segments[0].stores[0];
         store.index = p.first().space.scale(store.index, 2);
       },
       incomplete},
      {kRowsAndSums,
       [](Planned &p) {
         auto &space = p.first().space;
         unsigned shorter = space.addDim(5);
         for (auto &store : p.first().segments[0].stores)
           store.index = space.replace(store.index, {{p.first().outer[0], space.dim(shorter)}});
         p.first().outer[0] = shorter;
         p.first().units = 5;
       },
       "once"},
      // Units that leave the last block or tile out.
      {kTranspose, [](Planned &p) { --p.first().units; }, "but its loops have another number"},
      {kTranspose,
       [](Planned &p) {
         p.first().units = p.first().units / p.first().blocks * (p.first().blocks - 1);
         --p.first().blocks;
       },
       "but its loops have another number"},
      {kColumns, [](Planned &p) { p.first().units = p.first().blocks = 1; }, "but its loops have another number"},
      // Reads behind the end and before the begin of an argument.
      {kTranspose, [](Planned &p) { shiftLoads(p, 1); }, "elements 1 to 6400 of argument 0, which has 6400"},
      {kTranspose, [](Planned &p) { shiftLoads(p, -1); }, "elements -1 to 6398 of argument 0"},
  };
  for (const auto &[source, make, complaint] : mistakes) {
    Planned planned(source);
    make(planned);
    EXPECT_THAT(planned.verdict(), HasSubstr(complaint)) << source;
  }
}

} // namespace
