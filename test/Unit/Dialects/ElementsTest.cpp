//===- ElementsTest.cpp - Element-wise forms of operations compute the same values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <deque>
#include <set>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

namespace {

/// Evaluates the operations that `elementAt` builds, at indices that are numbers.
class ElementEvaluator : public ElementBuilder {
public:
  ElementEvaluator(Operation *op, ArrayRef<HostTensor> operands) : context(op->getContext()) {
    for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
      tensors.try_emplace(value, &tensor);
  }

  Element at(Value value, Index index) override {
    const HostTensor &tensor = *tensors.at(value);
    int64_t place = 0;
    for (auto [expr, size] : llvm::zip_equal(index, tensor.shape)) {
      if (number(expr) < 0 || number(expr) >= size)
        return make(NAN); // outside, as of an operand that is not chosen
      place = place * size + number(expr);
    }
    return make(tensor.data[place]);
  }
  AffineExpr plus(AffineExpr expr, int64_t amount) override { return constant(number(expr) + amount); }
  SmallVector<AffineExpr> reshape(Index index, ArrayRef<int64_t> from, ArrayRef<int64_t> to) override {
    int64_t place = 0;
    for (auto [expr, size] : llvm::zip_equal(index, from))
      place = place * size + number(expr);
    return indexOf(place, to);
  }
  Element number(Type, AffineExpr index) override { return make(static_cast<double>(number(index))); }
  Element choose(Type, ArrayRef<IndexBox> boxes, ArrayRef<Element> elements) override {
    for (auto [box, element] : llvm::zip_equal(boxes, elements))
      if (llvm::all_of(box, [](const IndexBound &bound) {
            return bound.low <= number(bound.index) && number(bound.index) < bound.high;
          }))
        return element;
    return make(0);
  }
  Element reduce(Value input, ArrayRef<int64_t> dims, Index index, bool isSum, bool) override {
    const HostTensor &tensor = *tensors.at(input);
    double result = isSum ? 0 : -INFINITY;
    for (auto [i, value] : llvm::enumerate(tensor.data)) {
      SmallVector<AffineExpr> place = indexOf(static_cast<int64_t>(i), tensor.shape), rest;
      for (auto [dim, expr] : llvm::enumerate(place))
        if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
          rest.push_back(expr);
      if (llvm::equal(rest, index))
        result = isSum ? result + value : std::max(result, value);
    }
    return make(result);
  }
  Element compute(Operation *, Index) override { return {}; }

  SmallVector<AffineExpr> indexOf(int64_t place, ArrayRef<int64_t> shape) {
    SmallVector<AffineExpr> index(shape.size());
    for (size_t dim = shape.size(); dim-- > 0; place /= shape[dim])
      index[dim] = constant(place % shape[dim]);
    return index;
  }

private:
  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }
  static int64_t number(AffineExpr expr) { return cast<AffineConstantExpr>(expr).getValue(); }
  Element make(double value) {
    values.push_back(value);
    return {&values.back()};
  }

  MLIRContext *context;
  llvm::DenseMap<Value, const HostTensor *> tensors;
  std::deque<double> values;
};

constexpr int kRounds = 100;

} // namespace

TEST(Elements, AreThoseOfTheResult) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::set<std::string> checked;
  for (const RuleCase &c : ruleCases())
    for (int round = 0; round < kRounds; ++round) {
      SCOPED_TRACE(c.operation);
      Example example = c.draw(random);
      OpHarness harness(example.operands, example.build);
      Operation *op = harness.operation();
      auto model = dyn_cast<FusionModel>(op);
      if (!model || op->getNumResults() != 1)
        continue;
      SmallVector<HostTensor> results;
      results.emplace_back(cast<RankedTensorType>(op->getResult(0).getType()).getShape().vec());
      HostTensor &expected = results.front();
      std::vector<HostTensor> operands = harness.values();
      ASSERT_TRUE(succeeded(cast<Interpretable>(op).interpret(operands, results, Arithmetic::reals())));
      for (auto [i, value] : llvm::enumerate(expected.data)) {
        ElementEvaluator evaluator(op, operands);
        Element element =
            model.elementAt(evaluator, evaluator.indexOf(static_cast<int64_t>(i), ArrayRef(expected.shape)));
        if (!element)
          break; // operations that are decomposed, have a kernel or are computed element by element
        checked.insert(c.operation);
        ASSERT_NEAR(*static_cast<const double *>(element.handle), value, 1e-12 * (1 + std::abs(value)))
            << "element " << i;
      }
    }
  EXPECT_THAT(checked,
              testing::UnorderedElementsAre("graph.broadcast", "graph.concat", "graph.iota", "graph.pad",
                                            "graph.reduce", "graph.reshape", "graph.slice", "graph.transpose"));
}
