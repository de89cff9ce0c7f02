//===- ScalarSums.h - Sums of scalars over ranks, with one collective
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_SCALARSUMS_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_SCALARSUMS_H

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Block.h"

namespace bowline {

/// Replaces a sum of scalars that are all-reduced one by one by an all-reduce of their sum. There is one all-reduce per
/// set of axes; if one set contains another, the second all-reduce runs along the difference only. Sums over stages do
/// not change. The order of additions does.
///
/// ```mlir
/// %a = all_reduce sum %x over ["dp"], %b = all_reduce sum %y over ["dp", "tp"], %r = addf(addf(%a, %b), %c)
/// %r = addf(%c, all_reduce sum addf(%x, all_reduce sum %y over ["tp"]) over ["dp"])
/// ```
class ScalarSums {
public:
  explicit ScalarSums(dist::MeshOp mesh) : mesh(mesh) {}
  void run(mlir::Block &block);

private:
  using Axes = llvm::SmallVector<mlir::StringAttr>;
  /// A summand that is still to be summed over the ranks along `axes`, which have the order of the mesh.
  struct Part {
    Axes axes;
    mlir::Value value;
  };

  void rewrite(mlir::Operation *root);
  Part stripCollectives(mlir::Value leaf);

  dist::MeshOp mesh;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_SCALARSUMS_H
