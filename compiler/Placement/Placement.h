//===- Placement.h - How ranks hold a value of the whole program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_PLACEMENT_H
#define BOWLINE_COMPILER_PLACEMENT_PLACEMENT_H

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <optional>
#include <string>

namespace bowline {

/// Names of mesh axes, the outermost first.
using MeshAxes = llvm::SmallVector<mlir::StringAttr, 1>;

/// The relation of a value of one rank's program to a value of the program on whole tensors:
///
///   1. dimension d of `whole` is divided into equal blocks over `axes[d]`. The last ones may hold elements behind the
///      end; `padding[d]` is the number that these are, if it is known and one;
///   2. if `flat`, the block's elements in row-major order are divided into equal blocks once more, over `*flat`. If
///      `tail`, there are elements behind them first, which are that number, or NaN where it is not known;
///   3. the sum (or `combine`) over the ranks along `partial` is that block.
///
/// Ranks along all other axes have equal values.
struct ValuePlacement {
  mlir::Value whole;
  llvm::SmallVector<MeshAxes> axes;
  MeshAxes partial;
  dist::ReduceKind combine = dist::ReduceKind::Sum;
  std::optional<MeshAxes> flat;
  llvm::SmallVector<std::optional<double>> padding; // of each dimension, or empty: none is known
  std::optional<double> tail;
  /// Dimensions along which all elements are equal: any division of them is right.
  llvm::SmallVector<bool> repeated;
  /// All elements are the scalar `whole`: that is right for any division of a tensor that is this scalar broadcast.
  bool isUniform = false;

  /// Every rank has all of it.
  static ValuePlacement replicated(mlir::Value whole);
  /// A tensor of which all elements are the scalar.
  static ValuePlacement uniform(mlir::Value scalar);

  bool operator==(const ValuePlacement &other) const;

  /// Whether all ranks along an axis have the same.
  bool isEqualAlong(mlir::StringAttr axis) const;
  bool isDivided() const;
  std::optional<double> paddingOf(size_t dim) const { return dim < padding.size() ? padding[dim] : std::nullopt; }
  void setPadding(size_t dim, std::optional<double> number);
  bool isRepeated(size_t dim) const { return dim < repeated.size() && repeated[dim]; }

  /// "dp divides dimension 0, a summand over tp".
  std::string str() const;
};

/// The named axes that have several ranks.
MeshAxes meshAxes(llvm::ArrayRef<mlir::StringAttr> names, dist::MeshOp mesh);
MeshAxes meshAxes(mlir::ArrayAttr names, dist::MeshOp mesh);
/// Brings axes, of which the order means nothing, into one that can be compared.
void sortAxes(MeshAxes &axes);
MeshAxes sortedAxes(llvm::ArrayRef<mlir::StringAttr> axes);

/// Logits that are as low or lower have no weight in a sum of exponentials.
inline constexpr double kAbsentLogit = -1e29;

/// The one number that all elements of a constant are; none where it is no constant, or has several.
std::optional<double> splatOf(mlir::Value value);

/// The scalar that a value repeats: the operand of a broadcast of a scalar, or itself. Null for constants.
mlir::Value scalarOf(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_PLACEMENT_H
