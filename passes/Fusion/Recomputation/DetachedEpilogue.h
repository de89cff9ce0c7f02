//===- DetachedEpilogue.h - Results of an epilogue without its matrix product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_RECOMPUTATION_DETACHEDEPILOGUE_H
#define BOWLINE_PASSES_FUSION_RECOMPUTATION_DETACHEDEPILOGUE_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace bowline {

/// A group, in no block, that recomputes one result of another group without that group's contraction: elementwise
/// work on the other group's stored results and operands. It does the same operations on the same values, so its
/// result is equal bit for bit.
struct DetachedEpilogue {
  unsigned result; ///< the recomputed result's number in the group with the contraction
  mlir::OwningOpRef<graph::FusionOp> group;
};

/// All results of `group` that can be recomputed so, in the order in which the group computes them; empty if it has no
/// contraction. An example is silu(gate) * up, where `up` is the product and is stored too.
std::vector<DetachedEpilogue> detachEpilogue(graph::FusionOp group);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_RECOMPUTATION_DETACHEDEPILOGUE_H
