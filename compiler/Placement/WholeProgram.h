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

/// A program on whole tensors, with the values that its functions read, compute and write. Operations that are the
/// identity are taken out of it.
class WholeProgram {
public:
  explicit WholeProgram(mlir::OwningOpRef<mlir::ModuleOp> module);

  mlir::ModuleOp operator*() const { return *module; }

  /// The value that a variable has when the function begins; null where the function does not read it.
  mlir::Value readIn(graph::FuncOp function, llvm::StringRef variable) { return reads[function].lookup(variable); }
  /// The value that it has when the function ends; null where the function does not write it.
  mlir::Value writtenIn(graph::FuncOp function, llvm::StringRef variable) { return writes[function].lookup(variable); }
  const llvm::StringMap<mlir::Value> &writesOf(graph::FuncOp function) { return writes[function]; }
  /// The operations of a function that have a name.
  llvm::ArrayRef<mlir::Operation *> named(graph::FuncOp function, llvm::StringRef name) {
    return byName[function][name];
  }

  /// Gives the program a parameter that ranks keep beside its owner, rounded to another type: by definition it is the
  /// owner, rounded. Does nothing for other variables.
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
