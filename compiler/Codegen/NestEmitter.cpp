//===- NestEmitter.cpp - Nests as loops over vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/NestEmitter.h"
#include "compiler/Codegen/MathExpansion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace bowline::codegen;

namespace {

/// How an element type is held in memory: i1 in a byte, bf16 as its bits.
Type memoryType(Type elementType) {
  Builder b(elementType.getContext());
  if (elementType.isInteger(1))
    return b.getI8Type();
  if (elementType.isBF16())
    return b.getI16Type();
  return elementType;
}

Type laneType(Type elementType, int64_t lanes) {
  return lanes == 0 ? elementType : VectorType::get({lanes}, elementType);
}

/// A place for code where some dimensions have values.
struct Scope {
  explicit Scope(Block *block) : block(block) {}
  Scope(Block *block, unsigned dim, Value value) : block(block) { dims[dim] = value; }

  Block *block;
  /// The operation with a block that is being filled: what is added here now must stand before it.
  Operation *before = nullptr;
  llvm::SmallDenseMap<unsigned, Value> dims;
  llvm::DenseMap<const Expr *, Value> values;
};

class KernelEmitter {
public:
  KernelEmitter(func::FuncOp kernel, Location loc, int64_t vectorLanes)
      : kernel(kernel), b(loc, kernel.getContext()), vectorLanes(vectorLanes) {}

  LogicalResult emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests) {
    b.setInsertionPointToEnd(module.getBody());
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64});
    auto function = LLVM::LLVMFuncOp::create(b, symbol, type);
    Block *body = function.addEntryBlock(b);
    scopes.emplace_back(body);
    b.setInsertionPointToEnd(body);
    FunctionType signature = kernel.getFunctionType();
    inputCount = signature.getNumInputs();
    for (Type tensor : llvm::concat<const Type>(signature.getInputs(), signature.getResults())) {
      Value slot = LLVM::GEPOp::create(b, pointer, pointer, body->getArgument(0),
                                       ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(arguments.size())});
      arguments.push_back({LLVM::LoadOp::create(b, pointer, slot), cast<RankedTensorType>(tensor)});
    }
    int64_t first = 0;
    for (const std::unique_ptr<Nest> &current : nests) {
      nest = current.get();
      Value begin = arith::MaxSIOp::create(b, body->getArgument(1), constant(first));
      Value end = arith::MinSIOp::create(b, body->getArgument(2), constant(first + nest->units));
      emitNest(arith::SubIOp::create(b, begin, constant(first)), arith::SubIOp::create(b, end, constant(first)));
      first += nest->units;
      b.setInsertionPointToEnd(body);
      scopes[0] = Scope(body);
    }
    LLVM::ReturnOp::create(b, ValueRange());
    return failure(unsupported);
  }

private:
  /// The dimension along which values are vectors.
  struct Lanes {
    DimSet dim = 0;
    int64_t count = 0;
    /// Which lanes exist; null where all do.
    Value mask;
  };

  struct Argument {
    Value pointer;
    RankedTensorType type;
  };

  //===--------------------------------------------------------------------===//
  // Scopes
  //===--------------------------------------------------------------------===//

  void insertIn(Scope &scope) {
    if (scope.before)
      b.setInsertionPoint(scope.before);
    else
      b.setInsertionPointToEnd(scope.block);
  }
  void insertHere() { insertIn(scopes.back()); }

  /// The scope in which everything that depends on `dims` only belongs: the innermost that gives one of them a value.
  size_t scopeOf(DimSet dims) const {
    for (size_t i = scopes.size(); i-- > 1;)
      for (auto &[dim, value] : scopes[i].dims)
        if (dims & dimBit(dim))
          return i;
    return 0;
  }

  bool isBound(DimSet dims) const {
    for (const Scope &scope : scopes)
      for (auto &[dim, value] : scope.dims)
        dims &= ~dimBit(dim);
    return dims == 0;
  }

  /// Runs `body` as if scope `index` were the innermost.
  template <typename Body> void inScope(size_t index, Body body) {
    SmallVector<Scope, 0> inner(std::make_move_iterator(scopes.begin() + index + 1),
                                std::make_move_iterator(scopes.end()));
    scopes.truncate(index + 1);
    body();
    scopes.append(std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(ValueRange)>;

  SmallVector<Value> emitLoop(unsigned dim, Value from, Value to, int64_t step, ValueRange initial, LoopBody body) {
    insertHere();
    Value stepValue = constant(step);
    auto loop = scf::ForOp::create(b, from, to, stepValue, initial);
    loop.getBody()->clear();
    emitInside(loop, Scope(loop.getBody(), dim, loop.getInductionVar()), [&] {
      SmallVector<Value> results = body(loop.getRegionIterArgs());
      insertHere();
      scf::YieldOp::create(b, results);
    });
    return llvm::to_vector(ValueRange(loop.getResults()));
  }

  /// Runs `body` in the scope `inner` of a block of `op`, which was just added to the innermost scope.
  template <typename Body> void emitInside(Operation *op, Scope inner, Body body) {
    SmallVector<std::pair<size_t, Operation *>> outer;
    for (size_t i = scopes.size(); i-- > 0 && scopes[i].block == op->getBlock();)
      outer.emplace_back(i, std::exchange(scopes[i].before, op));
    scopes.push_back(std::move(inner));
    body();
    scopes.pop_back();
    for (auto [i, before] : outer)
      scopes[i].before = before;
    insertHere();
  }

  /// Runs `body` where `dim` has the value `at`, without a loop.
  template <typename Body> void emitOnce(unsigned dim, Value at, Body body) {
    // In the same place as the scope around it; only what depends on `dim` is kept apart.
    Scope scope(scopes.back().block, dim, at);
    scope.before = scopes.back().before;
    scopes.push_back(std::move(scope));
    body();
    scopes.pop_back();
    insertHere();
  }

  //===--------------------------------------------------------------------===//
  // Nests
  //===--------------------------------------------------------------------===//

  static SmallVector<const Expr *> valuesOf(ArrayRef<Nest::Store> stores) {
    return llvm::to_vector(llvm::map_range(stores, [](const Nest::Store &store) { return store.value; }));
  }

  void emitNest(Value from, Value to) {
    SmallVector<const Expr *> roots = valuesOf(nest->rowStores);
    for (const Nest::Segment &segment : nest->segments)
      llvm::append_range(roots, valuesOf(segment.stores));
    prepare(roots);

    insertHere();
    auto loop = scf::ForOp::create(b, from, to, constant(1));
    loop.getBody()->clear();
    emitInside(loop, Scope(loop.getBody()), [&] { emitUnit(roots, loop.getInductionVar()); });
  }

  void emitUnit(ArrayRef<const Expr *> roots, Value row) {
    insertHere();
    Value block;
    if (nest->blocks > 1) {
      block = arith::RemUIOp::create(b, row, constant(nest->blocks));
      row = arith::DivUIOp::create(b, row, constant(nest->blocks));
    }
    for (size_t i = nest->outer.size(); i-- > 0;) {
      int64_t size = nest->space.size(nest->outer[i]);
      scopes.back().dims[nest->outer[i]] = i == 0 ? row : arith::RemUIOp::create(b, row, constant(size));
      if (i > 0)
        row = arith::DivUIOp::create(b, row, constant(size));
    }
    prepare(roots);
    // Before anything is stored: a result may take the place of an argument.
    SmallVector<Value> rowValues;
    for (const Nest::Store &rowStore : nest->rowStores)
      rowValues.push_back(value(rowStore.value));
    for (const Nest::Segment &segment : nest->segments)
      block ? emitBlock(segment, block) : emitRow(segment);
    for (auto [rowStore, rowValue] : llvm::zip_equal(nest->rowStores, rowValues))
      store(rowStore, rowValue);
    insertHere();
    scf::YieldOp::create(b);
  }

  int64_t lanesOf(const Nest::Segment &segment) {
    SmallVector<const Expr *> roots = valuesOf(segment.stores);
    bool reduces = false;
    forEachExpr(roots, [&](const Expr *expr) {
      reduces |= expr->kind == Expr::Kind::Reduce && expr->freeDims & dimBit(*segment.dim);
    });
    return chooseLanes(roots, nest->space.size(*segment.dim), vectorLanes, reduces);
  }

  void emitStores(const Nest::Segment &segment) {
    prepare(valuesOf(segment.stores));
    SmallVector<Value> values;
    for (const Nest::Store &current : segment.stores)
      values.push_back(value(current.value));
    for (auto [current, computed] : llvm::zip_equal(segment.stores, values))
      store(current, computed);
  }

  void emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to) {
    lanes = {dimBit(*segment.dim), count, nullptr};
    emitLoop(*segment.dim, from, to, count, {}, [&](ValueRange) {
      emitStores(segment);
      return SmallVector<Value>();
    });
    lanes = {};
  }

  /// The last `rest` elements, fewer than a vector.
  void emitTail(const Nest::Segment &segment, int64_t from, int64_t rest) {
    insertHere();
    setTailLanes(*segment.dim, rest);
    emitOnce(*segment.dim, constant(from), [&] { emitStores(segment); });
    lanes = {};
  }

  void setTailLanes(unsigned dim, int64_t rest) {
    int64_t count = llvm::PowerOf2Ceil(rest);
    lanes = {dimBit(dim), count, nullptr};
    if (count == rest && count > 1)
      return;
    // One element is a vector of two with one missing: a vector of one is nobody's fast path.
    lanes.count = count = std::max<int64_t>(count, 2);
    SmallVector<bool> exists(count, false);
    std::fill_n(exists.begin(), rest, true);
    lanes.mask = arith::ConstantOp::create(
        b, DenseElementsAttr::get(VectorType::get({count}, b.getI1Type()), ArrayRef<bool>(exists)));
  }

  void emitRow(const Nest::Segment &segment) {
    int64_t size = nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
    if (size >= count && count > 1) {
      insertHere();
      emitVectors(segment, count, constant(0), constant(size - rest));
    }
    if (count == 1)
      rest = size;
    if (rest)
      emitTail(segment, size - rest, rest);
  }

  void emitBlock(const Nest::Segment &segment, Value block) {
    int64_t size = nest->space.size(*segment.dim), count = lanesOf(segment), rest = size % count;
    insertHere();
    Value from = arith::MulIOp::create(b, block, constant(nest->blockSize));
    Value to = arith::AddIOp::create(b, from, constant(nest->blockSize));
    emitVectors(segment, count, from, arith::MinSIOp::create(b, to, constant(size - rest)));
    if (!rest)
      return;
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, constant(nest->blocks - 1));
    auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    branch.thenBlock()->clear();
    emitInside(branch, Scope(branch.thenBlock()), [&] {
      emitTail(segment, size - rest, rest);
      insertHere();
      scf::YieldOp::create(b);
    });
  }

  //===--------------------------------------------------------------------===//
  // Reductions
  //===--------------------------------------------------------------------===//

  /// Computes the reductions under `roots` that belong in the innermost scope, those over the same dimensions in one
  /// loop unless one needs the other.
  void prepare(ArrayRef<const Expr *> roots) {
    std::map<std::tuple<unsigned, bool, SmallVector<unsigned>>, SmallVector<const Expr *>> groups;
    forEachExpr(roots, [&](const Expr *expr) {
      if (expr->kind == Expr::Kind::Reduce && isBound(expr->freeDims) && scopeOf(expr->freeDims) == scopes.size() - 1 &&
          !scopes.back().values.count(expr))
        groups[{expr->reduceDepth, isVarying(expr), expr->dims}].push_back(expr);
    });
    for (auto &[key, group] : groups)
      emitReductions(group);
  }

  bool isVarying(const Expr *expr) const { return expr->freeDims & lanes.dim; }

  void emitReductions(ArrayRef<const Expr *> group) {
    SmallVector<const Expr *> bodies;
    for (const Expr *reduce : group)
      bodies.push_back(reduce->operands[0]);
    SmallVector<Value> results = isVarying(group[0]) ? reduceAcross(group, bodies) : reduceAlong(group, bodies);
    for (auto [reduce, result] : llvm::zip_equal(group, results))
      scopes.back().values[reduce] = result;
  }

  SmallVector<Value> identities(ArrayRef<const Expr *> group, int64_t count) {
    return llvm::to_vector(llvm::map_range(group, [&](const Expr *reduce) { return identity(reduce, count); }));
  }

  Value identity(const Expr *reduce, int64_t count) {
    TypedAttr attr = b.getZeroAttr(reduce->type);
    if (!reduce->isSum) {
      if (auto type = dyn_cast<FloatType>(reduce->type))
        attr = FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true));
      else
        attr = IntegerAttr::get(reduce->type, APInt::getSignedMinValue(reduce->type.getIntOrFloatBitWidth()));
    }
    return splat(attr, count);
  }

  Value combine(const Expr *reduce, Value lhs, Value rhs) {
    bool isFloat = isa<FloatType>(reduce->type);
    if (reduce->isSum)
      return isFloat ? arith::AddFOp::create(b, lhs, rhs, arith::FastMathFlags::contract).getResult()
                     : arith::AddIOp::create(b, lhs, rhs).getResult();
    return isFloat ? arith::MaximumFOp::create(b, lhs, rhs).getResult()
                   : arith::MaxSIOp::create(b, lhs, rhs).getResult();
  }

  Value combineLanes(const Expr *reduce, Value vector) {
    bool isFloat = isa<FloatType>(reduce->type);
    vector::CombiningKind kind = reduce->isSum ? vector::CombiningKind::ADD
                                 : isFloat     ? vector::CombiningKind::MAXIMUMF
                                               : vector::CombiningKind::MAXSI;
    return vector::ReductionOp::create(b, kind, vector,
                                       reduce->isSum ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none);
  }

  /// Combines the bodies' values into the accumulators.
  SmallVector<Value> accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies, ValueRange accumulators) {
    prepare(bodies);
    SmallVector<Value> results;
    for (auto [reduce, body, accumulator] : llvm::zip_equal(group, bodies, accumulators)) {
      Value element = value(body);
      insertHere();
      element = toLanes(element);
      if (lanes.mask)
        element = arith::SelectOp::create(b, lanes.mask, element, identity(reduce, lanes.count));
      results.push_back(combine(reduce, accumulator, element));
    }
    return results;
  }

  /// Loops over `dims`, and `body` inside of them.
  SmallVector<Value> emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators, LoopBody body) {
    if (dims.empty())
      return body(accumulators);
    insertHere();
    return emitLoop(dims[0], constant(0), constant(nest->space.size(dims[0])), 1, accumulators,
                    [&](ValueRange inner) { return emitLoops(dims.drop_front(), llvm::to_vector(inner), body); });
  }

  /// Values are vectors along another dimension.
  SmallVector<Value> reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
    insertHere();
    return emitLoops(group[0]->dims, identities(group, lanes.count),
                     [&](ValueRange accumulators) { return accumulate(group, bodies, accumulators); });
  }

  /// Vectors along the last reduced dimension.
  SmallVector<Value> reduceAlong(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
    Lanes around = lanes;
    ArrayRef<unsigned> dims = group[0]->dims;
    unsigned along = dims.back();
    int64_t size = nest->space.size(along), count = std::max<int64_t>(chooseLanes(bodies, size, vectorLanes, true), 2);
    int64_t rest = size % count, whole = size - rest;
    insertHere();
    setTailLanes(along, std::max<int64_t>(rest, 1));
    Lanes tail = lanes;
    size_t results = group.size();
    SmallVector<Value> accumulators;
    if (whole)
      llvm::append_range(accumulators, identities(group, count));
    if (rest)
      llvm::append_range(accumulators, identities(group, tail.count));

    accumulators = emitLoops(dims.drop_back(), accumulators, [&](ValueRange current) {
      SmallVector<Value> next;
      if (whole) {
        insertHere();
        lanes = {dimBit(along), count, nullptr};
        next = emitLoop(along, constant(0), constant(whole), count, current.take_front(results),
                        [&](ValueRange inner) { return accumulate(group, bodies, inner); });
      }
      if (rest) {
        insertHere();
        lanes = tail;
        emitOnce(along, constant(whole),
                 [&] { llvm::append_range(next, accumulate(group, bodies, current.take_back(results))); });
      }
      return next;
    });
    lanes = around;
    insertHere();
    SmallVector<Value> combined;
    for (auto [i, reduce] : llvm::enumerate(group)) {
      Value result = combineLanes(reduce, accumulators[i]);
      if (whole && rest)
        result = combine(reduce, result, combineLanes(reduce, accumulators[i + results]));
      combined.push_back(result);
    }
    return combined;
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  Value constant(int64_t number) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(number)); }

  Value splat(TypedAttr element, int64_t count) {
    if (count == 0)
      return arith::ConstantOp::create(b, element);
    auto type = VectorType::get({count}, element.getType());
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, Attribute(element)));
  }

  Value toLanes(Value scalar) {
    if (lanes.count == 0 || isa<VectorType>(scalar.getType()))
      return scalar;
    return vector::BroadcastOp::create(b, VectorType::get({lanes.count}, scalar.getType()), scalar);
  }

  /// The value of `expr`: a vector where it depends on the dimension of the lanes, a scalar elsewhere, computed once
  /// in the outermost loop that it belongs in.
  Value value(const Expr *expr) {
    size_t scope = scopeOf(expr->freeDims);
    if (auto it = scopes[scope].values.find(expr); it != scopes[scope].values.end())
      return it->second;
    Value result;
    inScope(scope, [&] {
      if (expr->kind == Expr::Kind::Reduce) {
        emitReductions(expr);
        result = scopes.back().values[expr];
        return;
      }
      SmallVector<Value> operands;
      for (const Expr *operand : expr->operands)
        operands.push_back(value(operand));
      insertHere();
      result = compute(expr, operands);
      scopes.back().values[expr] = result;
    });
    return result;
  }

  Value compute(const Expr *expr, SmallVectorImpl<Value> &operands) {
    int64_t count = isVarying(expr) ? lanes.count : 0;
    if (count)
      for (Value &operand : operands)
        operand = toLanes(operand);
    switch (expr->kind) {
    case Expr::Kind::Constant:
      return splat(cast<TypedAttr>(expr->constant), 0);
    case Expr::Kind::Index: {
      // Linear indices fit where their results do; divisions may need more on the way.
      bool isNarrow =
          count && expr->type.isInteger(32) && IndexSpace::coefficient(expr->index, llvm::countr_zero(lanes.dim));
      Value number =
          count ? vectorIndex(expr->index, isNarrow ? expr->type : b.getI64Type()) : scalarIndex(expr->index);
      Type type = laneType(expr->type, count);
      return number.getType() == type ? number : arith::TruncIOp::create(b, type, number);
    }
    case Expr::Kind::Load:
      return load(expr);
    case Expr::Kind::Choose: {
      Value result = splat(b.getZeroAttr(expr->type), count);
      for (auto [box, operand] : llvm::zip_equal(expr->boxes, operands))
        result = arith::SelectOp::create(b, holds(box, count), operand, result);
      return result;
    }
    case Expr::Kind::Compute:
      return apply(expr, operands, count);
    case Expr::Kind::Reduce:
      break;
    }
    llvm_unreachable("reductions are computed in groups");
  }

  Value apply(const Expr *expr, ArrayRef<Value> operands, int64_t count) {
    if (isa<math::MathDialect>(expr->op->getDialect())) {
      Value result = expandMath(b, expr->op, operands);
      if (result)
        return result;
      if (!unsupported)
        expr->op->emitOpError("has no code generation");
      unsupported = true;
      return splat(b.getZeroAttr(expr->type), count);
    }
    IRMapping mapping;
    mapping.map(expr->op->getOperands(), operands);
    Operation *copy = b.clone(*expr->op, mapping);
    copy->getResult(0).setType(laneType(expr->type, count));
    // Fused multiply-add is more exact, and the same wherever the element is computed.
    if (auto fastMath = dyn_cast<arith::ArithFastMathInterface>(copy))
      copy->setAttr(fastMath.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract));
    return copy->getResult(0);
  }

  /// Whether all bounds hold: a condition per lane, or one for all of them.
  Value holds(const Expr::Box &box, int64_t count) {
    Value result;
    for (const Expr::Bound &bound : box) {
      bool varying = IndexSpace::dimsOf(bound.index) & lanes.dim;
      Value index = varying ? vectorIndex(bound.index, b.getI64Type()) : scalarIndex(bound.index);
      auto compare = [&](arith::CmpIPredicate predicate, int64_t edge) {
        Value condition =
            arith::CmpIOp::create(b, predicate, index, splat(b.getI64IntegerAttr(edge), varying ? count : 0));
        if (count && !varying)
          condition = toLanes(condition);
        result = result ? arith::AndIOp::create(b, result, condition) : condition;
      };
      compare(arith::CmpIPredicate::sge, bound.low);
      compare(arith::CmpIPredicate::slt, bound.high);
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Indices
  //===--------------------------------------------------------------------===//

  Value dimValue(unsigned dim) const {
    for (const Scope &scope : llvm::reverse(scopes))
      if (auto it = scope.dims.find(dim); it != scope.dims.end())
        return it->second;
    llvm_unreachable("every dimension of an index has a loop");
  }

  Value emitBinary(AffineExprKind kind, Value lhs, Value rhs) {
    switch (kind) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(b, lhs, rhs);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(b, lhs, rhs);
    // Negative only outside of a box, where the value is not used.
    case AffineExprKind::FloorDiv:
      return arith::DivSIOp::create(b, lhs, rhs);
    case AffineExprKind::Mod:
      return arith::RemSIOp::create(b, lhs, rhs);
    default:
      llvm_unreachable("not an affine operation that index expressions have");
    }
  }

  /// The index in the first lane.
  Value scalarIndex(AffineExpr expr) {
    if (auto number = dyn_cast<AffineConstantExpr>(expr))
      return constant(number.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dimValue(dim.getPosition());
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = scalarIndex(binary.getLHS()), rhs = scalarIndex(binary.getRHS());
    return emitBinary(expr.getKind(), lhs, rhs);
  }

  /// The indices in all lanes, as integers of `type`, which holds them.
  Value vectorIndex(AffineExpr expr, Type type) {
    auto scalar = [&](AffineExpr part) -> Value {
      Value index = scalarIndex(part);
      return toLanes(type == index.getType() ? index : arith::TruncIOp::create(b, type, index));
    };
    if (!(IndexSpace::dimsOf(expr) & lanes.dim))
      return scalar(expr);
    if (auto step = IndexSpace::coefficient(expr, llvm::countr_zero(lanes.dim))) {
      SmallVector<Attribute> steps;
      for (int64_t lane = 0; lane < lanes.count; ++lane)
        steps.push_back(b.getIntegerAttr(type, lane * *step));
      Value offsets = arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({lanes.count}, type), steps));
      return arith::AddIOp::create(b, scalar(expr), offsets);
    }
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = vectorIndex(binary.getLHS(), type), rhs = vectorIndex(binary.getRHS(), type);
    return emitBinary(expr.getKind(), lhs, rhs);
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  Value address(const Argument &argument, Type element, Value index) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    if (auto vector = dyn_cast<VectorType>(index.getType()))
      pointer = VectorType::get(vector.getShape(), pointer);
    return LLVM::GEPOp::create(b, pointer, element, argument.pointer, ArrayRef<LLVM::GEPArg>{index});
  }

  Value clamp(Value index, int64_t low, int64_t high) {
    auto bound = [&](int64_t edge) {
      auto vector = dyn_cast<VectorType>(index.getType());
      return splat(b.getI64IntegerAttr(edge), vector ? vector.getNumElements() : 0);
    };
    index = arith::MaxSIOp::create(b, index, bound(low));
    return arith::MinSIOp::create(b, index, bound(high));
  }

  Value load(const Expr *expr) {
    const Argument &argument = arguments[expr->argument];
    Type element = memoryType(argument.type.getElementType());
    unsigned alignment = element.getIntOrFloatBitWidth() / 8;
    // Under a condition an index may be outside of the tensor; what is read then is not used.
    int64_t last = argument.type.getNumElements() - 1;
    auto [low, high] = nest->space.range(expr->index);
    bool mayBeOutside = low < 0 || high > last;
    if (!isVarying(expr)) {
      Value index = scalarIndex(expr->index);
      if (mayBeOutside)
        index = clamp(index, 0, last);
      return fromMemory(LLVM::LoadOp::create(b, element, address(argument, element, index), alignment),
                        argument.type.getElementType());
    }
    auto type = VectorType::get({lanes.count}, element);
    unsigned dim = llvm::countr_zero(lanes.dim);
    int64_t extent = nest->space.size(dim);
    if (IndexSpace::coefficient(expr->index, dim) == 1 && (!mayBeOutside || extent <= last + 1)) {
      Value index = scalarIndex(expr->index);
      if (mayBeOutside) {
        Value along = dimValue(dim);
        Value rest = clamp(arith::SubIOp::create(b, index, along), 0, last + 1 - extent);
        index = arith::AddIOp::create(b, rest, along);
      }
      Value pointer = address(argument, element, index);
      if (!lanes.mask)
        return fromMemory(LLVM::LoadOp::create(b, type, pointer, alignment), argument.type.getElementType());
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
      return fromMemory(LLVM::MaskedLoadOp::create(b, type, pointer, lanes.mask, zero, alignment),
                        argument.type.getElementType());
    }
    Value index = vectorIndex(expr->index, b.getI64Type());
    if (mayBeOutside)
      index = clamp(index, 0, last);
    Value all = lanes.mask ? lanes.mask : splat(b.getBoolAttr(true), lanes.count);
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return fromMemory(LLVM::masked_gather::create(b, type, address(argument, element, index), all, zero, alignment),
                      argument.type.getElementType());
  }

  Type sameLanes(Value like, Type element) {
    auto vector = dyn_cast<VectorType>(like.getType());
    return laneType(element, vector ? vector.getNumElements() : 0);
  }
  Value integerLike(Value like, int64_t number) {
    auto vector = dyn_cast<VectorType>(like.getType());
    return splat(b.getIntegerAttr(getElementTypeOrSelf(like.getType()), number), vector ? vector.getNumElements() : 0);
  }

  Value fromMemory(Value raw, Type elementType) {
    if (elementType.isInteger(1))
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, raw, integerLike(raw, 0));
    if (elementType.isBF16()) {
      Value bits = arith::ExtUIOp::create(b, sameLanes(raw, b.getI32Type()), raw);
      bits = arith::ShLIOp::create(b, bits, integerLike(bits, 16));
      return arith::BitcastOp::create(b, sameLanes(raw, b.getF32Type()), bits);
    }
    if (elementType.isF16())
      return arith::ExtFOp::create(b, sameLanes(raw, b.getF32Type()), raw);
    return raw;
  }

  Value toMemory(Value computed, Type elementType) {
    if (elementType.isInteger(1))
      return arith::ExtUIOp::create(b, sameLanes(computed, b.getI8Type()), computed);
    if (elementType.isBF16()) {
      // Round to nearest even in the integer that the number's bits are; a NaN stays one.
      Value bits = arith::BitcastOp::create(b, sameLanes(computed, b.getI32Type()), computed);
      Value upper = arith::ShRUIOp::create(b, bits, integerLike(bits, 16));
      Value odd = arith::AndIOp::create(b, upper, integerLike(bits, 1));
      Value rounded = arith::AddIOp::create(b, bits, arith::AddIOp::create(b, odd, integerLike(bits, 0x7FFF)));
      rounded = arith::ShRUIOp::create(b, rounded, integerLike(bits, 16));
      Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, computed, computed);
      Value quiet = arith::OrIOp::create(b, upper, integerLike(bits, 0x40));
      return arith::TruncIOp::create(b, sameLanes(computed, b.getI16Type()),
                                     arith::SelectOp::create(b, isNan, quiet, rounded));
    }
    if (elementType.isF16())
      return arith::TruncFOp::create(b, sameLanes(computed, elementType), computed);
    return computed;
  }

  void store(const Nest::Store &target, Value computed) {
    insertHere();
    const Argument &argument = arguments[inputCount + target.output];
    Type element = memoryType(argument.type.getElementType());
    unsigned alignment = element.getIntOrFloatBitWidth() / 8;
    Value raw = toMemory(toLanes(computed), argument.type.getElementType());
    Value pointer = address(argument, element, scalarIndex(target.index));
    if (lanes.mask)
      LLVM::MaskedStoreOp::create(b, raw, pointer, lanes.mask, alignment);
    else
      LLVM::StoreOp::create(b, raw, pointer, alignment);
  }

  func::FuncOp kernel;
  ImplicitLocOpBuilder b;
  int64_t vectorLanes;
  unsigned inputCount = 0;
  SmallVector<Argument> arguments;
  const Nest *nest = nullptr;
  SmallVector<Scope, 0> scopes;
  Lanes lanes;
  bool unsupported = false;
};

} // namespace

LogicalResult bowline::codegen::emitKernel(ModuleOp module, StringRef symbol, func::FuncOp kernel,
                                           ArrayRef<std::unique_ptr<Nest>> nests, int64_t vectorLanes) {
  return KernelEmitter(kernel, kernel.getLoc(), vectorLanes).emit(module, symbol, nests);
}
