//===- GraphOps.h - Operations of the graph dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPS_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPS_H

#include "dialects/Graph/GraphAttrs.h"
#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace bowline::graph {

/// The side-effect resource that stands for all parameters and states; graph.read and graph.write touch it.
struct VariablesResource : mlir::SideEffects::Resource::Base<VariablesResource> {
  llvm::StringRef getName() final { return "graph variables"; }
};

/// The type of a ranked tensor value; all values of the dialect are ranked tensors.
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Returns whether the shape of the tensor `type` is static, because the compiler places all memory, and has no
/// dimension of size zero.
bool isStaticAndNotEmpty(mlir::Type type);

/// The declared type of the `graph.param` or `graph.state` named `symbol`; null if there is none.
mlir::RankedTensorType lookupVariableType(mlir::SymbolTableCollection &symbols, mlir::Operation *from,
                                          mlir::FlatSymbolRefAttr symbol);

} // namespace bowline::graph

#define GET_OP_CLASSES
#include "dialects/Graph/GraphOps.h.inc"

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPS_H
