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

/// One result of a group with a contraction, as a group of its own that is in no block: elementwise work on other
/// results of the group and on its operands. It gives the same values, bit for bit: it does the same operations on
/// stored values.
struct DetachedEpilogue {
  unsigned result; ///< result number of the group with the contraction
  mlir::OwningOpRef<graph::FusionOp> group;
};

/// All results of `group` that can be had so, in the order in which the group computes them; none where it has no
/// contraction. silu(gate) * up, for one, where up is the product and stored too.
std::vector<DetachedEpilogue> detachEpilogue(graph::FusionOp group);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_RECOMPUTATION_DETACHEDEPILOGUE_H
