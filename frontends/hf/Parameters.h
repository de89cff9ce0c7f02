//===- Parameters.h - The parameters of a model and their names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_PARAMETERS_H
#define BOWLINE_FRONTENDS_HF_PARAMETERS_H

#include "frontends/hf/ModelConfig.h"
#include "frontends/hf/ParameterList.h"

#include <map>
#include <string>
#include <vector>

namespace bowline::hf {

/// The parameters in the order in which the forward pass first uses them; symbols and keys are unique.
std::vector<Parameter> parameters(const ModelConfig &config);

/// Names of tensors that files of this model may hold besides its parameters, each with the key of the parameter of
/// which it must be a copy: "lm_head.weight" of a tied embedding. Empty for buffers that old versions saved.
std::map<std::string, std::string> ignoredTensors(const ModelConfig &config);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_PARAMETERS_H
