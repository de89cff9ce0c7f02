//===- LayerPartition.h - Consecutive layers of equal cost
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_STAGES_LAYERPARTITION_H
#define BOWLINE_PASSES_TRAINING_STAGES_LAYERPARTITION_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace bowline {

/// First and last layer of a stage.
using LayerRange = std::pair<int64_t, int64_t>;

/// Divides layers into `stages` consecutive ranges of at least one layer each, such that the most expensive range is as
/// cheap as possible: the linear partition problem, solved exactly. Of equally good divisions the most even one, with
/// the least sum of squares; then the one in which earlier stages have fewer layers, for they keep the activations of
/// more microbatches.
///
/// Costs are not negative; 1 <= stages <= costs.size(). Takes stages * layers^2 steps.
std::vector<LayerRange> partitionLayers(llvm::ArrayRef<double> costs, int64_t stages);

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_STAGES_LAYERPARTITION_H
