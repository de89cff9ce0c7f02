//===- TensorParallel.cpp - Where tensor parallelism cuts a layer's parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/TensorParallel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline;

namespace {
enum class Role { Fused, IntoLayer, IntoLayerBias, OutOfLayer };
} // namespace

static std::optional<Role> roleOf(StringRef name) {
  struct Named {
    StringRef suffix;
    Role role;
  };
  static constexpr Named kRoles[] = {
      {".attn.wqkv", Role::Fused},       {".attn.bqkv", Role::Fused},        {".attn.wq", Role::IntoLayer},
      {".attn.wk", Role::IntoLayer},     {".attn.wv", Role::IntoLayer},      {".mlp.w_gate", Role::IntoLayer},
      {".mlp.w_up", Role::IntoLayer},    {".attn.bq", Role::IntoLayerBias},  {".attn.bk", Role::IntoLayerBias},
      {".attn.bv", Role::IntoLayerBias}, {".mlp.b_up", Role::IntoLayerBias}, {".attn.wo", Role::OutOfLayer},
      {".mlp.w_down", Role::OutOfLayer}};
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

/// Into how many heads the last dimension of \p projection, with its bias perhaps, is split; 0 if it is not.
static int64_t findHeads(Value projection) {
  int64_t rank = cast<RankedTensorType>(projection.getType()).getRank();
  for (Operation *user : projection.getUsers()) {
    if (isa<arith::AddFOp, arith::TruncFOp, arith::ExtFOp>(user)) {
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

TensorParallel::TensorParallel(ModuleOp module, int64_t ranks) : module(module), ranks(ranks) {
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
}

std::optional<int64_t> TensorParallel::findWeightCut(graph::ParamOp weight, bool alongOutput, StringRef &reason) const {
  auto use = uses.find(weight.getName());
  if (use == uses.end()) {
    reason = "no contraction with one input and one output dimension reads them";
    return std::nullopt;
  }
  int64_t dim = alongOutput ? use->second.output : use->second.input;
  if ((alongOutput ? use->second.outputHeads : use->second.inputHeads) % ranks != 0) {
    reason = "their number of heads does not divide";
    return std::nullopt;
  }
  if (weight.getTensorType().getDimSize(dim) % ranks != 0) {
    reason = "the dimension to cut does not divide";
    return std::nullopt;
  }
  return dim;
}

std::optional<int64_t> TensorParallel::findCut(graph::ParamOp param) {
  std::optional<Role> role = roleOf(param.getName());
  if (!role)
    return std::nullopt;
  StringRef reason;
  std::optional<int64_t> cut;
  if (*role == Role::Fused) {
    reason = "queries, keys and values are one projection, whose columns are not in the order of the ranks";
  } else if (*role == Role::IntoLayerBias) {
    // As its weight: "attn.bq" goes with "attn.wq".
    auto [prefix, last] = param.getName().rsplit('.');
    std::string sibling = (prefix + ".w" + last.drop_front()).str();
    auto weight = module.lookupSymbol<graph::ParamOp>(sibling);
    if (weight && findWeightCut(weight, /*alongOutput=*/true, reason) && param.getTensorType().getRank() == 1)
      cut = 0;
    else if (!weight)
      reason = "the weight that they belong to is missing";
  } else {
    cut = findWeightCut(param, /*alongOutput=*/*role == Role::IntoLayer, reason);
  }
  if (!cut)
    whole[reason].push_back(param);
  return cut;
}
