//===- AssemblyDirectives.h - Custom directives of assembly formats
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_ASSEMBLYDIRECTIVES_H
#define BOWLINE_DIALECTS_GRAPH_ASSEMBLYDIRECTIVES_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/OpImplementation.h"

namespace bowline::graph {

/// Parses and prints the purpose of a state: "accumulator", "stash", or the flags of a persistent one, "saved|step".
mlir::ParseResult parsePurpose(mlir::OpAsmParser &parser, LifetimeAttr &lifetime, StateFlagsAttr &flags);
void printPurpose(mlir::OpAsmPrinter &printer, StateOp state, LifetimeAttr lifetime, StateFlagsAttr flags);

/// `custom<PairedDimensions>`: `batch [0] x [0] contract [2] x [1]`; a part whose lists are empty may be left out.
mlir::ParseResult parsePairedDimensions(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &lhsBatch,
                                        mlir::DenseI64ArrayAttr &rhsBatch, mlir::DenseI64ArrayAttr &lhsContract,
                                        mlir::DenseI64ArrayAttr &rhsContract);
void printPairedDimensions(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DenseI64ArrayAttr lhsBatch,
                           mlir::DenseI64ArrayAttr rhsBatch, mlir::DenseI64ArrayAttr lhsContract,
                           mlir::DenseI64ArrayAttr rhsContract);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_ASSEMBLYDIRECTIVES_H
