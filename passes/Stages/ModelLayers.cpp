//===- ModelLayers.cpp - The layers of a model, from its parameters' names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/ModelLayers.h"
#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace bowline;

/// The number that `name` has behind `prefix` and a point.
static std::optional<int64_t> numberBehind(StringRef name, StringRef prefix) {
  int64_t number = 0;
  if (!name.consume_front(prefix) || !name.consume_front(".") || name.split('.').first.getAsInteger(10, number) ||
      number < 0)
    return std::nullopt;
  return number;
}

FailureOr<ModelLayers> ModelLayers::find(ModuleOp module) {
  llvm::MapVector<StringRef, std::pair<int64_t, std::set<int64_t>>> numbered; // parameters and numbers, by prefix
  for (auto param : module.getOps<graph::ParamOp>()) {
    StringRef name = param.getName();
    for (size_t point = name.find('.'); point != StringRef::npos; point = name.find('.', point + 1))
      if (std::optional<int64_t> number = numberBehind(name, name.take_front(point))) {
        auto &[parameters, numbers] = numbered[name.take_front(point)];
        ++parameters;
        numbers.insert(*number);
      }
  }
  if (numbered.empty())
    return module.emitError(
        "no parameter has a layer's number in its name, as 'layers.0.attn.wq' has; name them so, or "
        "give the mesh no axis for stages");
  auto most = [](const auto &a, const auto &b) { return a.second.first < b.second.first; };
  const auto &[prefix, entry] = *std::max_element(numbered.begin(), numbered.end(), most);
  ModelLayers layers;
  layers.prefix = prefix.str();
  for (int64_t number : entry.second) {
    if (number != layers.numLayers)
      return module.emitError("layers are counted from 0, but there is a parameter of '")
             << prefix << "." << number << "' and none of '" << prefix << "." << layers.numLayers << "'";
    ++layers.numLayers;
  }
  return layers;
}

std::optional<int64_t> ModelLayers::layerOf(StringRef parameter) const { return numberBehind(parameter, prefix); }

std::string ModelLayers::describe() const {
  return "'" + prefix + ".0' to '" + prefix + "." + std::to_string(numLayers - 1) + "'";
}
