//===- RotaryPositions.h - Rotary positions in config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_ROTARYPOSITIONS_H
#define BOWLINE_FRONTENDS_HF_ROTARYPOSITIONS_H

#include "frontends/hf/ConfigReader.h"
#include "frontends/hf/ModelConfig.h"

namespace bowline::hf {

/// Sets theta and the scaling of \p config. Newer files keep both in `rope_parameters`, older ones have `rope_theta`
/// and `rope_scaling` beside the sizes; where a file says something twice, both must agree.
void readRotaryPositions(ConfigReader &reader, ModelConfig &config);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_ROTARYPOSITIONS_H
