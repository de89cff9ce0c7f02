//===- RankGrid.h - The ranks of a mesh, and the part that each has of a tensor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_RANKGRID_H
#define BOWLINE_COMPILER_INTERP_RANKGRID_H

#include "dialects/Dist/Layout.h"
#include "dialects/Graph/Arithmetic.h"
#include "dialects/Graph/HostTensor.h"

#include <vector>

namespace bowline {

/// The ranks of a mesh, numbered from 0 in row-major order of their coordinates. With a fixed axis, only the ranks with
/// one coordinate along it, numbered as if that axis had size one.
class RankGrid {
public:
  using HostTensor = graph::HostTensor;
  using Axes = llvm::SmallVector<mlir::StringAttr>;

  explicit RankGrid(dist::MeshOp mesh, llvm::StringRef fixedAxis = {});

  int64_t count() const;
  /// Returns the number of ranks along `axes`, which must be axes of the mesh.
  int64_t sizeOf(llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// Returns the position of `rank` among the ranks that differ from it only along `axes`; the first axis is outermost.
  int64_t placeOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// Returns these ranks, in the order of their positions.
  llvm::SmallVector<int64_t> groupOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;

  /// Returns a rank's shard of a tensor whose dimension d is sharded over `axes[d]`; all of it if `axes` is empty.
  HostTensor pieceOf(const HostTensor &whole, llvm::ArrayRef<Axes> axes, int64_t rank) const;

  /// Divides `whole`, which has the layout's global shape, and returns the piece of each rank, by rank number.
  std::vector<HostTensor> divide(const HostTensor &whole, const dist::Layout &layout) const;

  /// Reverses `divide`: returns the tensor that a checkpoint would have. Adds partial sums of ranks. Where ranks should
  /// hold equal pieces but do not, or where padding is not zero, it fails and completes the diagnostic that `emitError`
  /// returned.
  llvm::FailureOr<HostTensor> join(const dist::Layout &layout,
                                   llvm::function_ref<const HostTensor &(int64_t rank)> heldBy, mlir::Type element,
                                   const graph::Arithmetic &arithmetic,
                                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;

private:
  llvm::SmallVector<int64_t> coordinatesOf(int64_t rank) const;
  size_t indexOf(mlir::StringAttr axis) const;

  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<int64_t> sizes; ///< 1 for the fixed axis
};

/// Returns whether both tensors have the same elements. NaN, an undefined number, equals NaN here.
bool sameValues(const graph::HostTensor &a, const graph::HostTensor &b);

/// Returns block number `part` of `whole`, divided into `parts` equal blocks along `dim`.
graph::HostTensor partOf(const graph::HostTensor &whole, int64_t dim, int64_t part, int64_t parts);

/// Writes `part` to `whole` as block number `place` along `dim`.
void putPart(graph::HostTensor &whole, const graph::HostTensor &part, int64_t dim, int64_t place);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_RANKGRID_H
