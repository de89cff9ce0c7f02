//===- EpilogueRule.h - What can follow a contraction on its tiles
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_EPILOGUERULE_H
#define BOWLINE_DIALECTS_GRAPH_EPILOGUERULE_H

#include "mlir/IR/Operation.h"

namespace bowline::graph {

/// Whether `op` can be part of a contraction's epilogue, which is computed on one tile of the result at a time: each
/// element of its result comes from the same element of its operands (elementwise), from the same row or column, or
/// from one value (a broadcast, a constant with one value for all elements). The one rule for those who form epilogues
/// and those who generate their code; what shapes and element types fit is a question of each.
bool canBeInEpilogue(mlir::Operation *op);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_EPILOGUERULE_H
