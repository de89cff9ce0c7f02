//===- Parameters.cpp - The parameters of a model and their names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Parameters.h"

#include "frontends/hf/Family.h"

using namespace bowline;
using namespace bowline::hf;

std::vector<Parameter> hf::parameters(const ModelConfig &config) {
  ParameterList list;
  config.architecture->declareParameters(config, list);
  return list.take();
}

std::map<std::string, std::string> hf::ignoredTensors(const ModelConfig &config) {
  std::map<std::string, std::string> tensors;
  for (const std::string &name : config.architecture->ignoredTensors(config))
    tensors[name];
  if (config.tiedEmbeddings)
    for (const Parameter &parameter : parameters(config))
      if (parameter.symbol == "embed")
        tensors["lm_head.weight"] = parameter.key;
  return tensors;
}
