//===- GradientCheckTest.cpp - Gradients of losses that differences hardly see
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// The sum of a function of 128 values, each multiplied by its index times `factor`.
std::string lossOf(const std::string &factor, const std::string &function) {
  return R"mlir(
graph.param @w : tensor<8x8xf32> init(#graph.normal<0.5>) key("w")
graph.func loss @loss(%x: tensor<16x8xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  %w = graph.read @w : tensor<8x8xf32>
  %h = graph.dot_general %x, %w contract [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %row = graph.reshape %h : (tensor<16x8xf32>) -> tensor<128xf32>
  %i = graph.iota dim 0 : tensor<128xi32>
  %f = arith.sitofp %i : tensor<128xi32> to tensor<128xf32>
  %factor = arith.constant dense<)mlir" +
         factor + R"mlir(> : tensor<128xf32>
  %steep = arith.mulf %f, %factor : tensor<128xf32>
  %z = arith.mulf %row, %steep : tensor<128xf32>
  %y = )mlir" +
         function + R"mlir( : tensor<128xf32>
  %sum = graph.reduce sum %y dims [0] : (tensor<128xf32>) -> tensor<f32>
  %positions = arith.constant dense<16.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
}
)mlir";
}

class GradientCheck : public SmallPipelines {
protected:
  struct Result {
    bool fails, isRefuted;
    EquivalenceChecker::Summary summary;
    std::string errors, warnings;
  };

  /// Differentiates, and scales the gradient where it is written.
  Result differentiate(const std::string &text, double scale = 1) {
    Result result;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      (diagnostic.getSeverity() == DiagnosticSeverity::Error ? result.errors : result.warnings) += diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module && succeeded(addStrategyFlags(*module, StrategyFlags())));
    EquivalenceChecker checker;
    EXPECT_TRUE(succeeded(checker.begin(*module)));
    PassManager passes(&context);
    passes.addPass(createDifferentiate());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    if (scale != 1)
      module->walk([&](graph::WriteOp write) {
        if (write.getVariable() == "w.grad")
          scaleValue(write, scale);
      });
    result.fails = failed(checker.check("differentiate", *module));
    result.isRefuted = checker.isRefuted();
    result.summary = checker.summary();
    return result;
  }

private:
  static void scaleValue(graph::WriteOp write, double scale) {
    OpBuilder b(write);
    auto type = cast<RankedTensorType>(write.getValue().getType());
    auto factor = DenseElementsAttr::get(type, Attribute(b.getFloatAttr(type.getElementType(), scale)));
    Value constant = arith::ConstantOp::create(b, write.getLoc(), factor);
    write.getValueMutable().assign(arith::MulFOp::create(b, write.getLoc(), write.getValue(), constant));
  }
};

} // namespace

/// Each value goes from one end of the function to the other within a small part of the first distance.
TEST_F(GradientCheck, SteepLossesAreLookedAtFromNearby) {
  for (const char *factor : {"1.0", "5.0", "10.0", "20.0"}) {
    SCOPED_TRACE(factor);
    Result right = differentiate(lossOf(factor, "graph.softcap %z cap 2.0"));
    EXPECT_FALSE(right.fails) << right.errors;
    EXPECT_EQ(right.warnings, "");
    EXPECT_EQ(right.summary.gradients, 1);
    EXPECT_EQ(right.summary.undecided, 0);

    Result wrong = differentiate(lossOf(factor, "graph.softcap %z cap 2.0"), 1.001);
    EXPECT_TRUE(wrong.fails && wrong.isRefuted) << wrong.warnings;
    EXPECT_THAT(wrong.errors, AllOf(HasSubstr("step 'differentiate' gives parameter @w a wrong gradient: it is "),
                                    HasSubstr("where central differences of the loss are ")));
  }
}

/// A wave of many periods within every distance: nothing is known, and nothing is refused.
TEST_F(GradientCheck, WavesAreUndecided) {
  for (double scale : {1.0, 1.001}) {
    Result result = differentiate(lossOf("1.0e7", "math.sin %z"), scale);
    EXPECT_FALSE(result.fails) << result.errors;
    EXPECT_EQ(result.summary.gradients, 0);
    EXPECT_EQ(result.summary.undecided, 1);
    EXPECT_THAT(
        result.warnings,
        AllOf(HasSubstr("step 'differentiate' gives parameter @w a gradient that could not be compared: it is "),
              HasSubstr("over the smallest distance, and others over larger ones")));
  }
}
