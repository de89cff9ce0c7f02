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
#include "kernels/registry/philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

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
/// The operation on the types of one part, and what it computes.
class LocalForm {
public:
  LocalForm(Operation *whole, const FactorRule &rule, Cut cut) : rule(rule), cut(cut), op(whole->clone()) {
    auto localType = [&](Type type, const TensorFactors &factors) -> Type {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor ? tensor.clone(localShape(tensor.getShape(), factors, cut)) : type;
    };
    for (auto [operand, factors] : llvm::zip_equal(op->getOpOperands(), rule.operands))
      operand.set(arguments.addArgument(localType(operand.get().getType(), factors), op->getLoc()));
    for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results))
      result.setType(localType(result.getType(), factors));
    if (auto slice = dyn_cast<SliceOp>(op))
      slice.setSizes(cast<RankedTensorType>(slice.getType()).getShape());
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(splat.resizeSplat(cast<ShapedType>(constant.getType())));
  }
  ~LocalForm() { op->destroy(); }

  Operation *operation() { return op; }
  bool isValid() { return succeeded(verify(op)); }

  FailureOr<Tensors> compute(Tensors operands, int64_t part) {
    Tensors results = emptyResults(op);
    if (auto random = dyn_cast<RandomOp>(op)) {
      computeRandom(random, results[0], part);
      return results;
    }
    // Positions in `indices` of rows that the part does not have.
    std::vector<int64_t> absent;
    if (isa<GatherOp>(op) && isCut(rule.operands[0][0]))
      absent = localiseIndices(operands[1], part, operands[0].shape[0]);
    if (isa<ScatterAddOp>(op) && isCut(rule.results[0][0]))
      dropRows(operands[0], localiseIndices(operands[1], part, results[0].shape[0]), operands[1].count());
    if (failed(cast<Interpretable>(op).interpret(operands, results)))
      return failure();
    if (isa<GatherOp>(op))
      dropRows(results[0], absent, operands[1].count());
    if (auto iota = dyn_cast<IotaOp>(op))
      if (isCut(rule.results[0][iota.getDim()]))
        for (double &value : results[0].data)
          value += static_cast<double>(part * results[0].shape[iota.getDim()]);
    return results;
  }

private:
  bool isCut(ArrayRef<int64_t> dim) const { return llvm::is_contained(dim, cut.factor); }

  /// Subtracts the part's first row; an index outside of its rows becomes 0, and its position is returned.
  static std::vector<int64_t> localiseIndices(HostTensor &indices, int64_t part, int64_t rows) {
    std::vector<int64_t> absent;
    for (auto [position, index] : llvm::enumerate(indices.data)) {
      index -= static_cast<double>(part * rows);
      if (index >= 0 && index < static_cast<double>(rows))
        continue;
      index = 0;
      absent.push_back(position);
    }
    return absent;
  }

  /// Zeros in the given rows of `tensor`, which has `count` of them.
  static void dropRows(HostTensor &tensor, ArrayRef<int64_t> rows, int64_t count) {
    int64_t size = tensor.count() / count;
    for (int64_t row : rows)
      std::fill_n(tensor.data.begin() + row * size, size, 0.0);
  }

  /// The definition, at the elements' indices in the whole.
  void computeRandom(RandomOp random, HostTensor &result, int64_t part) const {
    PhiloxKey key = MixKey(random.getSeed(), random.getStream());
    forEachOfBlock(rule, rule.results[0], cut, part, [&](int64_t element, int64_t local) {
      result.data[local] = random.getStddev().convertToDouble() * NormalBlock(key, element / 4)[element % 4];
    });
  }

  const FactorRule &rule;
  Cut cut;
  Block arguments;
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

/// What is wrong with the parts of one cut; empty where they make the whole.
static std::string checkCut(Operation *op, const FactorRule &rule, ArrayRef<HostTensor> operands, Cut cut) {
  Tensors expected = emptyResults(op), actual = emptyResults(op);
  if (failed(cast<Interpretable>(op).interpret(operands, expected)))
    return "the whole cannot be computed";
  LocalForm local(op, rule, cut);
  if (!local.isValid())
    return "the local form is not valid";
  for (int64_t part = 0; part < cut.parts; ++part) {
    FailureOr<Tensors> results = local.compute(blocksOf(operands, rule, cut, part), part);
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
    // What parts exchange is tested where programs become local.
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
  if (isa<GatherOp, IotaOp, RandomOp, ScatterAddOp>(op))
    return ""; // their local form is more than the operation on local types
  LocalForm local(op, rule, cut);
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
