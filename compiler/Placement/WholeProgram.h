//===- WholeProgram.h - The program before it was divided
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_WHOLEPROGRAM_H
#define BOWLINE_COMPILER_PLACEMENT_WHOLEPROGRAM_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace bowline {

/// A program on whole tensors, with the values that its functions read and write. The
/// constructor removes identity operations.
class WholeProgram {
public:
  explicit WholeProgram(mlir::OwningOpRef<mlir::ModuleOp> module);

  mlir::ModuleOp operator*() const { return *module; }

  /// Returns the value of a variable when the function begins; null if the function does not read it.
  mlir::Value readIn(graph::FuncOp function, llvm::StringRef variable) { return reads[function].lookup(variable); }
  /// Returns the value of a variable when the function ends; null if the function does not write it.
  mlir::Value writtenIn(graph::FuncOp function, llvm::StringRef variable) { return writes[function].lookup(variable); }
  const llvm::StringMap<mlir::Value> &writesOf(graph::FuncOp function) { return writes[function]; }
  /// Returns the operations of a function that have this operation name.
  llvm::ArrayRef<mlir::Operation *> named(graph::FuncOp function, llvm::StringRef name) {
    return byName[function][name];
  }

  /// Adds a parameter that ranks keep as a rounded copy of another one (its owner) and defines it as the owner's value,
  /// rounded. Does nothing for other variables.
  void defineRounded(graph::Variable mirror);
  bool isDefinedHere(llvm::StringRef variable) const { return isDefined.contains(variable); }

private:
  void forward(graph::FuncOp function);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::DenseMap<mlir::Operation *, llvm::StringMap<llvm::SmallVector<mlir::Operation *>>> byName;
  llvm::DenseMap<mlir::Operation *, llvm::StringMap<mlir::Value>> reads, writes;
  llvm::StringSet<> isDefined;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_WHOLEPROGRAM_H
