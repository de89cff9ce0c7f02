//===- RoundedCopies.h - Rounded copies of parameters, for readers that round them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_ROUNDEDCOPIES_H
#define BOWLINE_PASSES_LOCAL_ZERO_ROUNDEDCOPIES_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace bowline {

/// Creates a whole copy in a narrower type of each parameter that every operation but its own update rounds to that
/// type first. The copy is a mirror (`mirror_of`): each update writes it together with the parameter, and all other
/// operations read it instead. Ranks can then shard the wide parameter and never gather it.
///
/// A mirror in another stage whose readers all round it gets the narrower type too, and so does the value sent to it.
class RoundedCopies {
public:
  RoundedCopies(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Creates the copies and returns the parameters that now have one. Skips parameters for which `keep` is true.
  llvm::StringSet<> run(llvm::function_ref<bool(graph::ParamOp)> keep);

private:
  struct Uses {
    llvm::SmallVector<graph::ReadOp> reads;
    llvm::SmallVector<graph::WriteOp> writes;
  };

  mlir::Type roundedTypeOf(graph::ParamOp param);
  bool isTrained(graph::ParamOp param);
  void addCopy(graph::ParamOp param, mlir::Type element);
  void narrow(graph::ParamOp mirror, mlir::Type element);
  void readInstead(graph::ParamOp param, graph::ParamOp copy);
  mlir::Value rounded(mlir::Value value, mlir::Type element);

  mlir::SymbolTable &symbols;
  llvm::SmallVector<graph::ParamOp> params;
  llvm::DenseMap<mlir::StringAttr, Uses> uses;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_ROUNDEDCOPIES_H
