//===- Weights.h - Whether weights on disk fit a configuration
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_WEIGHTS_H
#define BOWLINE_FRONTENDS_HF_WEIGHTS_H

#include "frontends/hf/ModelConfig.h"

#include <string>
#include <vector>

namespace bowline::hf {

enum class WeightsOnDisk { None, Match };

/// Checks the safetensors files of `directory`, or the GGUF file of that name, against `config`; reads headers only.
///
/// None: the directory has neither model.safetensors nor an index of shards, which is fine for training from scratch.
/// Match: every parameter is there once, with its shape and as F32, F16 or BF16, and nothing else is there except
/// harmless buffers; \p remarks, if not null, get a sentence for each tensor of the index that no shard has and the
/// model does not need. The tensor of a GPT-2 parameter may be named without "transformer."
/// (runtime/base/weight_key.h).
///
/// Errors name the tensor, the file, the found and the expected property: kFailedPrecondition where weights and
/// configuration disagree, and the errors of SafetensorsDirectory::Open for files that are broken themselves.
absl::StatusOr<WeightsOnDisk> checkWeights(const ModelConfig &config, const std::string &directory,
                                           std::vector<std::string> *remarks = nullptr);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_WEIGHTS_H
