//===- TensorParallel.cpp - How tensor parallelism shards a layer's parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/TensorParallel.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/UsesInOrder.h"

using namespace mlir;
using namespace bowline;

/// The parameter whose value \p value is, perhaps rounded; empty if it is none.
static StringRef parameterOf(Value value) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<graph::ReadOp>();
  return read ? read.getVariable() : "";
}

/// The number of heads where `split` is `joined` whose last dimension is split into heads and their elements, and whose
/// rows may be in other dimensions: those of a cache have none for sequences. 0 where it is not.
static int64_t headsOf(ArrayRef<int64_t> joined, ArrayRef<int64_t> split) {
  bool hasRows = split.size() > 2 || (split.size() == 2 && joined.size() == 1);
  if (!hasRows || joined.empty() || split.back() * split[split.size() - 2] != joined.back() ||
      ShapedType::getNumElements(split) != ShapedType::getNumElements(joined))
    return 0;
  return split[split.size() - 2];
}

/// The number of heads into which the last dimension of \p projection, perhaps with its bias added, or that of one of
/// its parts, is split; 0 if it is not split.
static int64_t findHeads(Value projection) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(projection.getType()).getShape();
  for (OpOperand *use : usesInOrder(projection)) {
    Operation *user = use->getOwner();
    // By name: the layers of frontends/hf have these operations between a projection and its heads.
    if (isa<arith::AddFOp, arith::TruncFOp, arith::ExtFOp, graph::SliceOp>(user)) {
      if (int64_t heads = findHeads(user->getResult(0)))
        return heads;
      continue;
    }
    if (!graph::isView(user))
      continue;
    if (int64_t heads = headsOf(before, cast<RankedTensorType>(user->getResult(0).getType()).getShape()))
      return heads;
  }
  return 0;
}

/// The number of heads from which \p activations, perhaps rounded, are joined; 0 if they are not joined from heads.
static int64_t findJoinedHeads(Value activations) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(activations.getDefiningOp()))
    activations = activations.getDefiningOp()->getOperand(0);
  Operation *view = activations.getDefiningOp();
  if (!view || !graph::isView(view))
    return 0;
  ArrayRef<int64_t> before = cast<RankedTensorType>(view->getOperand(0).getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(activations.getType()).getShape();
  return headsOf(after, before);
}

/// The other operand that has the factor; null if there is none.
static OpOperand *findOther(const graph::FactorRule &rule, OpOperand &operand, int64_t factor) {
  for (OpOperand &other : operand.getOwner()->getOpOperands())
    if (&other != &operand && graph::hasFactor(rule.operands[other.getOperandNumber()], factor))
      return &other;
  return nullptr;
}

/// How an operation projects another operand by the matrix \p weight: one of its dimensions is summed over with that
/// operand, and one is the result's alone. Nothing where it does something else.
std::optional<TensorParallel::Use> TensorParallel::useBy(graph::Factored contraction, OpOperand &weight) {
  if (contraction->getNumResults() != 1)
    return std::nullopt;
  graph::FactorRule rule = contraction.factorRule();
  SmallVector<int64_t> inputs, outputs;
  Value activations;
  for (auto [dim, factors] : llvm::enumerate(rule.operands[weight.getOperandNumber()])) {
    if (factors.size() != 1)
      continue;
    OpOperand *other = findOther(rule, weight, factors.front());
    bool sums = rule.factors[factors.front()].kind == graph::FactorRule::Kind::Reduction;
    if (sums && other) {
      inputs.push_back(static_cast<int64_t>(dim));
      activations = other->get();
    } else if (!sums && !other && graph::hasFactor(rule.results[0], factors.front())) {
      outputs.push_back(static_cast<int64_t>(dim));
    }
  }
  if (inputs.size() != 1 || outputs.size() != 1)
    return std::nullopt;
  return Use{inputs.front(), outputs.front(), findJoinedHeads(activations), findHeads(contraction->getResult(0))};
}

TensorParallel::TensorParallel(ModuleOp module, StringRef axis, int64_t ranks, std::function<bool(int64_t)> allows)
    : module(module), axis(axis.str()), ranks(ranks), allows(std::move(allows)) {
  findUses();
}

void TensorParallel::findUses() {
  for (auto function : module.getOps<graph::FuncOp>())
    findUses(function);
}

/// In each function the first contraction is the one that projects: those of the backward pass need its result.
void TensorParallel::findUses(graph::FuncOp function) {
  llvm::StringMap<Use> own;
  auto note = [&](Value param, Use use) {
    if (StringRef name = parameterOf(param); !name.empty())
      own.try_emplace(name, use);
  };
  function.walk([&](graph::Factored contraction) {
    for (OpOperand &weight : contraction->getOpOperands())
      if (StringRef name = parameterOf(weight.get()); !name.empty())
        if (std::optional<Use> use = useBy(contraction, weight))
          own.try_emplace(name, *use);
  });
  // By name: a bias is a vector that is repeated along rows, which is this operation.
  function.walk([&](graph::BroadcastOp bias) {
    if (cast<RankedTensorType>(bias.getInput().getType()).getRank() == 1)
      note(bias.getInput(), Use{std::nullopt, 0, 0, findHeads(bias.getResult())});
  });
  function.walk([&](Operation *op) {
    // By name: rows of a table are looked up by these operations alone, whose first operand it is.
    if (!isa<graph::GatherOp, graph::QuantizedGatherOp>(op))
      return;
    if (StringRef name = parameterOf(op->getOperand(0)); !name.empty())
      tables.insert(name);
  });
  for (const auto &entry : own)
    if (auto [known, isNew] = uses.try_emplace(entry.first(), entry.second); !isNew && known->second != entry.second)
      ambiguous.insert(entry.first());
}

const TensorParallel::Use *TensorParallel::findUse(graph::ParamOp param) const {
  auto use = uses.find(param.getName());
  return use == uses.end() || ambiguous.contains(param.getName()) ? nullptr : &use->second;
}

static constexpr StringRef kNoUse = "no contraction with one input and one output dimension reads them";
static constexpr StringRef kAmbiguous = "functions contract other dimensions of them, or have other numbers of heads";
static constexpr StringRef kHeads = "their number of heads does not divide";
static constexpr StringRef kBlocks =
    "neither their rows nor the blocks of these divide, and blocks of bits are not padded";
static constexpr StringRef kPartsInBlocks = "parts of a matrix in blocks of bits are not divided";

StringRef TensorParallel::reasonForNoUse(graph::ParamOp param) const {
  return ambiguous.contains(param.getName()) ? kAmbiguous : kNoUse;
}

std::optional<TensorParallel::Sharding> TensorParallel::shardOutput(graph::ParamOp param, StringRef &reason) const {
  const Use *use = findUse(param);
  if (use && use->outputHeads % ranks == 0)
    return Sharding{use->output};
  reason = use ? kHeads : reasonForNoUse(param);
  return std::nullopt;
}

std::optional<TensorParallel::Sharding> TensorParallel::shardInput(graph::ParamOp param, StringRef &reason) const {
  const Use *use = findUse(param);
  if (use && use->input && use->inputHeads % ranks == 0)
    return Sharding{*use->input};
  reason = use && use->input ? kHeads : reasonForNoUse(param);
  return std::nullopt;
}

std::optional<TensorParallel::Sharding> TensorParallel::shardParts(graph::ParamOp param, StringRef &reason) const {
  auto whole = param->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kGlobalShapeAttr);
  int64_t rank = param.getTensorType().getRank();
  if (whole && whole.size() < rank)
    return Sharding{rank - 1}; // a strategy was applied before, and gave the parts a dimension
  std::optional<Sharding> sharding = shardOutput(param, reason);
  if (!sharding)
    return std::nullopt;
  ArrayRef<int64_t> parts = param.getRoleAttr().getParts();
  sharding->parts = static_cast<int64_t>(parts.size());
  if (llvm::all_equal(parts) && param.getTensorType().getDimSize(sharding->dim) == sharding->parts * parts.front())
    return sharding;
  reason = llvm::all_equal(parts) ? "their output has not the size of their parts" : "their parts are not of one size";
  return std::nullopt;
}

InFlightDiagnostic TensorParallel::refuseKeyHeads(graph::ParamOp param, int64_t heads, int64_t keyHeads) const {
  InFlightDiagnostic diagnostic = mlir::emitError(param.getLoc());
  diagnostic << "'" << param.getName() << "' has " << keyHeads << " heads: the " << ranks << " ranks along \"" << axis
             << "\" neither divide them nor share each of them evenly; numbers of ranks that do are ";
  SmallVector<int64_t> valid;
  for (int64_t size = 1; size <= std::min(heads, dist::MeshOp::kMaxRanks); ++size)
    if (heads % size == 0 && (keyHeads % size == 0 || size % keyHeads == 0) && allows(size))
      valid.push_back(size);
  llvm::interleaveComma(valid, diagnostic);
  return diagnostic;
}

/// A rank holds the key heads that its query heads use: these are in the same order, in groups of one size.
FailureOr<std::optional<TensorParallel::Sharding>> TensorParallel::shardKeys(graph::ParamOp param,
                                                                             StringRef &reason) const {
  const Use *use = findUse(param);
  if (!use || use->outputHeads % ranks == 0)
    return shardOutput(param, reason);
  int64_t keyHeads = use->outputHeads, heads = keyHeads * param.getRoleAttr().getSharedBy();
  if (heads % ranks != 0) {
    reason = kHeads;
    return std::optional<Sharding>();
  }
  if (ranks % keyHeads != 0)
    return refuseKeyHeads(param, heads, keyHeads);
  if (keyHeads > 1)
    return std::optional(Sharding{use->output, 1, keyHeads});
  reason = "all ranks use their only head";
  return std::optional<Sharding>();
}

FailureOr<std::optional<TensorParallel::Sharding>> TensorParallel::findSharding(graph::ParamOp param,
                                                                                StringRef &reason) const {
  if (!param.getRoleAttr()) {
    reason = "no role says how they are divided; give them one, as in graph.param ... role(column), or a line 'shard'";
    return std::optional<Sharding>();
  }
  switch (param.getRoleAttr().getKind()) {
  case graph::RoleKind::None:
    return std::optional<Sharding>();
  case graph::RoleKind::Vocabulary:
    return tables.contains(param.getName()) ? std::optional(Sharding{0}) : shardOutput(param, reason);
  case graph::RoleKind::Column:
    return shardOutput(param, reason);
  case graph::RoleKind::Row:
    return shardInput(param, reason);
  case graph::RoleKind::Keys:
    return shardKeys(param, reason);
  case graph::RoleKind::Fused:
    return shardParts(param, reason);
  case graph::RoleKind::Expert:
    reason = "tensor parallelism does not divide experts; a line 'shard' may";
    return std::optional<Sharding>();
  }
  llvm_unreachable("unknown role");
}

/// A sharding of whole blocks, as near to \p sharding as there is one.
std::optional<TensorParallel::Sharding> TensorParallel::fitBlocks(graph::ParamOp param, Sharding sharding,
                                                                  StringRef &reason) const {
  if (!param.getFormat())
    return sharding;
  if (sharding.parts > 1) {
    reason = kPartsInBlocks;
    return std::nullopt;
  }
  auto divides = [&](int64_t dim, int64_t pieces) { return param.getTensorType().getDimSize(dim) % pieces == 0; };
  if (divides(sharding.dim, sharding.pieces ? sharding.pieces : ranks))
    return sharding;
  if (sharding.dim != 0 && divides(0, ranks))
    return Sharding{0};
  reason = kBlocks;
  return std::nullopt;
}

/// Where heads do not divide, all ranks have the input of a matrix in blocks of bits that reads them, but each may
/// compute a part of its output, as it does of the matrix whose blocks do not divide.
std::optional<TensorParallel::Sharding> TensorParallel::shardRowsOfBlocks(graph::ParamOp param) const {
  bool readsHeads = param.getRoleAttr() && param.getRoleAttr().getKind() == graph::RoleKind::Row;
  if (!param.getFormat() || !readsHeads || param.getTensorType().getDimSize(0) % ranks != 0)
    return std::nullopt;
  return Sharding{0};
}

FailureOr<std::optional<TensorParallel::Sharding>> TensorParallel::findSharding(graph::ParamOp param) {
  StringRef reason;
  FailureOr<std::optional<Sharding>> sharding = findSharding(param, reason);
  if (succeeded(sharding) && *sharding)
    sharding = fitBlocks(param, **sharding, reason);
  else if (succeeded(sharding) && reason == kHeads)
    sharding = shardRowsOfBlocks(param);
  if (succeeded(sharding) && !*sharding && !reason.empty())
    keepWhole(param, reason);
  return sharding;
}
