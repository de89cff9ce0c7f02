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

/// Gives a whole copy of a narrower type to each parameter that only its own update needs in full precision, because
/// everything else rounds it to that type first. The copy is a mirror (`mirror_of`), which is written together with the
/// parameter and read in its place. The wide values may then be divided among ranks without ever being gathered.
///
/// A mirror in another stage that is only read rounded gets that type itself, and so does the value that is sent to it.
class RoundedCopies {
public:
  RoundedCopies(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Makes the copies and returns the parameters that have one now. Those for which `keep` is true stay as they are.
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
