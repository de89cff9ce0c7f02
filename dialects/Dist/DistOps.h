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

/// A collective on local tensors in the terms of a communicator. A kind that scatters splits each source along
/// `splitDim`; a kind that gathers concatenates the received blocks along `joinDim`.
struct CollectiveForm {
  collectives::Kind kind;
  uint32_t parameter = 0;
  int64_t splitDim = 0, joinDim = 0;

  const collectives::Definition &definition() const { return collectives::Of(kind); }
  /// Returns whether all blocks are contiguous in memory, which communicators require: both dimensions in use are 0.
  bool isContiguous() const {
    return (splitDim == 0 || !definition().scatters) && (joinDim == 0 || !definition().gathers);
  }
};

/// Fails with a diagnostic if \p op has a discardable attribute; lists the attributes that the operation defines.
llvm::LogicalResult verifyNoFurtherAttributes(mlir::Operation *op);

/// A trait of operations that people write by hand: the verifier rejects attributes that the operation does not define.
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

/// Returns the user's axis that \p axis is or is a part of. A pass may divide an axis "tp" into "tp/0" and "tp/1", the
/// first one outermost, so that a tensor can be sharded over one part only. For both parts the result is "tp".
inline llvm::StringRef wholeAxis(llvm::StringRef axis) { return axis.split('/').first; }

/// The maximal number of words to which the braces in the pattern of a `dist.shard` may expand.
inline constexpr size_t kMaxPatternWords = 1024;

/// The definition of the collective `op`.
const collectives::Definition &definitionOf(mlir::Operation *op);

/// These functions read a line of the strategy that StrategyOp::of(op) finds. They return the line's default if there
/// is no strategy or the strategy lacks the line.
int64_t microbatchesOf(mlir::Operation *op);
/// One of "none", "selective", "full" and "auto".
llvm::StringRef recomputeOf(mlir::Operation *op);
int64_t bucketBytesOf(mlir::Operation *op);
/// The number of chunks; none for `auto`, where the cost model chooses.
std::optional<int64_t> overlapChunksOf(mlir::Operation *op);

} // namespace bowline::dist

#endif // BOWLINE_DIALECTS_DIST_DISTOPS_H
