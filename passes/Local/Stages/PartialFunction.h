//===- PartialFunction.h - A part of a function as a function of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_PARTIALFUNCTION_H
#define BOWLINE_PASSES_LOCAL_STAGES_PARTIALFUNCTION_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace bowline {

/// Builds a `graph.func` of clones of operations of another one. It has those arguments that the clones use, in their
/// order and with their attributes. Labels of stages are left out.
class PartialFunction {
public:
  /// Inserts the function, which is \p part of a training step, at the end of the module of \p symbols.
  PartialFunction(graph::FuncOp original, llvm::StringRef name, std::optional<graph::FunctionPart> part,
                  mlir::SymbolTable &symbols);

  graph::FuncOp get() const { return function; }
  /// A builder that inserts at the end of the function.
  mlir::OpBuilder &builder() { return body; }
  bool isEmpty() { return function.getBody().front().empty(); }

  /// The clone of an original value; null if there is none. Arguments always have one.
  mlir::Value lookup(mlir::Value original);
  void map(mlir::Value original, mlir::Value value) { values.map(original, value); }
  /// Appends a clone of an operation whose operands all have clones.
  mlir::Operation *clone(mlir::Operation *op);

  /// Ends the function with the values of the original results, or without any.
  void finish(mlir::ValueRange originalResults = {});

private:
  graph::FuncOp original, function;
  mlir::OpBuilder body;
  mlir::IRMapping values;
};

/// Removes the attributes that the labelling put on an operation.
void removeStageLabels(mlir::Operation *op);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_PARTIALFUNCTION_H
