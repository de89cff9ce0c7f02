//===- FactorRuleCheck.cpp - Holds a factor rule against its operation's meaning
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Dialects/FactorRuleCheck.h"

#include <cmath>

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

using TensorFactors = FactorRule::TensorFactors;

//===----------------------------------------------------------------------===//
// Blocks of a tensor
//===----------------------------------------------------------------------===//

static Shape localShape(ArrayRef<int64_t> shape, const TensorFactors &factors, Cut cut) {
  Shape local = shape.vec();
  for (auto [size, dim] : llvm::zip_equal(local, factors))
    if (llvm::is_contained(dim, cut.factor))
      size /= cut.parts;
  return local;
}

/// Calls `body(offset in the whole, offset in the block)` for every element of block `part`.
static void forEachOfBlock(const FactorRule &rule, const TensorFactors &factors, Cut cut, int64_t part,
                           function_ref<void(int64_t, int64_t)> body) {
  // The tensor as [outer x factor x inner].
  int64_t outer = 1, length = 0, inner = 1;
  for (ArrayRef<int64_t> dim : factors)
    for (int64_t factor : dim) {
      int64_t size = rule.factors[factor].size;
      if (factor == cut.factor)
        length = size;
      else
        (length ? inner : outer) *= size;
    }
  int64_t block = length / cut.parts;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t f = 0; f < block; ++f)
      for (int64_t i = 0; i < inner; ++i)
        body((o * length + part * block + f) * inner + i, (o * block + f) * inner + i);
}

static HostTensor blockOf(const HostTensor &whole, const FactorRule &rule, const TensorFactors &factors, Cut cut,
                          int64_t part) {
  if (!hasFactor(factors, cut.factor))
    return whole;
  HostTensor block(localShape(whole.shape, factors, cut));
  forEachOfBlock(rule, factors, cut, part, [&](int64_t from, int64_t to) { block.data[to] = whole.data[from]; });
  return block;
}

static Tensors blocksOf(ArrayRef<HostTensor> operands, const FactorRule &rule, Cut cut, int64_t part) {
  Tensors blocks;
  for (auto [operand, factors] : llvm::zip_equal(operands, rule.operands))
    blocks.push_back(blockOf(operand, rule, factors, cut, part));
  return blocks;
}

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

static Tensors emptyResults(Operation *op) {
  Tensors results;
  for (Type type : op->getResultTypes())
    results.emplace_back(cast<RankedTensorType>(type).getShape().vec());
  return results;
}

namespace {
/// The operation on local types that computes one part, as the operation's own local form builds it.
class LocalForm final : graph::LocalContext {
public:
  LocalForm(Operation *whole, const FactorRule &rule, Cut cut, int64_t part)
      : rule(rule), cut(cut), part(part), builder(whole->getLoc(), whole->getContext()),
        function(FuncOp::create(builder, "part", builder.getFunctionType({}, {}))) {
    Block *body = builder.createBlock(&function->getBody());
    for (auto [operand, factors] : llvm::zip_equal(whole->getOperands(), rule.operands))
      arguments.push_back(body->addArgument(localType(operand.getType(), factors), whole->getLoc()));
    op = builder.clone(*whole);
    op->setOperands(arguments);
    for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results))
      result.setType(localType(result.getType(), factors));
    results = llvm::to_vector(llvm::map_range(op->getResults(), [](OpResult result) -> Value { return result; }));
    if (auto model = dyn_cast<ShardingModel>(op))
      model.localize(*this);
  }

  Operation *operation() { return op; }
  bool isValid() { return succeeded(verify(op)); }
  /// Whether the part is the same operation, and nothing more.
  bool isPlain() const { return plain; }

  FailureOr<Tensors> compute(Tensors operands) {
    DenseMap<Value, HostTensor> values;
    for (auto [argument, operand] : llvm::zip_equal(arguments, operands))
      values[argument] = operand;
    for (Operation &each : function->getBody().front()) {
      Tensors own, computed = emptyResults(&each);
      for (Value operand : each.getOperands())
        own.push_back(values.at(operand));
      if (failed(cast<Interpretable>(each).interpret(own, computed)))
        return failure();
      for (auto [value, tensor] : llvm::zip_equal(each.getResults(), computed))
        values[value] = tensor;
    }
    return llvm::map_to_vector(results, [&](Value result) { return values.at(result); });
  }

private:
  Type localType(Type type, const TensorFactors &factors) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.clone(localShape(tensor.getShape(), factors, cut)) : type;
  }

  Axes axesOf(Value value, int64_t dim) override {
    const TensorFactors *tensor = nullptr;
    for (auto [argument, factors] : llvm::zip_equal(arguments, rule.operands))
      tensor = argument == value ? &factors : tensor;
    for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results))
      tensor = result == value ? &factors : tensor;
    return llvm::is_contained((*tensor)[dim], cut.factor) ? Axes(axis) : Axes();
  }
  int64_t countAlong(Axes) override { return cut.parts; }
  Value placeAlong(ImplicitLocOpBuilder &b, Axes) override {
    plain = false;
    auto type = RankedTensorType::get({}, b.getI32Type());
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, static_cast<int32_t>(part)));
  }
  Value combine(ImplicitLocOpBuilder &, ReduceKind, Value value, Axes, const Twine &) override {
    ADD_FAILURE() << "what parts exchange is tested where programs become local";
    return value;
  }
  void replace(Value result, Value other, const SmallPtrSetImpl<Operation *> &except) override {
    result.replaceUsesWithIf(other, [&](OpOperand &use) { return !except.contains(use.getOwner()); });
    llvm::replace(results, result, other);
  }

  const FactorRule &rule;
  Cut cut;
  int64_t part;
  bool plain = true;
  ImplicitLocOpBuilder builder;
  OwningOpRef<FuncOp> function;
  StringAttr axis = builder.getStringAttr("axis");
  SmallVector<Value> arguments, results;
  Operation *op;
};
} // namespace

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

/// Puts a part of a result into place.
static void combine(HostTensor &whole, const HostTensor &block, const FactorRule &rule, const TensorFactors &factors,
                    Cut cut, int64_t part) {
  if (hasFactor(factors, cut.factor))
    return forEachOfBlock(rule, factors, cut, part,
                          [&](int64_t to, int64_t from) { whole.data[to] = block.data[from]; });
  if (part == 0) {
    whole = block;
    return;
  }
  bool isSum = rule.factors[cut.factor].combine == ReduceKind::Sum;
  for (auto [value, other] : llvm::zip_equal(whole.data, block.data))
    value = isSum ? value + other : std::max(value, other);
}

static bool agrees(const HostTensor &actual, const HostTensor &expected, bool isSum) {
  auto agree = [&](double a, double e) {
    return isSum ? std::fabs(a - e) <= 1e-12 * std::max(1.0, std::fabs(e)) : a == e;
  };
  return actual.shape == expected.shape &&
         std::equal(actual.data.begin(), actual.data.end(), expected.data.begin(), expected.data.end(), agree);
}

/// The error in the parts of one cut; empty where they make the whole.
static std::string checkCut(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands, Cut cut) {
  Tensors expected = emptyResults(op), actual = emptyResults(op);
  if (failed(cast<Interpretable>(op).interpret(operands, expected)))
    return "the whole cannot be computed";
  for (int64_t part = 0; part < cut.parts; ++part) {
    LocalForm local(op, rule, cut, part);
    if (!local.isValid())
      return "the local form is not valid";
    FailureOr<Tensors> results = local.compute(blocksOf(operands, rule, cut, part));
    if (failed(results))
      return "part " + std::to_string(part) + " cannot be computed";
    for (auto [i, result] : llvm::enumerate(*results))
      combine(actual[i], result, rule, rule.results[i], cut, part);
  }
  for (auto [i, factors] : llvm::enumerate(rule.results)) {
    bool isSum = !hasFactor(factors, cut.factor) && rule.factors[cut.factor].combine == ReduceKind::Sum;
    if (!agrees(actual[i], expected[i], isSum))
      return "result " + std::to_string(i) + " differs";
  }
  return "";
}

/// Whether the first part of `cut` can be cut once more: meshes have several axes.
static std::string checkPart(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands, Cut cut);

/// As `checkRule`; with `again`, also cuts the first part of each cut, which must keep the rule.
static RuleReport checkCuts(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands, bool again) {
  if (failed(verifyFactorRule(op, rule)))
    return {"the rule is not valid"};
  RuleReport report;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    // Tests of local programs cover factors along which parts exchange data.
    if (factor.kind == FactorRule::Kind::Blocked || factor.kind == FactorRule::Kind::Exchanged)
      continue;
    for (int64_t parts : {2, 3}) {
      if (factor.size % parts != 0)
        continue;
      ++report.cuts;
      Cut cut{static_cast<int64_t>(number), parts};
      report.problem = checkCut(op, rule, operands, cut);
      if (report.problem.empty() && again)
        report.problem = checkPart(op, rule, operands, cut);
      if (!report.problem.empty()) {
        report.problem = "factor " + std::to_string(number) + " in " + std::to_string(parts) + ": " + report.problem;
        return report;
      }
    }
  }
  return report;
}

static std::string checkPart(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands, Cut cut) {
  LocalForm local(op, rule, cut, /*part=*/0);
  if (!local.isPlain())
    return "";
  FactorRule localRule = rule;
  localRule.factors[cut.factor].size /= cut.parts;
  return checkCuts(local.operation(), localRule, blocksOf(operands, rule, cut, /*part=*/0), /*again=*/false).problem;
}

RuleReport bowline::test::checkRule(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands) {
  std::string diagnostics;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diagnostic) { diagnostics += diagnostic.str(); });
  RuleReport report = checkCuts(op, rule, operands, /*again=*/true);
  if (!report.problem.empty())
    report.problem = op->getName().getStringRef().str() + " " + rule.str() + ", " + report.problem + ". " + diagnostics;
  return report;
}
