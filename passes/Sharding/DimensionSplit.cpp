//===- DimensionSplit.cpp - One dimension is seen as two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/DimensionSplit.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Sharding/ShardingState.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

void DimensionSplit::ask(StringRef variable, int64_t dim, int64_t parts) {
  auto type =
      cast<RankedTensorType>(cast<TypeAttr>(SymbolTable::lookupSymbolIn(module, variable)->getAttr("type")).getValue());
  requests.insert({classes.of(variable, dim), {parts, type.getDimSize(dim) / parts}});
}

void DimensionSplit::keep(StringRef variable, int64_t rank) {
  for (int64_t dim = 0; dim < rank; ++dim)
    obstructed.insert(classes.of(variable, dim));
}

bool DimensionSplit::isSplit(StringRef variable, int64_t dim) const {
  auto it = split.find(variable);
  return it != split.end() && it->second.test(dim);
}

void DimensionSplit::run() {
  if (requests.empty())
    return;
  findObstacles();
  // What classes say refers to the types of before: all that changes is found first.
  std::vector<Rewrite> rewrites;
  for (auto function : module.getOps<graph::FuncOp>())
    for (Operation &op : function.getBody().front())
      collect(&op, rewrites);
  for (const Rewrite &rewrite : rewrites)
    this->rewrite(rewrite);
  splitVariables();
}

//===----------------------------------------------------------------------===//
// What can be split
//===----------------------------------------------------------------------===//

void DimensionSplit::findObstacles() {
  for (auto function : module.getOps<graph::FuncOp>()) {
    for (auto &[wanted, request] : requests)
      for (BlockArgument argument : function.getArguments())
        if (!classes.dimsIn(wanted, argument).empty())
          obstructed.insert(wanted);
    for (Operation &op : function.getBody().front()) {
      for (Class own : classes.classesOf(&op))
        if (auto request = requests.find(own); request != requests.end() && !canSplit(&op, own, request->second))
          obstructed.insert(own);
    }
  }
  for (Class own : obstructed)
    requests.erase(own);
}

bool DimensionSplit::canSplit(Operation *op, Class wanted, const Request &request) {
  auto isIn = [&](Value value, int64_t dim) { return classes.of(value, dim) == wanted; };
  auto isPart = [&](int64_t offset, int64_t size) { return offset % request.rest == 0 && size == request.rest; };
  if (isa<graph::ReadOp>(op))
    return true;
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    return llvm::all_of(llvm::seq(slice.getType().getRank()), [&](int64_t dim) {
      bool from = isIn(slice.getInput(), dim), to = isIn(slice, dim);
      return from == to || (from && isPart(slice.getOffsets()[dim], slice.getSizes()[dim]));
    });
  if (auto pad = dyn_cast<graph::PadOp>(op))
    return llvm::all_of(llvm::seq(pad.getType().getRank()), [&](int64_t dim) {
      bool from = isIn(pad.getInput(), dim), to = isIn(pad, dim);
      return from == to || (to && isPart(pad.getLow()[dim], typeOf(pad.getInput()).getDimSize(dim)));
    });
  if (auto concat = dyn_cast<graph::ConcatOp>(op); concat && isIn(concat, concat.getDim()))
    return llvm::all_of(concat.getInputs(), [&](Value input) {
      return isPart(0, typeOf(input).getDimSize(concat.getDim())) && !isIn(input, concat.getDim());
    });
  if (!op->hasTrait<OpTrait::Elementwise>() &&
      !isa<arith::ConstantOp, graph::WriteOp, graph::RandomOp, graph::DotGeneralOp, graph::ReduceOp, graph::BroadcastOp,
           graph::TransposeOp, graph::ConcatOp, stage::TransferOp>(op))
    return false;
  return classes.findObstacle(op, wanted).empty();
}

//===----------------------------------------------------------------------===//
// Dimensions before and after
//===----------------------------------------------------------------------===//

template <typename ClassOf> DimensionSplit::Map DimensionSplit::mapOf(int64_t rank, ClassOf classOf) const {
  Map map;
  for (int64_t dim = 0; dim < rank; ++dim) {
    auto it = requests.find(classOf(dim));
    map.push_back(it == requests.end() ? Request{0, 0} : it->second);
  }
  return map;
}

/// The dimensions that one of before has become.
template <typename Map> static SmallVector<int64_t, 2> newDims(const Map &map, int64_t dim) {
  int64_t first = dim + llvm::count_if(ArrayRef(map).take_front(dim), [](auto request) { return request.parts > 0; });
  return map[dim].parts > 0 ? SmallVector<int64_t, 2>{first, first + 1} : SmallVector<int64_t, 2>{first};
}

template <typename Map> static SmallVector<int64_t> newDims(const Map &map, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> list;
  for (int64_t dim : dims)
    llvm::append_range(list, newDims(map, dim));
  return list;
}

template <typename Map> static SmallVector<int64_t> newShape(const Map &map, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> sizes;
  for (auto [request, size] : llvm::zip_equal(map, shape)) {
    if (request.parts > 0)
      sizes.push_back(request.parts);
    sizes.push_back(request.parts > 0 ? request.rest : size);
  }
  return sizes;
}

template <typename Map> static bool changes(const Map &map) {
  return llvm::any_of(map, [](auto request) { return request.parts > 0; });
}

bool DimensionSplit::collect(Operation *op, std::vector<Rewrite> &rewrites) {
  Rewrite rewrite{op, {}, {}};
  bool any = false;
  auto rankOf = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? type.getRank() : 0;
  };
  for (OpOperand &operand : op->getOpOperands()) {
    rewrite.operands.push_back(mapOf(rankOf(operand.get()), [&](int64_t dim) { return classes.of(operand, dim); }));
    any |= changes(rewrite.operands.back());
  }
  for (Value result : op->getResults()) {
    bool isFree = isFreeConstant(result); // changes at its uses
    rewrite.results.push_back(mapOf(isFree ? 0 : rankOf(result), [&](int64_t dim) { return classes.of(result, dim); }));
    any |= changes(rewrite.results.back());
  }
  if (any)
    rewrites.push_back(std::move(rewrite));
  return any;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

void DimensionSplit::rewrite(const Rewrite &rewrite) {
  Operation *op = rewrite.op;
  OpBuilder builder(op);
  for (auto [operand, map] : llvm::zip_equal(op->getOpOperands(), rewrite.operands))
    if (changes(map) && isFreeConstant(operand.get())) {
      auto constant = cast<arith::ConstantOp>(builder.clone(*operand.get().getDefiningOp()));
      auto type = typeOf(constant).clone(newShape(map, typeOf(constant).getShape()));
      constant.getResult().setType(type);
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
      operand.set(constant);
    }
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](graph::DotGeneralOp dot) {
        dot.setLhsBatch(newDims(rewrite.operands[0], dot.getLhsBatch()));
        dot.setRhsBatch(newDims(rewrite.operands[1], dot.getRhsBatch()));
        dot.setLhsContract(newDims(rewrite.operands[0], dot.getLhsContract()));
        dot.setRhsContract(newDims(rewrite.operands[1], dot.getRhsContract()));
      })
      .Case([&](graph::ReduceOp reduce) { reduce.setDims(newDims(rewrite.operands[0], reduce.getDims())); })
      .Case([&](graph::BroadcastOp spread) { spread.setDims(newDims(rewrite.results[0], spread.getDims())); })
      .Case([&](graph::TransposeOp transpose) { transpose.setPerm(newDims(rewrite.operands[0], transpose.getPerm())); })
      .Case([&](graph::SliceOp slice) { rewriteSlice(slice, rewrite.operands[0], rewrite.results[0]); })
      .Case([&](graph::PadOp pad) { rewritePad(pad, rewrite.operands[0], rewrite.results[0]); })
      .Case([&](graph::ConcatOp concat) { rewriteConcat(concat, rewrite.operands, rewrite.results[0]); });
  if (isa<graph::SliceOp>(op))
    return; // sets its type itself
  for (auto [result, map] : llvm::zip_equal(op->getResults(), rewrite.results))
    if (changes(map))
      result.setType(typeOf(result).clone(newShape(map, typeOf(result).getShape())));
}

/// A part that is taken out of a split dimension has a dimension of size 1 in front.
void DimensionSplit::rewriteSlice(graph::SliceOp slice, const Map &input, const Map &result) {
  SmallVector<int64_t> offsets, sizes;
  for (auto [request, offset, size] : llvm::zip_equal(input, slice.getOffsets(), slice.getSizes())) {
    if (request.parts == 0) {
      offsets.push_back(offset);
      sizes.push_back(size);
      continue;
    }
    offsets.append({offset / request.rest, 0});
    sizes.append({size / request.rest, request.rest});
  }
  RankedTensorType type = slice.getType();
  RankedTensorType wanted = type.clone(newShape(result, type.getShape()));
  slice.setOffsets(offsets);
  slice.setSizes(sizes);
  slice.getResult().setType(type.clone(sizes));
  if (slice.getType() == wanted)
    return;
  OpBuilder builder(slice->getContext());
  builder.setInsertionPointAfter(slice);
  auto reshape = graph::ReshapeOp::create(builder, slice.getLoc(), wanted, slice);
  slice.getResult().replaceAllUsesExcept(reshape, reshape);
}

/// \p value, the dimension \p dim of which is one part of a split one, with a dimension of size 1 in front of it.
static Value asPart(Value value, int64_t dim, Operation *user) {
  OpBuilder builder(user);
  SmallVector<int64_t> shape = llvm::to_vector(typeOf(value).getShape());
  shape.insert(shape.begin() + dim, 1);
  return graph::ReshapeOp::create(builder, user->getLoc(), typeOf(value).clone(shape), value);
}

void DimensionSplit::rewritePad(graph::PadOp pad, const Map &input, const Map &result) {
  SmallVector<int64_t> low, high;
  for (auto [dim, from, to] : llvm::enumerate(input, result)) {
    int64_t before = pad.getLow()[dim], after = pad.getHigh()[dim];
    if (to.parts == 0) {
      low.push_back(before);
      high.push_back(after);
      continue;
    }
    if (from.parts == 0)
      pad.getInputMutable().assign(asPart(pad.getInput(), newDims(result, static_cast<int64_t>(dim)).front(), pad));
    low.append({before / to.rest, 0});
    high.append({after / to.rest, 0});
  }
  pad.setLow(low);
  pad.setHigh(high);
}

void DimensionSplit::rewriteConcat(graph::ConcatOp concat, ArrayRef<Map> inputs, const Map &result) {
  int64_t dim = concat.getDim();
  int64_t joined = newDims(result, dim).front();
  if (result[dim].parts > 0)
    for (OpOperand &operand : concat->getOpOperands())
      operand.set(asPart(operand.get(), joined, concat));
  concat.setDim(joined);
}

void DimensionSplit::splitVariables() {
  for (Operation &op : *module.getBody()) {
    if (!isa<graph::ParamOp, graph::StateOp>(op))
      continue;
    StringRef name = SymbolTable::getSymbolName(&op).getValue();
    auto type = cast<RankedTensorType>(op.getAttrOfType<TypeAttr>("type").getValue());
    Map map = mapOf(type.getRank(), [&](int64_t dim) { return classes.of(name, dim); });
    if (!changes(map))
      continue;
    llvm::SmallBitVector &dims = split[name];
    for (const Request &request : map) {
      dims.resize(dims.size() + 1);
      if (request.parts > 0)
        dims.set(dims.size() - 1);
    }
    RankedTensorType viewed = type.clone(newShape(map, type.getShape()));
    op.setAttr("type", TypeAttr::get(viewed));
    op.removeAttr(DistDialect::kShardingAttr);
    op.setAttr(DistDialect::kGlobalShapeAttr, DenseI64ArrayAttr::get(op.getContext(), type.getShape()));
    op.setAttr(DistDialect::kViewAttr, DenseI64ArrayAttr::get(op.getContext(), viewed.getShape()));
  }
}
