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

/// The ranks of a mesh in row-major order of their coordinates, from 0. With a fixed axis they are those of one
/// coordinate along it, numbered as if it had one rank.
class RankGrid {
public:
  using HostTensor = graph::HostTensor;
  using Axes = llvm::SmallVector<mlir::StringAttr>;

  explicit RankGrid(dist::MeshOp mesh, llvm::StringRef fixedAxis = {});

  int64_t count() const;
  /// The number of ranks along `axes`, which the mesh has.
  int64_t sizeOf(llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// Position of `rank` among the ranks that differ from it only along `axes`, the first axis outermost.
  int64_t placeOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// The ranks of that group, by place.
  llvm::SmallVector<int64_t> groupOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;

  /// The shard that a rank has of a tensor whose dimension d is sharded over `axes[d]`; the whole without any axes.
  HostTensor pieceOf(const HostTensor &whole, llvm::ArrayRef<Axes> axes, int64_t rank) const;

  /// The piece of `whole`, a tensor of the layout's global shape, that each rank holds, by the rank's number.
  std::vector<HostTensor> divide(const HostTensor &whole, const dist::Layout &layout) const;

  /// The reverse of `divide`: the tensor that a checkpoint would have. Summands of ranks are added. Fails with a
  /// diagnostic of `emitError`, completed, where ranks that should hold equal pieces do not, or where padding is not
  /// zero.
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

/// Whether both have the same elements. A NaN, which stands for an undefined number, is the same as another.
bool sameValues(const graph::HostTensor &a, const graph::HostTensor &b);

/// Block number `part` of `parts` equal blocks of `whole` along `dim`.
graph::HostTensor partOf(const graph::HostTensor &whole, int64_t dim, int64_t part, int64_t parts);

/// Writes `part` to `whole` as block number `place` along `dim`.
void putPart(graph::HostTensor &whole, const graph::HostTensor &part, int64_t dim, int64_t place);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_RANKGRID_H
