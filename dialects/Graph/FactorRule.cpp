//===- FactorRule.cpp - Which dimensions of operands and results are one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/FactorRule.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace bowline::graph;

using Kind = FactorRule::Kind;
using TensorFactors = FactorRule::TensorFactors;

int64_t FactorRule::add(int64_t size, Kind kind, std::optional<ReduceKind> combine) {
  factors.push_back({size, kind, combine});
  return factors.size() - 1;
}

TensorFactors FactorRule::addDims(ArrayRef<int64_t> shape, Kind kind) {
  TensorFactors dims;
  for (int64_t size : shape)
    dims.push_back({add(size, kind)});
  return dims;
}

bool bowline::graph::hasFactor(const TensorFactors &tensor, int64_t factor) {
  return llvm::any_of(tensor, [&](ArrayRef<int64_t> dim) { return llvm::is_contained(dim, factor); });
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printFactor(raw_ostream &os, int64_t factor) {
  if (factor >= 0 && factor < 26)
    os << static_cast<char>('a' + factor);
  else
    os << "f" << factor;
}

static void printTensors(raw_ostream &os, ArrayRef<TensorFactors> tensors) {
  os << "(";
  llvm::interleaveComma(tensors, os, [&](const TensorFactors &tensor) {
    os << "[";
    llvm::interleaveComma(tensor, os, [&](ArrayRef<int64_t> dim) {
      if (dim.empty())
        os << "1";
      llvm::interleave(dim, os, [&](int64_t factor) { printFactor(os, factor); }, "*");
    });
    os << "]";
  });
  os << ")";
}

void FactorRule::print(raw_ostream &os) const {
  printTensors(os, operands);
  os << " -> ";
  printTensors(os, results);
  os << " {";
  llvm::interleaveComma(llvm::enumerate(factors), os, [&](auto entry) {
    printFactor(os, entry.index());
    const Factor &factor = entry.value();
    os << "=" << factor.size;
    if (factor.kind == Kind::Blocked)
      os << " blocked";
    if (factor.kind == Kind::Exchanged)
      os << " exchanged";
    if (factor.combine)
      os << " " << stringifyReduceKind(*factor.combine);
  });
  os << "}";
}

std::string FactorRule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Rules that several operations share
//===----------------------------------------------------------------------===//

/// No dimensions for a value that is no tensor.
static ArrayRef<int64_t> shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

FactorRule bowline::graph::alignedRule(Operation *op) {
  FactorRule rule;
  ArrayRef<int64_t> first = shapeOf(op->getResult(0).getType());
  auto isOneSize = [&](int64_t dim) {
    auto fits = [&](Type type) { return shapeOf(type).empty() || shapeOf(type)[dim] == first[dim]; };
    return llvm::all_of(op->getOperandTypes(), fits) && llvm::all_of(op->getResultTypes(), fits);
  };
  SmallVector<std::optional<int64_t>> shared;
  for (int64_t dim = 0, rank = first.size(); dim < rank; ++dim)
    shared.push_back(isOneSize(dim) ? std::optional(rule.add(first[dim])) : std::nullopt);
  auto factorsOf = [&](Type type) {
    TensorFactors dims;
    for (auto [dim, size] : llvm::enumerate(shapeOf(type)))
      dims.push_back({shared[dim] ? *shared[dim] : rule.add(size, Kind::Blocked)});
    return dims;
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(factorsOf(type));
  for (Type type : op->getResultTypes())
    rule.results.push_back(factorsOf(type));
  return rule;
}

namespace {
/// A dimension in row-major order: the elements from `inner` up to `outer` apart, and its factors from the innermost
/// on.
struct Extent {
  int64_t inner, outer;
  SmallVector<int64_t, 1> factors = {};
  int64_t covered = inner;
};
} // namespace

/// The extents of `shape`; none where the element count exceeds any tensor's.
static std::optional<SmallVector<Extent>> extentsOf(ArrayRef<int64_t> shape) {
  SmallVector<Extent> extents;
  int64_t step = 1;
  for (int64_t size : llvm::reverse(shape)) {
    int64_t inner = step;
    if (llvm::MulOverflow(inner, size, step))
      return std::nullopt;
    extents.push_back({inner, step});
  }
  std::reverse(extents.begin(), extents.end());
  return extents;
}

/// Adds the rest of the extent below `upTo` as a blocked factor.
static void coverBlocked(FactorRule &rule, Extent &extent, int64_t upTo) {
  if (extent.covered < upTo)
    extent.factors.push_back(rule.add(upTo / extent.covered, Kind::Blocked));
  extent.covered = upTo;
}

FactorRule bowline::graph::reshapeRule(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  FactorRule rule;
  auto source = extentsOf(from), target = extentsOf(to);
  if (!source || !target) {
    rule.operands = {rule.addDims(from, Kind::Blocked)};
    rule.results = {rule.addDims(to, Kind::Blocked)};
    return rule;
  }
  // A dimension can be split at every distance that is a multiple of `inner` and divides `outer`. Both dimensions of a
  // pair can be split at the multiples of the least common multiple of their `inner` that divide the greatest common
  // divisor of their `outer`: between these two lies their common factor.
  for (Extent &s : llvm::reverse(*source))
    for (Extent &t : llvm::reverse(*target)) {
      int64_t outer = std::gcd(s.outer, t.outer);
      if (outer % s.inner != 0 || outer % t.inner != 0)
        continue;
      int64_t inner = std::lcm(s.inner, t.inner); // divides `outer`
      if (inner == outer)
        continue;
      coverBlocked(rule, s, inner);
      coverBlocked(rule, t, inner);
      int64_t common = rule.add(outer / inner);
      for (Extent *extent : {&s, &t}) {
        extent->factors.push_back(common);
        extent->covered = outer;
      }
    }
  auto collect = [&](SmallVector<Extent> &extents) {
    TensorFactors dims;
    for (Extent &extent : extents) {
      coverBlocked(rule, extent, extent.outer);
      dims.emplace_back(llvm::reverse(extent.factors));
    }
    return dims;
  };
  rule.operands = {collect(*source)};
  rule.results = {collect(*target)};
  return rule;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyTensor(Operation *op, const FactorRule &rule, const Twine &what, Type type,
                                  const TensorFactors &tensor) {
  ArrayRef<int64_t> shape = shapeOf(type);
  if (tensor.size() != shape.size())
    return op->emitOpError("factor rule gives ")
           << what << " " << tensor.size() << " dimensions, but its type is " << type;
  SmallVector<bool> isSeen(rule.factors.size(), false);
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    int64_t product = 1;
    for (int64_t factor : factors) {
      if (factor < 0 || factor >= static_cast<int64_t>(rule.factors.size()))
        return op->emitOpError("factor rule of ")
               << what << " names factor " << factor << ", but has " << rule.factors.size();
      if (std::exchange(isSeen[factor], true))
        return op->emitOpError("factor rule has factor ") << factor << " twice in " << what;
      if (llvm::MulOverflow(product, rule.factors[factor].size, product))
        return op->emitOpError("factors of dimension ") << dim << " of " << what << " exceed any size";
    }
    if (product != shape[dim])
      return op->emitOpError("factors of dimension ")
             << dim << " of " << what << " have the product " << product << ", but its size is " << shape[dim];
  }
  return success();
}

static LogicalResult verifyFactor(Operation *op, const FactorRule &rule, int64_t number) {
  const FactorRule::Factor &factor = rule.factors[number];
  auto isIn = [&](const TensorFactors &tensor) { return hasFactor(tensor, number); };
  int64_t inOperands = llvm::count_if(rule.operands, isIn), inResults = llvm::count_if(rule.results, isIn);
  int64_t lacking = rule.results.size() - inResults;
  auto complain = [&](const char *problem) {
    return op->emitOpError("factor ") << number << " of the rule " << rule.str() << " " << problem;
  };
  if (factor.size < 1)
    return complain("has no positive size");
  if (inOperands + inResults == 0)
    return complain("is in no operand and no result");
  switch (factor.kind) {
  case Kind::Reduction:
    if (inResults > 0)
      return complain("is a reduction, but is in a result");
    return factor.combine ? success() : complain("is a reduction, but does not say how partial results are combined");
  case Kind::Parallel:
    if (inResults == 0)
      return complain("is parallel, but in no result");
    if (lacking > 0 && !factor.combine)
      return complain("is parallel, but a result lacks it and nothing says how its partial results are combined");
    return lacking > 0 || !factor.combine ? success() : complain("combines, but every result has it");
  case Kind::Exchanged:
    return factor.combine ? complain("is exchanged, but combines") : success();
  case Kind::Blocked:
    return factor.combine ? complain("is blocked, but combines") : success();
  }
  llvm_unreachable("unknown kind");
}

LogicalResult bowline::graph::verifyFactorRule(Operation *op, const FactorRule &rule) {
  if (rule.operands.size() != op->getNumOperands() || rule.results.size() != op->getNumResults())
    return op->emitOpError("factor rule has ")
           << rule.operands.size() << " operands and " << rule.results.size() << " results instead of "
           << op->getNumOperands() << " and " << op->getNumResults();
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (failed(verifyTensor(op, rule, "operand " + Twine(i), type, rule.operands[i])))
      return failure();
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    if (failed(verifyTensor(op, rule, "result " + Twine(i), type, rule.results[i])))
      return failure();
  for (int64_t number = 0, count = rule.factors.size(); number < count; ++number)
    if (failed(verifyFactor(op, rule, number)))
      return failure();
  return success();
}
