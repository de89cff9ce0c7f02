//===- Streams.cpp - Which results are written past the caches
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Nests/Nest.h"

using namespace mlir;
using namespace bowline::codegen;

/// Whether rows of `store`, along `inner`, and blocks of rows begin with a cache line.
static bool beginsLines(const Nest &nest, const Nest::Store &store, unsigned inner, int64_t elementBytes) {
  llvm::SmallDenseMap<unsigned, AffineExpr> first;
  first[inner] = nest.blocks > 1 ? nest.space.scale(nest.space.dim(inner), nest.blockSize) : nest.space.constant(0);
  return IndexSpace::coefficient(store.index, inner) == 1 &&
         nest.space.replace(store.index, first).getLargestKnownDivisor() * elementBytes % kCacheLineBytes == 0;
}

void bowline::codegen::chooseStreams(ArrayRef<std::unique_ptr<Nest>> nests, func::FuncOp kernel,
                                     ArrayRef<std::pair<int, int>> inPlace, int64_t leastBytes) {
  llvm::SmallDenseSet<int> sharing;
  for (auto [output, input] : inPlace)
    sharing.insert(output);
  for (const std::unique_ptr<Nest> &nest : nests)
    for (Nest::Segment &segment : nest->segments)
      for (Nest::Store &store : segment.stores) {
        auto type = cast<RankedTensorType>(kernel.getResultTypes()[store.output]);
        int64_t elementBytes = std::max(type.getElementTypeBitWidth() / 8, 1U);
        store.isStreamed = type.getNumElements() * elementBytes >= leastBytes && !store.isPartialSum &&
                           !sharing.contains(static_cast<int>(store.output)) && segment.dim &&
                           beginsLines(*nest, store, *segment.dim, elementBytes);
      }
}
