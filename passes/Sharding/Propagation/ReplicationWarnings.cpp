//===- ReplicationWarnings.cpp - Large tensors that every rank gets whole
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Propagation/ReplicationWarnings.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace bowline;

static int64_t bytesOf(RankedTensorType type, const TensorSharding &sharding, dist::MeshOp mesh) {
  int64_t ranks = 1;
  for (const TensorSharding::Dim &dim : sharding.dims)
    ranks *= mesh.getSize(dim.axes);
  return type.getNumElements() * static_cast<int64_t>(llvm::divideCeil(type.getElementTypeBitWidth(), 8)) / ranks;
}

/// Layers are alike: "variable 'layers.3.mlp.up'" becomes "variable 'layers.*.mlp.up'".
static std::string withoutNumbers(StringRef text) {
  std::string result;
  SmallVector<StringRef> parts;
  text.split(parts, '.');
  for (auto [index, part] : llvm::enumerate(parts)) {
    bool isNumber = index > 0 && !part.empty() && part.find_first_not_of("0123456789") == StringRef::npos;
    result += (index > 0 ? "." : "") + (isNumber ? "*" : part.str());
  }
  return result;
}

/// The reason why `user` cannot take a value that is sharded along `axis`: the tensor that has the axis elsewhere in
/// it, if any.
std::string ReplicationWarnings::whoNeeds(Operation *user, StringAttr axis) {
  std::string name = user->getName().getStringRef().str();
  if (std::optional<graph::FactorRule> rule = factorRuleOf(user)) {
    FactorAxes axes(*rule, state.mesh, state.operandShardings(user), state.resultShardings(user));
    for (int64_t factor = 0, end = rule->factors.size(); factor < end; ++factor)
      if (llvm::is_contained(axes[factor], axis))
        return (axes.origin(factor).empty() ? std::string("another operand") : axes.origin(factor)) + " has \"" +
               axis.str() + "\" in another dimension of " + name +
               ": shard one of them along another axis, or not at all";
  }
  return name + " needs that dimension whole: shard another one, or none";
}

void ReplicationWarnings::note(Value value, const TensorSharding &from, const TensorSharding &to, Operation *user) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bytes = bytesOf(type, to, state.mesh);
  if (bytes < largeBytes)
    return;
  for (const TensorSharding::Dim &dim : from.dims)
    for (StringAttr axis : dim.axes) {
      if (to.uses(axis) || dim.origin == kSequenceParallelism)
        continue;
      std::string needed = whoNeeds(user, axis);
      StringAttr key =
          StringAttr::get(value.getContext(), withoutNumbers(dim.origin) + axis.str() + withoutNumbers(needed));
      Conflict conflict{value.getLoc(), type, bytes, dim.origin, needed, axis};
      Conflict &known = conflicts.insert({key, conflict}).first->second;
      ++known.count;
      if (bytes > known.bytes) {
        conflict.count = known.count;
        known = conflict;
      }
    }
}

void ReplicationWarnings::emit() {
  for (auto &[key, conflict] : conflicts) {
    InFlightDiagnostic warning = mlir::emitWarning(conflict.location);
    warning << "each of the " << state.mesh.getSize({conflict.axis}) << " ranks along " << conflict.axis
            << " gathers all shards of a " << conflict.type << ", " << conflict.bytes
            << " bytes: " << conflict.shardedBy << " shards it along " << conflict.axis << ", but "
            << conflict.neededBy;
    if (conflict.count > 1)
      warning << "; so it is " << conflict.count << " times";
  }
}
