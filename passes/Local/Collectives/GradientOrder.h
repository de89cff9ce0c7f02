//===- GradientOrder.h - Gradients are exchanged in the order in which they become ready
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_GRADIENTORDER_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_GRADIENTORDER_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/StringMap.h"

namespace bowline {

/// Sorts the collectives of gradient accumulators in a function by when an earlier function of the same entry completes
/// these gradients. The backward pass begins with the last layer, but the program lists parameters from the first one.
/// After sorting, the members of a bucket become ready at about the same time.
class GradientOrder {
public:
  explicit GradientOrder(mlir::SymbolTable &symbols) : symbols(symbols) {}

  /// Orders the collectives in every function of the entry.
  void run(graph::EntryOp entry);

private:
  void learn(mlir::Block &block);
  void sort(mlir::Block &block);

  mlir::SymbolTable &symbols;
  /// For each accumulator, the position of the operation that computes the last value that is added to it.
  llvm::StringMap<int64_t> ready;
  int64_t next = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_GRADIENTORDER_H
