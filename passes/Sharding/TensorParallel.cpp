//===- TensorParallel.cpp - Where tensor parallelism cuts a layer's parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/TensorParallel.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline;

namespace {
enum class Role { Vocabulary, Fused, Keys, IntoLayer, OutOfLayer };
} // namespace

/// Biases have the role of their weights.
static std::optional<Role> roleOf(StringRef name) {
  struct Named {
    StringRef suffix;
    Role role;
  };
  static constexpr Named kRoles[] = {
      {".attn.wqkv", Role::Fused},      {".attn.bqkv", Role::Fused},    {".attn.wq", Role::IntoLayer},
      {".attn.bq", Role::IntoLayer},    {".attn.wk", Role::Keys},       {".attn.wv", Role::Keys},
      {".attn.bk", Role::Keys},         {".attn.bv", Role::Keys},       {".mlp.w_gate", Role::IntoLayer},
      {".mlp.w_up", Role::IntoLayer},   {".mlp.b_up", Role::IntoLayer}, {".attn.wo", Role::OutOfLayer},
      {".mlp.w_down", Role::OutOfLayer}};
  if (name == "embed" || name == "head")
    return Role::Vocabulary;
  for (const Named &named : kRoles)
    if (name.ends_with(named.suffix))
      return named.role;
  return std::nullopt;
}

/// The parameter whose value \p value is, perhaps rounded; empty if it is none.
static StringRef parameterOf(Value value) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<graph::ReadOp>();
  return read ? read.getVariable() : "";
}

/// Into how many heads the last dimension of \p projection, with its bias perhaps, or of a part of it, is split; 0 if
/// it is not.
static int64_t findHeads(Value projection) {
  int64_t rank = cast<RankedTensorType>(projection.getType()).getRank();
  for (Operation *user : projection.getUsers()) {
    if (isa<arith::AddFOp, arith::TruncFOp, arith::ExtFOp, graph::SliceOp>(user)) {
      if (int64_t heads = findHeads(user->getResult(0)))
        return heads;
      continue;
    }
    auto reshape = dyn_cast<graph::ReshapeOp>(user);
    if (!reshape)
      continue;
    auto before = cast<RankedTensorType>(projection.getType());
    auto after = cast<RankedTensorType>(reshape.getResult().getType());
    if (after.getRank() == rank + 1 && after.getShape().take_front(rank - 1) == before.getShape().drop_back())
      return after.getDimSize(rank - 1);
  }
  return 0;
}

/// How many heads \p activations, perhaps rounded, are joined from; 0 if they are not.
static int64_t findJoinedHeads(Value activations) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(activations.getDefiningOp()))
    activations = activations.getDefiningOp()->getOperand(0);
  auto reshape = activations.getDefiningOp<graph::ReshapeOp>();
  if (!reshape)
    return 0;
  ArrayRef<int64_t> before = cast<RankedTensorType>(reshape.getInput().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(activations.getType()).getShape();
  return before.size() == after.size() + 1 && before.drop_back(2) == after.drop_back() ? before[after.size() - 1] : 0;
}

TensorParallel::TensorParallel(ModuleOp module, StringRef axis, int64_t ranks)
    : module(module), axis(axis.str()), ranks(ranks) {
  // Forward functions come first in a module: the first contraction is the one that projects.
  module.walk([&](graph::DotGeneralOp dot) {
    auto note = [&](Value weight, ArrayRef<int64_t> contracted, ArrayRef<int64_t> free, Value activations) {
      StringRef name = parameterOf(weight);
      if (!name.empty() && contracted.size() == 1 && free.size() == 1)
        uses.try_emplace(
            name, Use{contracted.front(), free.front(), findJoinedHeads(activations), findHeads(dot.getResult())});
    };
    note(dot.getLhs(), dot.getLhsContract(), dot.getLhsFree(), dot.getRhs());
    note(dot.getRhs(), dot.getRhsContract(), dot.getRhsFree(), dot.getLhs());
  });
  module.walk([&](graph::GatherOp gather) {
    if (StringRef name = parameterOf(gather.getTable()); !name.empty())
      tables.insert(name);
  });
}

const TensorParallel::Use *TensorParallel::findUse(StringRef weight) const {
  auto use = uses.find(weight);
  return use == uses.end() ? nullptr : &use->second;
}

static constexpr StringRef kHeads = "their number of heads does not divide";

std::optional<TensorParallel::Cut> TensorParallel::findWeightCut(graph::ParamOp weight, bool alongOutput,
                                                                 StringRef &reason) const {
  const Use *use = findUse(weight.getName());
  if (!use) {
    reason = "no contraction with one input and one output dimension reads them";
    return std::nullopt;
  }
  if ((alongOutput ? use->outputHeads : use->inputHeads) % ranks != 0) {
    reason = kHeads;
    return std::nullopt;
  }
  return Cut{alongOutput ? use->output : use->input};
}

InFlightDiagnostic TensorParallel::refuseKeyHeads(graph::ParamOp weight, int64_t heads, int64_t keyHeads) const {
  InFlightDiagnostic diagnostic = mlir::emitError(weight.getLoc());
  diagnostic << "'" << weight.getName() << "' has " << keyHeads << " heads: the " << ranks << " ranks along \"" << axis
             << "\" neither divide them nor share each of them evenly; valid numbers of ranks are ";
  SmallVector<int64_t> valid;
  for (int64_t size = 1; size <= std::min(heads, dist::MeshOp::kMaxRanks); ++size)
    if (heads % size == 0 && (keyHeads % size == 0 || size % keyHeads == 0))
      valid.push_back(size);
  llvm::interleaveComma(valid, diagnostic);
  return diagnostic;
}

/// A rank holds the key heads that its query heads use: these are in the same order, in groups of one size.
FailureOr<std::optional<TensorParallel::Cut>> TensorParallel::findKeyCut(graph::ParamOp weight,
                                                                         StringRef &reason) const {
  const Use *keys = findUse(weight.getName());
  const Use *queries = findUse((weight.getName().rsplit('.').first + ".wq").str());
  if (!keys || !queries || keys->outputHeads % ranks == 0)
    return findWeightCut(weight, /*alongOutput=*/true, reason);
  if (queries->outputHeads % ranks != 0) {
    reason = kHeads;
    return std::optional<Cut>();
  }
  if (ranks % keys->outputHeads != 0)
    return refuseKeyHeads(weight, queries->outputHeads, keys->outputHeads);
  if (keys->outputHeads > 1)
    return std::optional(Cut{keys->output, 1, keys->outputHeads});
  reason = "all ranks use their only head";
  return std::optional<Cut>();
}

FailureOr<std::optional<TensorParallel::Cut>> TensorParallel::findCut(graph::ParamOp param, StringRef &reason) const {
  Role role = *roleOf(param.getName());
  int64_t rank = param.getTensorType().getRank();
  auto whole = param->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kGlobalShapeAttr);
  if (role == Role::Fused && whole && whole.size() < rank)
    return std::optional(Cut{rank - 1}); // a strategy was applied before, and gave the parts a dimension
  auto [prefix, last] = param.getName().rsplit('.');
  if (role != Role::Vocabulary && last.starts_with("b")) {
    // As its weight: "attn.bq" goes with "attn.wq".
    auto weight = ModuleOp(module).lookupSymbol<graph::ParamOp>((prefix + ".w" + last.drop_front()).str());
    if (!weight || param.getTensorType().getRank() != 1) {
      reason = "the weight that they belong to is missing";
      return std::optional<Cut>();
    }
    FailureOr<std::optional<Cut>> cut = findCut(weight, reason);
    if (succeeded(cut) && *cut)
      (*cut)->dim = 0;
    return cut;
  }
  switch (role) {
  case Role::Vocabulary:
    if (tables.contains(param.getName()))
      return std::optional(Cut{0});
    return findWeightCut(param, /*alongOutput=*/true, reason);
  case Role::Keys:
    return findKeyCut(param, reason);
  case Role::OutOfLayer:
    return findWeightCut(param, /*alongOutput=*/false, reason);
  case Role::IntoLayer:
    return findWeightCut(param, /*alongOutput=*/true, reason);
  case Role::Fused:
    break;
  }
  std::optional<Cut> cut = findWeightCut(param, /*alongOutput=*/true, reason);
  if (cut && param.getTensorType().getDimSize(cut->dim) % 3 != 0) {
    reason = "their output is not three parts of one size";
    return std::optional<Cut>();
  }
  if (cut)
    cut->parts = 3;
  return cut;
}

FailureOr<std::optional<TensorParallel::Cut>> TensorParallel::findCut(graph::ParamOp param) {
  if (!roleOf(param.getName()))
    return std::optional<Cut>();
  StringRef reason;
  FailureOr<std::optional<Cut>> cut = findCut(param, reason);
  if (succeeded(cut) && !*cut)
    keepWhole(param, reason);
  return cut;
}
