//===- IndexSpace.cpp - Loop dimensions and index expressions over them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/IndexSpace.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::codegen;

namespace {

/// `constant + sum of factor * atom`, where an atom is a dimension, a division or a remainder.
struct Sum {
  int64_t constant = 0;
  SmallVector<std::pair<AffineExpr, int64_t>> terms;

  void add(AffineExpr atom, int64_t factor) {
    for (auto &[other, otherFactor] : terms)
      if (other == atom) {
        otherFactor += factor;
        return;
      }
    terms.emplace_back(atom, factor);
  }

  void addExpr(AffineExpr expr, int64_t factor) {
    switch (expr.getKind()) {
    case AffineExprKind::Constant:
      constant += factor * cast<AffineConstantExpr>(expr).getValue();
      return;
    case AffineExprKind::Add:
      addExpr(cast<AffineBinaryOpExpr>(expr).getLHS(), factor);
      addExpr(cast<AffineBinaryOpExpr>(expr).getRHS(), factor);
      return;
    case AffineExprKind::Mul: {
      auto product = cast<AffineBinaryOpExpr>(expr);
      addExpr(product.getLHS(), factor * cast<AffineConstantExpr>(product.getRHS()).getValue());
      return;
    }
    default:
      add(expr, factor);
    }
  }

  /// `k c (e floordiv c) + k (e mod c)` is `k e`.
  bool joinDivisions() {
    for (size_t i = 0; i < terms.size(); ++i) {
      if (terms[i].first.getKind() != AffineExprKind::Mod || terms[i].second == 0)
        continue;
      auto remainder = cast<AffineBinaryOpExpr>(terms[i].first);
      int64_t divisor = cast<AffineConstantExpr>(remainder.getRHS()).getValue(), factor = terms[i].second;
      AffineExpr quotient = remainder.getLHS().floorDiv(divisor);
      for (auto &[atom, otherFactor] : terms)
        if (atom == quotient && otherFactor == factor * divisor) {
          otherFactor = terms[i].second = 0;
          addExpr(remainder.getLHS(), factor);
          return true;
        }
    }
    return false;
  }

  /// Dimensions in their order first, so that equal sums become the same expression.
  AffineExpr build(MLIRContext *context) {
    while (joinDivisions()) {
    }
    llvm::erase_if(terms, [](auto &term) { return term.second == 0; });
    llvm::stable_sort(terms, [](auto &lhs, auto &rhs) {
      auto positionOf = [](AffineExpr expr) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        return dim ? dim.getPosition() : IndexSpace::kMaxDims;
      };
      return positionOf(lhs.first) < positionOf(rhs.first);
    });
    AffineExpr result = getAffineConstantExpr(0, context);
    for (auto &[atom, factor] : terms)
      result = result + atom * factor;
    return result + constant;
  }
};

} // namespace

unsigned IndexSpace::addDim(int64_t size) {
  if (sizes.size() == kMaxDims) {
    exhausted = true;
    return kMaxDims - 1;
  }
  sizes.push_back(size);
  return sizes.size() - 1;
}

unsigned IndexSpace::reductionDim(int64_t size, DimSet used) {
  SmallVector<unsigned> &candidates = reductionDims[size];
  for (unsigned candidate : candidates)
    if (!(used & dimBit(candidate)))
      return candidate;
  candidates.push_back(addDim(size));
  return candidates.back();
}

AffineExpr IndexSpace::dim(unsigned dim) const {
  return sizes[dim] == 1 ? constant(0) : getAffineDimExpr(dim, context);
}

AffineExpr IndexSpace::add(AffineExpr lhs, AffineExpr rhs) const {
  Sum sum;
  sum.addExpr(lhs, 1);
  sum.addExpr(rhs, 1);
  return sum.build(context);
}

AffineExpr IndexSpace::scale(AffineExpr expr, int64_t factor) const {
  Sum sum;
  sum.addExpr(expr, factor);
  return sum.build(context);
}

/// `expr` as `divisor * first + second`, with all terms in `first` that are multiples of the divisor.
static std::pair<Sum, Sum> splitMultiples(AffineExpr expr, int64_t divisor) {
  Sum sum, multiple, rest;
  sum.addExpr(expr, 1);
  for (auto &[atom, factor] : sum.terms)
    factor % divisor == 0 ? multiple.add(atom, factor / divisor) : rest.add(atom, factor);
  multiple.constant = llvm::divideFloorSigned(sum.constant, divisor);
  rest.constant = sum.constant - multiple.constant * divisor;
  return {multiple, rest};
}

AffineExpr IndexSpace::floorDiv(AffineExpr expr, int64_t divisor) const {
  auto [multiple, rest] = splitMultiples(expr, divisor);
  AffineExpr remainder = rest.build(context);
  auto [low, high] = range(remainder);
  if (low < 0 || high >= divisor)
    multiple.add(remainder.floorDiv(divisor), 1);
  return multiple.build(context);
}

AffineExpr IndexSpace::mod(AffineExpr expr, int64_t divisor) const {
  AffineExpr remainder = splitMultiples(expr, divisor).second.build(context);
  auto [low, high] = range(remainder);
  return low < 0 || high >= divisor ? remainder % divisor : remainder;
}

AffineExpr IndexSpace::linearize(ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape) const {
  Sum sum;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    sum.addExpr(index[i], step);
    step *= shape[i];
  }
  return sum.build(context);
}

SmallVector<AffineExpr> IndexSpace::reshape(ArrayRef<AffineExpr> index, ArrayRef<int64_t> from,
                                            ArrayRef<int64_t> to) const {
  SmallVector<AffineExpr> result(to.size(), constant(0));
  size_t i = 0, k = 0;
  while (i < from.size() && k < to.size()) {
    // The shortest runs of dimensions with equally many elements.
    size_t iEnd = i + 1, kEnd = k + 1;
    int64_t fromCount = from[i], toCount = to[k];
    while (fromCount != toCount) {
      if (fromCount < toCount)
        fromCount *= from[iEnd++];
      else
        toCount *= to[kEnd++];
    }
    AffineExpr position = linearize(index.slice(i, iEnd - i), from.slice(i, iEnd - i));
    for (size_t dim = kEnd; dim-- > k;) {
      result[dim] = dim == k ? position : mod(position, to[dim]);
      position = floorDiv(position, to[dim]);
    }
    i = iEnd;
    k = kEnd;
  }
  return result;
}

std::pair<int64_t, int64_t> IndexSpace::range(AffineExpr expr) const {
  switch (expr.getKind()) {
  case AffineExprKind::Constant: {
    int64_t value = cast<AffineConstantExpr>(expr).getValue();
    return {value, value};
  }
  case AffineExprKind::DimId:
    return {0, sizes[cast<AffineDimExpr>(expr).getPosition()] - 1};
  case AffineExprKind::Add: {
    auto sum = cast<AffineBinaryOpExpr>(expr);
    auto lhs = range(sum.getLHS()), rhs = range(sum.getRHS());
    return {lhs.first + rhs.first, lhs.second + rhs.second};
  }
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto [low, high] = range(binary.getLHS());
  int64_t operand = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  if (expr.getKind() == AffineExprKind::Mul)
    return std::minmax({low * operand, high * operand});
  int64_t lowQuotient = llvm::divideFloorSigned(low, operand), highQuotient = llvm::divideFloorSigned(high, operand);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return {lowQuotient, highQuotient};
  if (lowQuotient == highQuotient)
    return {low - lowQuotient * operand, high - highQuotient * operand};
  return {0, operand - 1};
}

DimSet IndexSpace::dimsOf(AffineExpr expr) {
  DimSet dims = 0;
  expr.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      dims |= dimBit(dim.getPosition());
  });
  return dims;
}

std::optional<int64_t> IndexSpace::coefficient(AffineExpr expr, unsigned dim) {
  Sum sum;
  sum.addExpr(expr, 1);
  int64_t factor = 0;
  for (auto &[atom, atomFactor] : sum.terms) {
    if (!(dimsOf(atom) & dimBit(dim)))
      continue;
    if (!isa<AffineDimExpr>(atom))
      return std::nullopt;
    factor = atomFactor;
  }
  return factor;
}

AffineExpr IndexSpace::replace(AffineExpr expr, const llvm::SmallDenseMap<unsigned, AffineExpr> &replacements) const {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return expr;
  case AffineExprKind::DimId: {
    auto it = replacements.find(cast<AffineDimExpr>(expr).getPosition());
    return it == replacements.end() ? expr : it->second;
  }
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AffineExpr lhs = replace(binary.getLHS(), replacements);
  if (expr.getKind() == AffineExprKind::Add)
    return add(lhs, replace(binary.getRHS(), replacements));
  int64_t operand = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  if (expr.getKind() == AffineExprKind::Mul)
    return scale(lhs, operand);
  return expr.getKind() == AffineExprKind::FloorDiv ? floorDiv(lhs, operand) : mod(lhs, operand);
}
