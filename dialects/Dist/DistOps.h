//===- DistOps.h - The dist dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_DIST_DISTOPS_H
#define BOWLINE_DIALECTS_DIST_DISTOPS_H

#include "dialects/Dist/DistAttrs.h"
#include "kernels/registry/collectives.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace bowline::dist {

/// The form of a collective on local tensors, as communicators execute it: sources are split along `splitDim`,
/// destinations joined along `joinDim`, where its kind scatters or gathers.
struct CollectiveForm {
  collectives::Kind kind;
  uint32_t parameter = 0;
  int64_t splitDim = 0, joinDim = 0;

  const collectives::Definition &definition() const { return collectives::Of(kind); }
  /// Returns whether the blocks along these dimensions lie one behind the other in memory, as communicators move them.
  bool isContiguous() const {
    return (splitDim == 0 || !definition().scatters) && (joinDim == 0 || !definition().gathers);
  }
};

/// Refuses an attribute that the operation does not define, with the names of those that it does.
llvm::LogicalResult verifyNoFurtherAttributes(mlir::Operation *op);

/// A trait of operations that people write: it refuses attributes that nothing reads.
template <typename OpTy> class NoFurtherAttributes : public mlir::OpTrait::TraitBase<OpTy, NoFurtherAttributes> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyNoFurtherAttributes(op); }
};

} // namespace bowline::dist

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistOpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace bowline::dist {

/// The axis of the mesh as the user wrote it. A pass may divide an axis "tp" into "tp/0" and "tp/1", the first one
/// outermost, so that a tensor can be sharded over some of its ranks: both are of the whole axis "tp".
inline llvm::StringRef wholeAxis(llvm::StringRef axis) { return axis.split('/').first; }

/// The most words that braces make of the pattern of a `dist.shard`: the bound keeps a pattern from becoming a program.
inline constexpr size_t kMaxPatternWords = 1024;

/// The definition of the collective `op`.
const collectives::Definition &definitionOf(mlir::Operation *op);

/// These return the value in the strategy of the module that `op` is or is in, or the default where there is no
/// strategy or no such line.
int64_t microbatchesOf(mlir::Operation *op);
/// One of "none", "selective", "full" and "auto".
llvm::StringRef recomputeOf(mlir::Operation *op);
int64_t bucketBytesOf(mlir::Operation *op);
/// The number of chunks; nothing where the cost model chooses.
std::optional<int64_t> overlapChunksOf(mlir::Operation *op);

} // namespace bowline::dist

#endif // BOWLINE_DIALECTS_DIST_DISTOPS_H
