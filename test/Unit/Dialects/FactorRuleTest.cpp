//===- FactorRuleTest.cpp - Factor rules say what operations do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <map>
#include <set>

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

using Kind = FactorRule::Kind;
using testing::AllOf;
using testing::HasSubstr;

static FactorRule ruleOf(Operation *op) { return cast<Factored>(op).factorRule(); }

TEST(FactorRule, PartsMakeTheWhole) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::map<std::string, int64_t> cuts;
  for (const RuleCase &c : ruleCases())
    for (int round = 0; round < 40; ++round) {
      Example example = c.draw(random);
      OpHarness harness(example.operands, example.build);
      ASSERT_EQ(harness.operation()->getName().getStringRef().str(), c.operation);
      RuleReport report = checkRule(harness.operation(), ruleOf(harness.operation()), harness.values());
      ASSERT_EQ(report.problem, "");
      auto isScalar = [](const Operand &operand) { return operand.value.shape.empty(); };
      if (example.operands.empty() || !llvm::all_of(example.operands, isScalar)) // scalars cannot be cut
        cuts[c.operation] += report.cuts;
    }
  for (auto [operation, count] : cuts)
    // The position of a row follows from all numbers of its operands.
    EXPECT_EQ(count > 0, operation != "graph.sequence_positions") << operation << " was cut " << count << " times";
}

TEST(FactorRule, EveryOperationWithSemanticsHasOneAndIsTested) {
  std::set<std::string> operations, tested;
  for (RegisteredOperationName name : context().getRegisteredOperations())
    if (name.hasInterface<Interpretable>() || name.hasInterface<Factored>()) {
      operations.insert(name.getStringRef().str());
      EXPECT_TRUE(name.hasInterface<Factored>()) << name.getStringRef().str();
    }
  for (const RuleCase &c : ruleCases())
    tested.insert(c.operation);
  EXPECT_EQ(tested, operations);
}

//===----------------------------------------------------------------------===//
// Which factors are parallel: the checks above would accept a rule that blocks everything.
//===----------------------------------------------------------------------===//

/// The rule of the operation that `build` makes from operands of these shapes, as text.
static std::string ruleText(const std::vector<Shape> &shapes, const BuildOp &build) {
  std::vector<Operand> operands;
  for (const Shape &shape : shapes)
    operands.push_back({HostTensor(shape)});
  return ruleOf(OpHarness(operands, build).operation()).str();
}

/// As above, with the last operand of i32.
static std::string indexedRuleText(const Shape &values, const Shape &indices, const BuildOp &build) {
  return ruleOf(OpHarness({{HostTensor(values)}, {HostTensor(indices), ElementKind::I32}}, build).operation()).str();
}

static std::string reshapeText(const Shape &from, const Shape &to) { return reshapeRule(from, to).str(); }

static RankedTensorType f64Type(const Shape &shape) {
  return RankedTensorType::get(shape, Float64Type::get(&context()));
}

TEST(FactorRule, OfContractionsAndReductions) {
  using Dims = ArrayRef<int64_t>;
  EXPECT_EQ(ruleText({{2, 4, 6}, {6, 2, 5}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return DotGeneralOp::create(b, x[0], x[1], Dims{0}, Dims{1}, Dims{2}, Dims{0});
                     }),
            "([a, b, d], [d, a, c]) -> ([a, b, c]) {a=2, b=4, c=5, d=6 sum}");
  EXPECT_EQ(ruleText({{2, 4}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return ReduceOp::create(b, ReduceKind::Max, x[0], Dims{0});
                     }),
            "([a, b]) -> ([b]) {a=2 max, b=4}");
  EXPECT_EQ(ruleText({{4}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return BroadcastOp::create(b, f64Type({2, 4}), x[0], Dims{1});
                     }),
            "([b]) -> ([a, b]) {a=2, b=4}");
}

TEST(FactorRule, OfReshapes) {
  EXPECT_EQ(reshapeText({8, 128}, {1024}), "([b, a]) -> ([b*a]) {a=128, b=8}");
  EXPECT_EQ(reshapeText({2, 3, 12}, {6, 4, 3}), "([d, c, b*a]) -> ([d*c, b, a]) {a=3, b=4, c=3, d=2}");
  EXPECT_EQ(reshapeText({1, 5, 1}, {5}), "([1, a, 1]) -> ([a]) {a=5}");
  EXPECT_EQ(reshapeText({7}, {7}), "([a]) -> ([a]) {a=7}");
  EXPECT_EQ(reshapeText({6, 4}, {8, 3}),
            "([c*a, d]) -> ([c*b, e]) {a=3 blocked, b=4 blocked, c=2, d=4 blocked, e=3 blocked}");
  // 6 = 2 * 3 and 4 = 2 * 2 have an outermost and an innermost 2 in common.
  EXPECT_EQ(reshapeText({6, 4}, {4, 6}),
            "([d*b, e*a]) -> ([d*c, f*a]) {a=2, b=3 blocked, c=2 blocked, d=2, e=2 blocked, f=3 blocked}");
  int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(reshapeText({huge, huge}, {huge}), "([a, b]) -> ([c]) {a=1099511627776 blocked, b=1099511627776 blocked, "
                                               "c=1099511627776 blocked}");
}

TEST(FactorRule, OfSliceAndIndexing) {
  using Dims = ArrayRef<int64_t>;
  EXPECT_EQ(ruleText({{4, 6}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return SliceOp::create(b, x[0], Dims{0, 2}, Dims{4, 3});
                     }),
            "([a, b]) -> ([a, c]) {a=4, b=6 blocked, c=3 blocked}");
  EXPECT_EQ(indexedRuleText(
                {8, 6}, {3},
                [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); }),
            "([c, b], [a]) -> ([a, b]) {a=3, b=6, c=8 sum}");
  EXPECT_EQ(indexedRuleText({3, 6}, {3},
                            [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                              return ScatterAddOp::create(b, f64Type({8, 6}), x[0], x[1]);
                            }),
            "([a, b], [a]) -> ([c, b]) {a=3 sum, b=6, c=8}");
}

TEST(FactorRule, OfLayers) {
  EXPECT_EQ(ruleText({{2, 4, 6}, {6}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return RmsNormOp::create(b, x[0], x[1], b.getF64FloatAttr(0.1));
                     }),
            "([a, b, c], [c]) -> ([a, b, c]) {a=2, b=4, c=6 blocked}");
  EXPECT_EQ(ruleText({{2, 5, 6, 8}, {2, 7, 3, 8}, {2, 7, 3, 8}},
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                       return AttentionOp::create(b, x[0], x[1], x[2], APFloat(1.0), false);
                     }),
            "([a, d, b*c, f], [a, e, b, f], [a, e, b, f]) -> ([a, d, b*c, f], [a, b*c, d]) "
            "{a=2, b=3, c=2, d=5 blocked, e=7 blocked, f=8 blocked}");
  EXPECT_EQ(indexedRuleText({2, 4, 6}, {2, 4},
                            [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                              return SoftmaxCrossEntropyOp::create(b, x[0], x[1]);
                            }),
            "([a, b, c], [a, b]) -> ([a, b], [a, b]) {a=2, b=4, c=6 exchanged}");
}

TEST(FactorRule, OfConstants) {
  auto constant = [](ArrayRef<double> values) {
    return ruleText({}, [=](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
      return arith::ConstantOp::create(b, DenseElementsAttr::get(f64Type({2}), values));
    });
  };
  EXPECT_EQ(constant({3}), "() -> ([a]) {a=2}");
  EXPECT_EQ(constant({3, 4}), "() -> ([a]) {a=2 blocked}");
}

//===----------------------------------------------------------------------===//
// Wrong rules
//===----------------------------------------------------------------------===//

namespace {
/// An operation on random operands, and its rule to be spoilt.
struct Spoilt {
  Spoilt(const std::vector<Shape> &shapes, const BuildOp &build) : harness(draw(shapes), build) {
    rule = ruleOf(harness.operation());
  }
  std::string problem() { return checkRule(harness.operation(), rule, harness.values()).problem; }

  OpHarness harness;
  FactorRule rule;

private:
  static std::vector<Operand> draw(const std::vector<Shape> &shapes) {
    Random random;
    std::vector<Operand> operands;
    for (const Shape &shape : shapes)
      operands.push_back({random.reals(shape)});
    return operands;
  }
};
} // namespace

static Operation *buildMatmul(ImplicitLocOpBuilder &b, ValueRange x) {
  using Dims = ArrayRef<int64_t>;
  return DotGeneralOp::create(b, x[0], x[1], Dims{}, Dims{}, Dims{1}, Dims{0});
}
static Operation *buildNorm(ImplicitLocOpBuilder &b, ValueRange x) {
  return RmsNormOp::create(b, x[0], x[1], b.getF64FloatAttr(0.1));
}
static Operation *buildCausal(ImplicitLocOpBuilder &b, ValueRange x) {
  return AttentionOp::create(b, x[0], x[1], x[2], APFloat(1.0), true);
}
static const std::vector<Shape> kMatmulShapes = {{2, 4}, {4, 3}}, kNormShapes = {{2, 6}, {6}};
static const std::vector<Shape> kHeadsShapes = {{1, 4, 6, 2}, {1, 4, 3, 2}, {1, 4, 3, 2}};

TEST(WrongFactorRule, RightOnesHold) {
  EXPECT_EQ(Spoilt(kMatmulShapes, buildMatmul).problem(), "");
  EXPECT_EQ(Spoilt(kNormShapes, buildNorm).problem(), "");
  EXPECT_EQ(Spoilt(kHeadsShapes, buildCausal).problem(), "");
}

TEST(WrongFactorRule, ParallelWhereRowsAreNormalised) {
  Spoilt norm(kNormShapes, buildNorm);
  norm.rule.factors[1].kind = Kind::Parallel;
  EXPECT_THAT(norm.problem(), HasSubstr("result 0 differs"));
}

TEST(WrongFactorRule, MaximumOfProducts) {
  Spoilt matmul(kMatmulShapes, buildMatmul);
  matmul.rule.factors[2].combine = ReduceKind::Max;
  EXPECT_THAT(matmul.problem(), HasSubstr("result 0 differs"));
}

TEST(WrongFactorRule, HeadsInTheWrongOrder) {
  Spoilt heads(kHeadsShapes, buildCausal);
  for (FactorRule::TensorFactors *tensor : {&heads.rule.operands[0], &heads.rule.results[0]})
    std::swap((*tensor)[2][0], (*tensor)[2][1]);
  std::swap(heads.rule.results[1][1][0], heads.rule.results[1][1][1]);
  EXPECT_THAT(heads.problem(), HasSubstr("result 0 differs"));
}

TEST(WrongFactorRule, ParallelCausalPositions) {
  Spoilt heads(kHeadsShapes, buildCausal);
  FactorRule &rule = heads.rule;
  // Queries and keys are of one length: call both positions one parallel factor.
  int64_t positions = rule.operands[0][1][0], keys = rule.operands[1][1][0];
  rule.factors[positions].kind = Kind::Parallel;
  rule.operands[1][1] = rule.operands[2][1] = {positions};
  rule.factors.erase(rule.factors.begin() + keys);
  for (SmallVector<FactorRule::TensorFactors> *side : {&rule.operands, &rule.results})
    for (FactorRule::TensorFactors &tensor : *side)
      for (auto &dim : tensor)
        for (int64_t &factor : dim)
          factor -= factor > keys;
  EXPECT_THAT(heads.problem(), HasSubstr("result 0 differs"));
}

TEST(WrongFactorRule, DimensionsTakenForOneAnother) {
  Spoilt transpose({{4, 4}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return TransposeOp::create(b, x[0], ArrayRef<int64_t>{1, 0});
  });
  std::swap(transpose.rule.results[0][0], transpose.rule.results[0][1]);
  EXPECT_THAT(transpose.problem(), HasSubstr("the local form is not valid"));
}

TEST(WrongFactorRule, SliceTakenForWhole) {
  Spoilt pad({{2, 4}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return PadOp::create(b, x[0], ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{0, 3});
  });
  // 4 columns become 8: as if every second one were new.
  pad.rule.factors = {{2, Kind::Parallel}, {4, Kind::Parallel}, {2, Kind::Blocked}};
  pad.rule.operands[0] = {{0}, {1}};
  pad.rule.results[0] = {{0}, {1, 2}};
  EXPECT_THAT(pad.problem(), HasSubstr("the local form is not valid"));
}

TEST(WrongFactorRule, IsRefusedByTheVerifier) {
  auto problemOf = [](function_ref<void(FactorRule &)> spoil) {
    Spoilt matmul(kMatmulShapes, buildMatmul);
    spoil(matmul.rule);
    return matmul.problem();
  };
  EXPECT_THAT(problemOf([](FactorRule &r) { r.operands.pop_back(); }),
              HasSubstr("factor rule has 1 operands and 1 results instead of 2 and 1"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.results[0].pop_back(); }),
              HasSubstr("factor rule gives result 0 1 dimensions, but its type is 'tensor<2x3xf64>'"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.operands[0][0][0] = 3; }),
              HasSubstr("factor rule of operand 0 names factor 3, but has 3"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.operands[0][0][0] = -1; }), HasSubstr("names factor -1"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.operands[0][1] = r.operands[0][0]; }),
              HasSubstr("factor rule has factor 0 twice in operand 0"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[0].size = 3; }),
              HasSubstr("factors of dimension 0 of operand 0 have the product 3, but its size is 2"));
  EXPECT_THAT(problemOf([](FactorRule &r) {
                r.operands[0][0].push_back(r.add(int64_t{1} << 62));
                r.factors[0].size = 4;
              }),
              HasSubstr("factors of dimension 0 of operand 0 exceed any size"));
  EXPECT_THAT(problemOf([](FactorRule &r) {
                // Two signs that cancel.
                r.operands[0][0].push_back(r.add(-1));
                r.results[0][0].push_back(3);
                r.factors[0].size = -2;
              }),
              AllOf(HasSubstr("factor 0 of the rule "), HasSubstr("has no positive size")));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.operands[1][1].push_back(r.add(1)); }),
              HasSubstr("is parallel, but in no result"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.add(5); }), HasSubstr("is in no operand and no result"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[0].kind = Kind::Reduction; }),
              HasSubstr("is a reduction, but is in a result"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[2].combine.reset(); }),
              HasSubstr("is a reduction, but does not say how partial results are combined"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[0].combine = ReduceKind::Sum; }),
              HasSubstr("combines, but every result has it"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[2].kind = Kind::Blocked; }),
              HasSubstr("is blocked, but combines"));
  EXPECT_THAT(problemOf([](FactorRule &r) { r.factors[2].kind = Kind::Exchanged; }),
              HasSubstr("is exchanged, but combines"));
}

TEST(WrongFactorRule, GroupsOfHeadsMustBeSummedInTheirGradient) {
  std::vector<Shape> shapes = kHeadsShapes;
  shapes.insert(shapes.end(), {{1, 4, 6, 2}, {1, 6, 4}, {1, 4, 6, 2}});
  Spoilt grad(shapes, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return AttentionGradOp::create(b, x[0], x[1], x[2], x[3], x[4], x[5], APFloat(1.0), true);
  });
  EXPECT_EQ(grad.problem(), "");
  grad.rule.factors[2].combine = ReduceKind::Max;
  EXPECT_THAT(grad.problem(), HasSubstr("result 1 differs"));
  grad.rule.factors[2].combine.reset();
  EXPECT_THAT(grad.problem(),
              HasSubstr("is parallel, but a result lacks it and nothing says how its partial results are combined"));
}
