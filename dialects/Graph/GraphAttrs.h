//===- GraphAttrs.h - Attributes of the graph dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

namespace bowline::graph {

/// `custom<Real>`: an f64 without its type, in the fewest digits that read back as the same number.
mlir::ParseResult parseReal(mlir::AsmParser &parser, mlir::FloatAttr &value);
void printReal(mlir::AsmPrinter &printer, mlir::FloatAttr value);
inline void printReal(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::FloatAttr value) {
  printReal(printer, value);
}

} // namespace bowline::graph

#include "dialects/Graph/GraphEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.h.inc"

namespace bowline::graph {

/// `custom<Role>`: the words between the brackets of `#graph.role`.
mlir::ParseResult parseRole(mlir::AsmParser &parser, RoleAttr &role);
void printRole(mlir::AsmPrinter &printer, RoleAttr role);
inline void printRole(mlir::OpAsmPrinter &printer, mlir::Operation *, RoleAttr role) { printRole(printer, role); }

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H
