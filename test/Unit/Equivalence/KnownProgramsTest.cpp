//===- KnownProgramsTest.cpp - Wrong numbers that users of other frameworks reported
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each is a tiny program of several ranks that runs, and computes something else than the program on one rank. It must
// be refused for that reason, beside the form that must pass: that of the passes, or one written by hand. Programs that
// hang or damage memory are in test/Unit/Check/known_disasters_test.cc.
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Local/Passes.h"
#include "passes/Sharding/Passes.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class KnownPrograms : public SmallPipelines {
protected:
  OwningOpRef<ModuleOp> parse(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module);
    return module;
  }

  /// The checker's message on `local` as a step after `whole`; "" where they compute the same.
  std::string compare(ModuleOp whole, ModuleOp local) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    EquivalenceChecker checker;
    bool fails = failed(checker.begin(whole)) || failed(checker.check("local", local));
    EXPECT_EQ(fails, !message.empty());
    EXPECT_TRUE(fails || checker.summary().steps.size() == 1);
    return message;
  }
  std::string compare(const std::string &whole, const std::string &local) {
    return compare(*parse(whole), *parse(local));
  }

  /// A program with shardings, as the passes make it local.
  OwningOpRef<ModuleOp> localized(const std::string &text) {
    OwningOpRef<ModuleOp> module = parse(text);
    PassManager passes(&context);
    passes.addPass(createPadForDivisibility());
    passes.addPass(createPropagateShardings());
    passes.addPass(createGlobalToLocal());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }
};

/// Ten rows of a table over four ranks, each of which has three; the last one pads two.
constexpr const char *kVocabulary = R"mlir(
dist.mesh @mesh ["tp"] [4]
graph.param @table : tensor<10x2xf32> init(#graph.normal<1.0>) key("table") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @embed(%tokens: tensor<16xi32> {graph.limit = 10 : i64, graph.name = "tokens"}) -> tensor<16x2xf32> {
  %table = graph.read @table : tensor<10x2xf32>
  %0 = graph.gather %table[%tokens] : (tensor<10x2xf32>, tensor<16xi32>) -> tensor<16x2xf32>
  graph.return %0 : tensor<16x2xf32>
}
)mlir";

/// The mean of the losses that count.
constexpr const char *kMean = R"mlir(
dist.mesh @mesh ["cp"] [2]
graph.func loss @loss(%losses: tensor<8xf32> {graph.name = "losses"}, %counts: tensor<8xi32> {graph.limit = 2 : i64, graph.name = "counts"}) -> tensor<f32> {
  %0 = arith.sitofp %counts : tensor<8xi32> to tensor<8xf32>
  %1 = arith.mulf %losses, %0 : tensor<8xf32>
  %2 = graph.reduce sum %1 dims [0] : (tensor<8xf32>) -> tensor<f32>
  %3 = graph.reduce sum %0 dims [0] : (tensor<8xf32>) -> tensor<f32>
  %4 = arith.divf %2, %3 : tensor<f32>
  graph.return %4 : tensor<f32>
}
)mlir";

/// The same on two ranks with half of the positions each; `end` combines their sums %2 and %3.
std::string meanOfHalves(const std::string &end) {
  std::string half = "dist.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<[{\"cp\"}]>";
  return "dist.mesh @mesh [\"cp\"] [2]\n"
         "graph.func loss @loss(%losses: tensor<4xf32> {" +
         half +
         ", graph.name = \"losses\"}, "
         "%counts: tensor<4xi32> {" +
         half +
         ", graph.limit = 2 : i64, graph.name = \"counts\"}) -> tensor<f32> {\n"
         "  %0 = arith.sitofp %counts : tensor<4xi32> to tensor<4xf32>\n"
         "  %1 = arith.mulf %losses, %0 : tensor<4xf32>\n"
         "  %2 = graph.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>\n"
         "  %3 = graph.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>\n" +
         end + "  graph.return %r : tensor<f32>\n}\n";
}

/// A product whose contracted dimension is cut, and a bias.
constexpr const char *kBias = R"mlir(
dist.mesh @mesh ["tp"] [2]
graph.func @project(%x: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>, graph.name = "x"}, %w: tensor<4x5xf32> {dist.sharding = #dist.sharding<[{"tp"}, {}]>, graph.name = "w"}, %b: tensor<3x5xf32> {graph.name = "b"}) -> tensor<3x5xf32> {
  %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %1 = arith.addf %0, %b : tensor<3x5xf32>
  graph.return %1 : tensor<3x5xf32>
}
)mlir";

/// Ten elements of a vector over four ranks.
constexpr const char *kTen = R"mlir(
dist.mesh @mesh ["x"] [4]
graph.param @v : tensor<10xf32> init(#graph.normal<1.0>) key("v") {dist.sharding = #dist.sharding<[{"x"}]>}
graph.func @negative() -> tensor<10xf32> {
  %v = graph.read @v : tensor<10xf32>
  %0 = arith.negf %v : tensor<10xf32>
  graph.return %0 : tensor<10xf32>
}
)mlir";

/// Axes that change places between two dimensions.
constexpr const char *kExchange = R"mlir(
dist.mesh @mesh ["x", "y"] [2, 4]
graph.func @negative(%a: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"x"}, {"y"}]>, graph.name = "a"}) -> tensor<8x16xf32> {
  %0 = dist.reshard %a to <[{"y"}, {"x"}]> : tensor<8x16xf32>
  %1 = arith.negf %0 : tensor<8x16xf32>
  graph.return %1 : tensor<8x16xf32>
}
)mlir";

/// Two axes of one dimension that are gathered together.
constexpr const char *kTogether = R"mlir(
dist.mesh @mesh ["x", "y"] [2, 4]
graph.func @whole(%a: tensor<8x3xf32> {dist.sharding = #dist.sharding<[{"x", "y"}, {}]>, graph.name = "a"}) -> tensor<8x3xf32> {
  %0 = dist.reshard %a to <[{}, {}]> : tensor<8x3xf32>
  graph.return %0 : tensor<8x3xf32>
}
)mlir";

} // namespace

// NVIDIA/Megatron-LM 1754: tensor parallelism trains to another loss where the vocabulary does not divide.
TEST_F(KnownPrograms, VocabularyThatDoesNotDivide) {
  OwningOpRef<ModuleOp> whole = parse(kVocabulary), local = localized(kVocabulary);
  EXPECT_EQ(compare(*whole, *local), "");

  // Rows are counted as though each rank had 10 / 4 of them, rounded down: tokens go to the wrong rank.
  OwningOpRef<ModuleOp> shifted = local->clone();
  int changed = 0;
  shifted->walk([&](arith::MulIOp first) {
    OpBuilder builder(first);
    auto type = cast<RankedTensorType>(first.getType());
    first.getRhsMutable().assign(
        arith::ConstantOp::create(builder, first.getLoc(), DenseElementsAttr::get(type, builder.getI32IntegerAttr(2))));
    ++changed;
  });
  EXPECT_GT(changed, 0);
  EXPECT_THAT(compare(*whole, *shifted),
              AllOf(HasSubstr("step 'local' changes what is computed: after @embed result"), HasSubstr(", in f64")));

  // Two rows less: they would be on no rank.
  OwningOpRef<ModuleOp> lost = local->clone();
  for (auto param : lost->getOps<graph::ParamOp>())
    param.setType(RankedTensorType::get({2, 2}, Float32Type::get(&context)));
  EXPECT_THAT(compare(*whole, *lost), HasSubstr("dimension 0 has 8 elements on all of them, but its whole has 10"));
}

// The same report, seen from the loss: classes that only padding has take part in the softmax.
TEST_F(KnownPrograms, PaddedClassesInTheSoftmax) {
  SmallCase c{.name = "", .model = "llama-tiny", .mesh = "tp=2", .vocabulary = 7};
  for (bool masks : {true, false}) {
    OwningOpRef<ModuleOp> module = build(c);
    EquivalenceChecker checker;
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.getSeverity() == DiagnosticSeverity::Error ? diagnostic.str() : "";
      return success();
    });
    for (const Step &step : stepsToRun(options(c), Phase::Input, Phase::Shard)) {
      if (step.name == "pad-for-divisibility")
        ASSERT_TRUE(succeeded(checker.begin(*module)));
      PassManager manager(&context);
      addStep(manager, step);
      ASSERT_TRUE(succeeded(manager.run(*module)));
      if (step.name == "pad-for-divisibility")
        break;
    }
    int removed = 0;
    module->walk([&](arith::SelectOp select) {
      DenseElementsAttr low;
      if (masks || !matchPattern(select.getFalseValue(), m_Constant(&low)) || !isa<FloatType>(low.getElementType()) ||
          !low.isSplat() || low.getSplatValue<APFloat>().convertToFloat() > -1e29)
        return;
      select.replaceAllUsesWith(select.getTrueValue());
      ++removed;
    });
    EXPECT_EQ(removed > 0, !masks);
    EXPECT_EQ(succeeded(checker.check("pad", *module)), masks) << message;
    // The padded rows of the head learn.
    EXPECT_THAT(message, HasSubstr(masks ? "" : "in its padding, which must be zero"));
  }
}

// NVIDIA/Megatron-LM 673: the loss is scaled wrongly where ranks have parts of a sequence. A mean of their means is not
// the mean, because not all of them have equally many positions that count; and a loss divided twice is too small.
TEST_F(KnownPrograms, MeanOfMeans) {
  std::string sums = "  %4 = dist.all_reduce sum %2 over [\"cp\"] : tensor<f32>\n";
  EXPECT_EQ(compare(kMean, meanOfHalves(sums + "  %5 = dist.all_reduce sum %3 over [\"cp\"] : tensor<f32>\n"
                                               "  %r = arith.divf %4, %5 : tensor<f32>\n")),
            "");
  std::string half = "  %c = arith.constant dense<0.5> : tensor<f32>\n";
  EXPECT_THAT(compare(kMean, meanOfHalves(half + "  %4 = arith.divf %2, %3 : tensor<f32>\n"
                                                 "  %5 = dist.all_reduce sum %4 over [\"cp\"] : tensor<f32>\n"
                                                 "  %r = arith.mulf %5, %c : tensor<f32>\n")),
              AllOf(HasSubstr("step 'local' changes what is computed: after @loss result"), HasSubstr(", in f64")));
  EXPECT_THAT(compare(kMean, meanOfHalves(sums + half +
                                          "  %5 = dist.all_reduce sum %3 over [\"cp\"] : tensor<f32>\n"
                                          "  %6 = arith.divf %4, %5 : tensor<f32>\n"
                                          "  %r = arith.mulf %6, %c : tensor<f32>\n")),
              HasSubstr("step 'local' changes what is computed: after @loss result"));
  // Each rank keeps its own mean: they do not even agree.
  EXPECT_THAT(compare(kMean, meanOfHalves("  %r = arith.divf %2, %3 : tensor<f32>\n")),
              AllOf(HasSubstr("step 'local' breaks the program: "), HasSubstr("on rank 1")));
}

// A value that ranks have in parts is used as though it were whole: each of them adds the bias before the parts are
// summed up, as in pytorch/pytorch 163193.
TEST_F(KnownPrograms, BiasOnEveryPart) {
  OwningOpRef<ModuleOp> whole = parse(kBias), local = localized(kBias);
  EXPECT_EQ(compare(*whole, *local), "");
  int moved = 0;
  local->walk([&](dist::AllReduceOp reduce) {
    auto add = dyn_cast<arith::AddFOp>(*reduce->getUsers().begin());
    if (!add)
      return;
    reduce.getResult().replaceAllUsesWith(reduce.getOperand());
    reduce->moveAfter(add);
    add.getResult().replaceAllUsesExcept(reduce.getResult(), reduce);
    reduce->setOperand(0, add.getResult());
    ++moved;
  });
  EXPECT_EQ(moved, 1);
  EXPECT_THAT(compare(*whole, *local),
              AllOf(HasSubstr("step 'local' changes what is computed: after @project result"), HasSubstr(", in f64")));
}

// The same with operations that are not linear: the norm of parts is taken before they are summed up (pytorch/pytorch
// 159856), the maximum (165962), and a small number is added on every rank to the divisor (149768).
TEST_F(KnownPrograms, FunctionsOfParts) {
  struct Case {
    const char *name, *function; // of the product %y, with the result %r
    const char *ofParts;         // of parts of it
  };
  const Case cases[] = {{"norm",
                         "  %s = arith.mulf %y, %y : tensor<4x3xf32>\n"
                         "  %n = graph.reduce sum %s dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n"
                         "  %r = math.sqrt %n : tensor<f32>\n",
                         "  %s = arith.mulf %y, %y : tensor<4x3xf32>\n"
                         "  %n = graph.reduce sum %s dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n"
                         "  %root = math.sqrt %n : tensor<f32>\n"
                         "  %r = dist.all_reduce sum %root over [\"tp\"] : tensor<f32>\n"},
                        {"maximum", "  %r = graph.reduce max %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n",
                         "  %m = graph.reduce max %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n"
                         "  %r = dist.all_reduce sum %m over [\"tp\"] : tensor<f32>\n"},
                        {"reciprocal",
                         "  %n = graph.reduce sum %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n"
                         "  %e = arith.constant dense<1.0e-6> : tensor<f32>\n"
                         "  %d = arith.addf %n, %e : tensor<f32>\n"
                         "  %r = arith.divf %e, %d : tensor<f32>\n",
                         "  %n = graph.reduce sum %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>\n"
                         "  %e = arith.constant dense<1.0e-6> : tensor<f32>\n"
                         "  %p = arith.addf %n, %e : tensor<f32>\n"
                         "  %d = dist.all_reduce sum %p over [\"tp\"] : tensor<f32>\n"
                         "  %r = arith.divf %e, %d : tensor<f32>\n"}};
  const std::string mesh = "dist.mesh @mesh [\"tp\"] [2]\n", end = "  graph.return %r : tensor<f32>\n}\n";
  const std::string sharding = "dist.sharding = #dist.sharding<[{}, {\"tp\"}]>";
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    std::string whole =
        mesh + "graph.func @f(%x: tensor<4x6xf32> {" + sharding + ", graph.name = \"x\"}, %w: tensor<3x6xf32> {" +
        sharding +
        ", graph.name = \"w\"}) -> tensor<f32> {\n"
        "  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>\n" +
        c.function + end;
    std::string parts =
        mesh + "graph.func @f(%x: tensor<4x3xf32> {dist.global_shape = array<i64: 4, 6>, " + sharding +
        ", graph.name = \"x\"}, %w: tensor<3x3xf32> {dist.global_shape = array<i64: 3, 6>, " + sharding +
        ", graph.name = \"w\"}) -> tensor<f32> {\n"
        "  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>\n" +
        c.ofParts + end;
    EXPECT_EQ(compare(*parse(whole), *localized(whole)), "");
    EXPECT_THAT(compare(whole, parts), HasSubstr("step 'local' changes what is computed: after @f result"));
  }
}

// The upstream `shard` dialect of LLVM 22: a vector of ten over four devices loses its last two elements.
TEST_F(KnownPrograms, LastElementsLost) {
  EXPECT_EQ(compare(*parse(kTen), *localized(kTen)), "");
  EXPECT_THAT(compare(kTen, R"mlir(
dist.mesh @mesh ["x"] [4]
graph.param @v : tensor<2xf32> init(#graph.normal<1.0>) key("v") {dist.sharding = #dist.sharding<[{"x"}]>}
graph.func @negative() -> tensor<8xf32> {
  %v = graph.read @v : tensor<2xf32>
  %0 = arith.negf %v : tensor<2xf32>
  %1 = dist.all_gather %0 dim 0 over ["x"] : tensor<2xf32> -> tensor<8xf32>
  graph.return %1 : tensor<8xf32>
}
)mlir"),
              AllOf(HasSubstr("step 'local' "), HasSubstr("shape")));
}

// The same: where axes change places, pieces get the wrong shape. Taking a piece of 4 x 4 for one of 2 x 8 has the
// right number of elements, and all but a few at the wrong place.
TEST_F(KnownPrograms, AxesChangePlaces) {
  EXPECT_EQ(compare(*parse(kExchange), *localized(kExchange)), "");
  EXPECT_THAT(compare(kExchange, R"mlir(
dist.mesh @mesh ["x", "y"] [2, 4]
graph.func @negative(%a: tensor<4x4xf32> {dist.global_shape = array<i64: 8, 16>, dist.sharding = #dist.sharding<[{"x"}, {"y"}]>, graph.name = "a"}) -> tensor<8x16xf32> {
  %0 = graph.reshape %a : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %1 = arith.negf %0 : tensor<2x8xf32>
  %2 = dist.all_gather %1 dim 0 over ["y"] : tensor<2x8xf32> -> tensor<8x8xf32>
  %3 = dist.all_gather %2 dim 1 over ["x"] : tensor<8x8xf32> -> tensor<8x16xf32>
  graph.return %3 : tensor<8x16xf32>
}
)mlir"),
              AllOf(HasSubstr("step 'local' changes what is computed: after @negative result"), HasSubstr(", in f64")));
}

// The same: two axes that are gathered at once crash it. Gathered in the wrong order they would not crash.
TEST_F(KnownPrograms, TwoAxesAtOnce) {
  OwningOpRef<ModuleOp> whole = parse(kTogether), local = localized(kTogether);
  EXPECT_EQ(compare(*whole, *local), "");
  int turned = 0;
  local->walk([&](dist::AllGatherOp gather) {
    gather.setAxesAttr(ArrayAttr::get(&context, {gather.getAxes()[1], gather.getAxes()[0]}));
    ++turned;
  });
  EXPECT_EQ(turned, 1);
  EXPECT_THAT(compare(*whole, *local), HasSubstr("step 'local' changes what is computed: after @whole result"));
}

// NaN is equal to nothing: with it on both sides nothing would have been compared.
TEST_F(KnownPrograms, NaNOnBothSides) {
  auto program = [](const std::string &function) {
    return "graph.func @f(%x: tensor<4xf32> {graph.name = \"x\"}) -> tensor<4xf32> {\n" + function +
           "  graph.return %r : tensor<4xf32>\n}\n";
  };
  const std::string square = "  %r = arith.mulf %x, %x : tensor<4xf32>\n",
                    negative = "  %0 = arith.mulf %x, %x : tensor<4xf32>\n  %1 = arith.negf %0 : tensor<4xf32>\n",
                    root = negative + "  %r = math.sqrt %1 : tensor<4xf32>\n",
                    other = negative + "  %r = math.log %1 : tensor<4xf32>\n";
  EXPECT_THAT(compare(program(root), program(other)),
              AllOf(HasSubstr("computes NaN, in f64: result '"), HasSubstr("[0] after @f; nothing can be said")));
  EXPECT_THAT(compare(program(square), program(root)),
              AllOf(HasSubstr("step 'local' changes what is computed: after @f result"), HasSubstr("nan was")));
  // NaN in a function that a step adds is refused as well.
  const std::string added = "graph.func @g(%x: tensor<4xf32> {graph.name = \"x\"}) -> tensor<4xf32> {\n" + root +
                            "  graph.return %r : tensor<4xf32>\n}\n";
  EXPECT_THAT(compare(program(square), program(square) + added),
              HasSubstr("step 'local' makes the program compute NaN, in f64: result '"));
}
