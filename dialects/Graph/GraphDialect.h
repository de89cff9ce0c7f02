//===- GraphDialect.h - The graph dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_H

#include "mlir/IR/Dialect.h"

#include "dialects/Graph/GraphDialect.h.inc"

namespace bowline::graph {

/// Attaches the interfaces of this dialect to `arith.constant` and the elementwise operations of `arith` and `math`.
void registerElementwiseModels(mlir::DialectRegistry &registry);
/// Attaches the interfaces of `arith.constant` only. `context` must have loaded `arith`.
void attachConstantModels(mlir::MLIRContext *context);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHDIALECT_H
