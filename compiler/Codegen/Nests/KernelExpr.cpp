//===- KernelExpr.cpp - The value of each element of a kernel's results
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/KernelExpr.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

Type codegen::computeType(Type elementType) {
  bool isNarrow = isa<FloatType>(elementType) && elementType.getIntOrFloatBitWidth() < 32;
  return isNarrow ? Float32Type::get(elementType.getContext()) : elementType;
}

static Type computeTypeOf(Value value) { return computeType(getElementTypeOrSelf(value.getType())); }

//===----------------------------------------------------------------------===//
// Traversal
//===----------------------------------------------------------------------===//

void codegen::forEachExpr(ArrayRef<const Expr *> roots, llvm::function_ref<void(const Expr *)> visit) {
  llvm::DenseSet<const Expr *> seen;
  SmallVector<std::pair<const Expr *, size_t>> stack;
  for (const Expr *root : roots) {
    if (seen.insert(root).second)
      stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto &[expr, next] = stack.back();
      if (next == expr->operands.size()) {
        visit(expr);
        stack.pop_back();
        continue;
      }
      const Expr *operand = expr->operands[next++];
      if (seen.insert(operand).second)
        stack.emplace_back(operand, 0);
    }
  }
}

bool codegen::canMergeDims(AffineExpr index, const IndexSpace &space, unsigned outer, unsigned inner) {
  auto outerStep = IndexSpace::coefficient(index, outer), innerStep = IndexSpace::coefficient(index, inner);
  return outerStep && innerStep && *outerStep == *innerStep * space.size(inner);
}

bool codegen::canMergeDims(ArrayRef<const Expr *> roots, const IndexSpace &space, unsigned outer, unsigned inner) {
  bool canMerge = true;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->index)
      canMerge &= canMergeDims(expr->index, space, outer, inner);
    for (const graph::IndexBox &box : expr->boxes)
      for (const graph::IndexBound &bound : box)
        canMerge &= canMergeDims(bound.index, space, outer, inner);
  });
  return canMerge;
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

const Expr *ExprBuilder::add(Expr expr) {
  for (const Expr *operand : expr.operands) {
    expr.freeDims |= operand->freeDims;
    expr.reduceDepth = std::max(expr.reduceDepth, operand->reduceDepth);
  }
  if (expr.index)
    expr.freeDims |= IndexSpace::dimsOf(expr.index);
  for (const graph::IndexBox &box : expr.boxes)
    for (const graph::IndexBound &bound : box)
      expr.freeDims |= IndexSpace::dimsOf(bound.index);
  for (unsigned dim : expr.dims)
    expr.freeDims &= ~dimBit(dim);
  if (expr.kind == Expr::Kind::Reduce)
    ++expr.reduceDepth;
  const Expr *&known = interned[keyOf(expr)];
  if (!known) {
    storage.push_back(std::move(expr));
    known = &storage.back();
  }
  return known;
}

/// Every part of an expression, without the properties that follow from the parts.
std::vector<uint64_t> ExprBuilder::keyOf(const Expr &expr) {
  auto number = [](const void *pointer) { return reinterpret_cast<uint64_t>(pointer); };
  std::vector<uint64_t> key{static_cast<uint64_t>(expr.kind),
                            number(expr.type.getAsOpaquePointer()),
                            number(expr.index.getAsOpaquePointer()),
                            expr.argument,
                            number(expr.constant.getAsOpaquePointer()),
                            number(expr.op),
                            expr.isSum,
                            expr.ignoresNan,
                            expr.operands.size(),
                            expr.dims.size()};
  for (const Expr *operand : expr.operands)
    key.push_back(number(operand));
  llvm::append_range(key, expr.dims);
  for (const graph::IndexBox &box : expr.boxes) {
    key.push_back(box.size());
    for (const graph::IndexBound &bound : box) {
      key.push_back(number(bound.index.getAsOpaquePointer()));
      key.push_back(bound.low);
      key.push_back(bound.high);
    }
  }
  return key;
}

const Expr *ExprBuilder::load(Type type, unsigned argument, AffineExpr index) {
  return add({.kind = Expr::Kind::Load, .type = type, .index = index, .argument = argument});
}

const Expr *ExprBuilder::zero(Type type) {
  return add({.kind = Expr::Kind::Constant, .type = type, .constant = Builder(type.getContext()).getZeroAttr(type)});
}

const Expr *ExprBuilder::choose(Type type, ArrayRef<graph::IndexBox> boxes, ArrayRef<const Expr *> operands) {
  Expr result{.kind = Expr::Kind::Choose, .type = type};
  for (auto [box, operand] : llvm::zip_equal(boxes, operands)) {
    graph::IndexBox open;
    bool isEmpty = false;
    for (const graph::IndexBound &bound : box) {
      auto [low, high] = space.range(bound.index);
      isEmpty |= high < bound.low || low >= bound.high;
      if (low < bound.low || high >= bound.high)
        open.push_back(bound);
    }
    if (isEmpty)
      continue;
    if (open.empty())
      return operand;
    result.boxes.push_back(open);
    result.operands.push_back(operand);
  }
  if (result.operands.empty())
    return zero(type);
  return add(std::move(result));
}

/// Every dimension that occurs in `root`, also those that reductions inside of it run over.
static DimSet allDims(const Expr *root) {
  DimSet dims = 0;
  forEachExpr(root, [&](const Expr *expr) {
    dims |= expr->freeDims;
    for (unsigned dim : expr->dims)
      dims |= dimBit(dim);
  });
  return dims;
}

const Expr *ExprBuilder::reduce(Expr reduction) {
  const Expr *&body = reduction.operands[0];
  SmallVector<unsigned> &dims = reduction.dims;
  for (size_t i = 1; i < dims.size();) {
    if (!canMergeDims(body, space, dims[i - 1], dims[i])) {
      ++i;
      continue;
    }
    unsigned merged = space.reductionDim(space.size(dims[i - 1]) * space.size(dims[i]), allDims(body));
    llvm::SmallDenseMap<unsigned, AffineExpr> replacements;
    replacements[dims[i - 1]] = space.constant(0);
    replacements[dims[i]] = space.dim(merged);
    body = replace(body, replacements);
    dims[i - 1] = merged;
    dims.erase(dims.begin() + i);
  }
  return dims.empty() ? body : add(std::move(reduction));
}

const Expr *ExprBuilder::elementOf(Value value, Index index) {
  std::vector<const void *> key;
  for (AffineExpr expr : index)
    key.push_back(expr.getAsOpaquePointer());
  auto [it, isNew] = memo.try_emplace({value.getAsOpaquePointer(), key});
  if (!isNew)
    return it->second;
  const Expr *result = build(value, index);
  return memo[{value.getAsOpaquePointer(), key}] = result;
}

const Expr *ExprBuilder::build(Value value, ArrayRef<AffineExpr> index) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return load(computeTypeOf(value), argument.getArgNumber(),
                space.linearize(index, graph::tensorType(value).getShape()));
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constantOf(constant);
  // Upstream has more elementwise operations than those that graphs are made of.
  auto model = dyn_cast<graph::FusionModel>(op);
  return exprOf(model ? model.elementAt(*this, index) : compute(op, index));
}

const Expr *ExprBuilder::constantOf(arith::ConstantOp constant) {
  Type type = computeTypeOf(constant);
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat) {
    constant.emitOpError("code generation needs a constant with one value for all elements");
    return nullptr;
  }
  Attribute element = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(element))
    element = FloatAttr::get(type, number.getValueAsDouble());
  return add({.kind = Expr::Kind::Constant, .type = type, .constant = element});
}

//===----------------------------------------------------------------------===//
// The interface graph::ElementBuilder
//===----------------------------------------------------------------------===//

SmallVector<AffineExpr> ExprBuilder::reshape(Index index, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return space.reshape(index, from, to);
}

graph::Element ExprBuilder::number(Type type, AffineExpr index) {
  return {add({.kind = Expr::Kind::Index, .type = computeType(type), .index = index})};
}

graph::Element ExprBuilder::choose(Type type, ArrayRef<graph::IndexBox> boxes, ArrayRef<graph::Element> elements) {
  return {choose(computeType(type), boxes, llvm::map_to_vector(elements, exprOf))};
}

graph::Element ExprBuilder::reduce(Value input, ArrayRef<int64_t> dims, Index index, bool isSum, bool ignoresNan) {
  ArrayRef<int64_t> shape = graph::tensorType(input).getShape();
  SmallVector<AffineExpr> inner(shape.size());
  DimSet used = 0;
  for (AffineExpr expr : index)
    used |= IndexSpace::dimsOf(expr);
  SmallVector<unsigned> over;
  for (int64_t dim : dims) {
    inner[dim] = space.constant(0);
    if (shape[dim] == 1)
      continue;
    over.push_back(space.reductionDim(shape[dim], used));
    used |= dimBit(over.back());
    inner[dim] = space.dim(over.back());
  }
  size_t next = 0;
  for (AffineExpr &expr : inner)
    if (!expr)
      expr = index[next++];
  const Expr *body = elementOf(input, inner);
  if (!body)
    return {};
  return {reduce({.kind = Expr::Kind::Reduce,
                  .type = body->type,
                  .operands = {body},
                  .isSum = isSum,
                  .ignoresNan = ignoresNan,
                  .dims = over})};
}

graph::Element ExprBuilder::compute(Operation *op, Index index) {
  bool isKnown = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isKnown || !op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || isa<arith::BitcastOp>(op)) {
    op->emitOpError("has no code generation; it is not elementwise, a movement or a reduction");
    return {};
  }
  Expr result{.kind = Expr::Kind::Compute, .type = computeTypeOf(op->getResult(0)), .op = op};
  for (Value operand : op->getOperands()) {
    if (!isa<RankedTensorType>(operand.getType())) {
      op->emitOpError("code generation needs tensors for all operands");
      return {};
    }
    result.operands.push_back(elementOf(operand, index));
    if (!result.operands.back())
      return {};
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && result.operands[0]->type == result.type)
    return {result.operands[0]};
  return {add(std::move(result))};
}

//===----------------------------------------------------------------------===//
// Replacement
//===----------------------------------------------------------------------===//

const Expr *ExprBuilder::replace(const Expr *root, const llvm::SmallDenseMap<unsigned, AffineExpr> &replacements) {
  DimSet replaced = 0;
  for (auto &[dim, expr] : replacements)
    replaced |= dimBit(dim);
  llvm::DenseMap<const Expr *, const Expr *> copies;
  forEachExpr(root, [&](const Expr *expr) {
    const Expr *&copy = copies[expr];
    if (!(expr->freeDims & replaced)) {
      copy = expr;
      return;
    }
    SmallVector<const Expr *> operands;
    for (const Expr *operand : expr->operands)
      operands.push_back(copies.at(operand));
    AffineExpr index = expr->index ? space.replace(expr->index, replacements) : AffineExpr();
    switch (expr->kind) {
    case Expr::Kind::Load:
      copy = load(expr->type, expr->argument, index);
      return;
    case Expr::Kind::Choose: {
      SmallVector<graph::IndexBox> boxes = expr->boxes;
      for (graph::IndexBox &box : boxes)
        for (graph::IndexBound &bound : box)
          bound.index = space.replace(bound.index, replacements);
      copy = choose(expr->type, boxes, operands);
      return;
    }
    default: {
      Expr next = *expr;
      next.operands = operands;
      next.index = index;
      next.freeDims = 0;
      next.reduceDepth = 0;
      copy = add(std::move(next));
    }
    }
  });
  return copies.at(root);
}
