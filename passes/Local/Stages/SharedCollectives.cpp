//===- SharedCollectives.cpp - Collectives that run once for all microbatches of a pass
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/SharedCollectives.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/TrainingNames.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

/// Whether a function computes for a microbatch, other than to exchange something with another stage.
static bool isPass(graph::FuncOp function) {
  std::optional<graph::FunctionPart> part = function.getPart();
  return part && llvm::is_contained({graph::FunctionPart::Microbatch, graph::FunctionPart::Forward,
                                     graph::FunctionPart::Backward, graph::FunctionPart::BackwardInput,
                                     graph::FunctionPart::BackwardWeight},
                                    *part);
}

SharedCollectives::Counts SharedCollectives::run() {
  SmallVector<Row> rows = findRows(), shared;
  SmallVector<std::pair<graph::FuncOp, graph::FuncOp>> around;
  for (const Row &row : rows) {
    graph::FuncOp before = gatherBefore(row.function);
    if (!before)
      continue;
    shared.push_back(row);
    around.push_back({before, reduceBehind(row.function, before)});
  }
  if (!shared.empty())
    addToEntry(shared, around);
  return counts;
}

SmallVector<SharedCollectives::Row> SharedCollectives::findRows() {
  SmallVector<graph::FuncOp> functions;
  for (auto name : entry.getFunctions().getAsRange<FlatSymbolRefAttr>())
    functions.push_back(symbols.lookup<graph::FuncOp>(name.getAttr()));
  SmallVector<Row> rows;
  for (auto [position, call] : llvm::enumerate(entry.getCalls())) {
    graph::FuncOp function = functions[call.first];
    if (!isPass(function))
      continue;
    if (!rows.empty() && rows.back().function == function)
      rows.back().last = position;
    else
      rows.push_back({function, position, position});
  }
  llvm::erase_if(rows, [&](const Row &row) {
    auto isSame = [&](const Row &other) { return other.function == row.function; };
    return row.first == row.last || llvm::count_if(rows, isSame) != 1;
  });
  return rows;
}

graph::FuncOp SharedCollectives::createFunction(const Twine &name, graph::FuncOp function) {
  OpBuilder builder(function);
  auto created =
      graph::FuncOp::create(builder, function.getLoc(), name.str(), builder.getFunctionType({}, {}), std::nullopt);
  symbols.insert(created, function->getIterator());
  Block &block = created.getBody().empty() ? created.getBody().emplaceBlock() : created.getBody().front();
  builder.setInsertionPointToEnd(&block);
  graph::ReturnOp::create(builder, function.getLoc(), ValueRange());
  return created;
}

graph::StateOp SharedCollectives::createState(const Twine &name, Type type, graph::FuncOp user, Operation *variable,
                                              ArrayAttr summands) {
  using dist::DistDialect;
  OpBuilder builder(user);
  auto tensor = cast<RankedTensorType>(type);
  auto state = graph::StateOp::create(builder, user.getLoc(), name.str(), graph::Lifetime::Run, tensor,
                                      graph::FillAttr::get(builder.getContext(), builder.getF64FloatAttr(0.0)));
  // Ranks that have other parts of the variable have other parts of this, one behind the other.
  SmallVector<SmallVector<StringAttr>> axes(tensor.getRank());
  SmallVector<StringAttr> unreduced(summands.getAsRange<StringAttr>());
  SmallVector<int64_t> shape(tensor.getShape());
  if (auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr)) {
    dist::MeshOp mesh = dist::StrategyOp::of(role).getOnly<dist::MeshOp>();
    for (dist::DimAttr dim : sharding.getDims())
      for (StringAttr axis : dim.getAxes()) {
        axes[0].push_back(axis);
        shape[0] *= mesh.getAxisSizes()[*mesh.getAxis(axis)];
      }
    llvm::append_range(unreduced, sharding.getUnreduced());
  }
  state->setAttr(DistDialect::kShardingAttr,
                 dist::ShardingAttr::get(builder.getContext(), axes).withUnreduced(unreduced));
  state->setAttr(DistDialect::kGlobalShapeAttr, builder.getDenseI64ArrayAttr(shape));
  symbols.insert(state, user->getIterator());
  return state;
}

/// The operations that compute \p value from a parameter alone, in their order, in \p chain; false if there is another
/// origin.
static bool collectChain(Value value, SymbolTable &symbols, SmallVectorImpl<Operation *> &chain) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (llvm::is_contained(chain, op))
    return true;
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    if (!symbols.lookup<graph::ParamOp>(read.getVariable()))
      return false;
  } else if (!isPure(op) || op->getNumRegions() > 0 ||
             !llvm::all_of(op->getOperands(), [&](Value operand) { return collectChain(operand, symbols, chain); })) {
    return false;
  }
  chain.push_back(op);
  return true;
}

graph::FuncOp SharedCollectives::gatherBefore(graph::FuncOp function) {
  graph::FuncOp before;
  for (auto gather : llvm::make_early_inc_range(function.getBody().front().getOps<dist::AllGatherOp>())) {
    SmallVector<Operation *> chain;
    if (!gather->hasAttr(dist::DistDialect::kPrefetchAttr) || !collectChain(gather.getResult(), symbols, chain))
      continue;
    if (!before)
      before = createFunction("gather." + function.getSymName(), function);
    OpBuilder builder(before.getBody().front().getTerminator());
    IRMapping mapping;
    Type type = gather.getResult().getType();
    StringRef parameter = cast<graph::ReadOp>(chain.front()).getVariable();
    std::string known = training::gatheredFor(function.getSymName(), parameter);
    auto state = symbols.lookup<graph::StateOp>(known);
    if (!state || state.getTensorType() != type) { // else the forward part of the function gathers the same
      state = createState(known, type, before, symbols.lookup(parameter), ArrayAttr::get(role.getContext(), {}));
      for (Operation *op : chain)
        builder.clone(*op, mapping);
      graph::WriteOp::create(builder, gather.getLoc(), FlatSymbolRefAttr::get(state),
                             mapping.lookup(gather.getResult()));
    }
    auto name = FlatSymbolRefAttr::get(state);
    OpBuilder reads(gather);
    gather.getResult().replaceAllUsesWith(graph::ReadOp::create(reads, gather.getLoc(), type, name));
    for (Operation *op : llvm::reverse(chain))
      if (op->use_empty())
        op->erase();
    ++counts.gathers;
  }
  return before;
}

/// The sum of \p scattered and of its accumulator's value, where it is for that alone.
static graph::WriteOp accumulates(dist::ReduceScatterOp scattered, SymbolTable &symbols) {
  if (!scattered.getResult().hasOneUse())
    return {};
  auto sum = dyn_cast<arith::AddFOp>(*scattered.getResult().user_begin());
  if (!sum || !sum.getResult().hasOneUse())
    return {};
  auto write = dyn_cast<graph::WriteOp>(*sum.getResult().user_begin());
  auto state = write ? symbols.lookup<graph::StateOp>(write.getVariable()) : graph::StateOp();
  if (!state || !state.isAccumulator())
    return {};
  Value other = sum.getLhs() == scattered.getResult() ? sum.getRhs() : sum.getLhs();
  auto read = other.getDefiningOp<graph::ReadOp>();
  return read && read.getVariable() == write.getVariable() && other.hasOneUse() ? write : graph::WriteOp();
}

graph::FuncOp SharedCollectives::reduceBehind(graph::FuncOp function, graph::FuncOp before) {
  graph::FuncOp behind;
  for (auto scattered : llvm::make_early_inc_range(function.getBody().front().getOps<dist::ReduceScatterOp>())) {
    graph::WriteOp write = accumulates(scattered, symbols);
    if (!write)
      continue;
    if (!behind)
      behind = createFunction("reduce." + function.getSymName(), function);
    auto sum = write.getValue().getDefiningOp<arith::AddFOp>();
    Value part = scattered.getInput(),
          accumulated = sum.getLhs() == scattered.getResult() ? sum.getRhs() : sum.getLhs();
    auto type = cast<RankedTensorType>(part.getType());
    Location loc = scattered.getLoc();
    graph::StateOp whole = createState(write.getVariable() + ".whole", type, before,
                                       symbols.lookup(write.getVariable()), scattered.getAxes());
    auto name = FlatSymbolRefAttr::get(whole);

    OpBuilder zeros(before.getBody().front().getTerminator());
    Value zero = arith::ConstantOp::create(zeros, loc, type, cast<TypedAttr>(zeros.getZeroAttr(type)));
    graph::WriteOp::create(zeros, loc, name, zero);

    OpBuilder reduces(behind.getBody().front().getTerminator());
    IRMapping mapping;
    mapping.map(part, graph::ReadOp::create(reduces, loc, type, name).getResult());
    for (Operation *op :
         {scattered.getOperation(), accumulated.getDefiningOp(), sum.getOperation(), write.getOperation()})
      reduces.clone(*op, mapping);

    OpBuilder adds(sum);
    Value before = graph::ReadOp::create(adds, loc, type, name);
    graph::WriteOp::create(adds, loc, name, arith::AddFOp::create(adds, loc, before, part));
    for (Operation *op :
         {write.getOperation(), sum.getOperation(), accumulated.getDefiningOp(), scattered.getOperation()})
      op->erase();
    ++counts.reductions;
  }
  return behind;
}

/// With a timeline new functions stand in front of the last one, which ends it; without one they stand around the row.
void SharedCollectives::addToEntry(ArrayRef<Row> rows, ArrayRef<std::pair<graph::FuncOp, graph::FuncOp>> around) {
  Builder builder(entry.getContext());
  if (!entry.getTimeline()) {
    SmallVector<Attribute> functions;
    SmallVector<int64_t> repeat;
    auto add = [&](Attribute function, int64_t runs) {
      functions.push_back(function);
      repeat.push_back(runs);
    };
    for (auto [name, runs] : llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat())) {
      const auto *row = llvm::find_if(
          rows, [&, name = name](Row candidate) { return candidate.function.getSymNameAttr() == name.getAttr(); });
      const bool isRow = row != rows.end();
      auto functionsOfRow = isRow ? around[row - rows.begin()] : std::pair<graph::FuncOp, graph::FuncOp>();
      if (functionsOfRow.first)
        add(FlatSymbolRefAttr::get(functionsOfRow.first), 1);
      add(name, runs);
      if (functionsOfRow.second)
        add(FlatSymbolRefAttr::get(functionsOfRow.second), 1);
    }
    entry.setFunctionsAttr(builder.getArrayAttr(functions));
    entry.setRepeat(repeat);
    return;
  }
  SmallVector<Attribute> functions(entry.getFunctions().getValue());
  Attribute end = functions.pop_back_val();
  const auto oldEnd = static_cast<int64_t>(functions.size());
  std::multimap<size_t, int64_t> before, behind; // functions, by position of a call
  auto add = [&](graph::FuncOp function, size_t position, std::multimap<size_t, int64_t> &where) {
    if (!function)
      return;
    where.insert({position, static_cast<int64_t>(functions.size())});
    functions.push_back(FlatSymbolRefAttr::get(function));
  };
  for (auto [row, functionsOfRow] : llvm::zip_equal(rows, around)) {
    add(functionsOfRow.first, row.first, before);
    add(functionsOfRow.second, row.last, behind);
  }
  const auto newEnd = static_cast<int64_t>(functions.size());
  functions.push_back(end);

  SmallVector<int64_t> timeline;
  auto callAll = [&](const std::multimap<size_t, int64_t> &where, size_t position) {
    auto [begin, last] = where.equal_range(position);
    for (auto it = begin; it != last; ++it)
      timeline.append({it->second, 0});
  };
  for (auto [position, call] : llvm::enumerate(entry.getCalls())) {
    callAll(before, position);
    timeline.append({call.first == oldEnd ? newEnd : call.first, call.second});
    callAll(behind, position);
  }
  entry.setFunctionsAttr(builder.getArrayAttr(functions));
  entry.setRepeat(SmallVector<int64_t>(functions.size(), 1));
  entry.setTimeline(timeline);
}
