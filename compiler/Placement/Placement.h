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

/// Names of mesh axes, outermost first.
using MeshAxes = llvm::SmallVector<mlir::StringAttr, 1>;

/// How a value of one rank's program relates to the value `whole` of the program on whole tensors:
///
///   1. Dimension d of `whole` is divided into equal blocks over `axes[d]`. The last blocks may hold elements behind
///      the end of the dimension; `padding[d]` is the number that all of these are, if there is one and it is known.
///   2. If `flat` is set, the elements of the block, in row-major order, are divided into equal blocks again, over
///      `*flat`. If `tail` is set, elements with that value (NaN: unknown) are first appended to the block.
///   3. The sum (or `combine`) of the values of the ranks along `partial` is that block.
///
/// Ranks along all other axes have equal values.
struct ValuePlacement {
  mlir::Value whole;
  llvm::SmallVector<MeshAxes> axes;
  MeshAxes partial;
  dist::ReduceKind combine = dist::ReduceKind::Sum;
  std::optional<MeshAxes> flat;
  llvm::SmallVector<std::optional<double>> padding; // by dimension; empty: none is known
  std::optional<double> tail;
  /// By dimension: whether all elements along it are equal, so that every division of it is correct.
  llvm::SmallVector<bool> repeated;
  /// All elements equal the scalar `whole`. This suits every division of a tensor that is a broadcast of that scalar.
  bool isUniform = false;

  /// Every rank has the whole value.
  static ValuePlacement replicated(mlir::Value whole);
  /// A tensor whose elements all equal the scalar.
  static ValuePlacement uniform(mlir::Value scalar);

  bool operator==(const ValuePlacement &other) const;

  /// Returns whether all ranks along the axis have equal values.
  bool isEqualAlong(mlir::StringAttr axis) const;
  bool isDivided() const;
  std::optional<double> paddingOf(size_t dim) const { return dim < padding.size() ? padding[dim] : std::nullopt; }
  void setPadding(size_t dim, std::optional<double> number);
  bool isRepeated(size_t dim) const { return dim < repeated.size() && repeated[dim]; }

  /// Returns a description for messages: "dp divides dimension 0, a summand over tp".
  std::string str() const;
};

/// Returns those of the named axes that have more than one rank.
MeshAxes meshAxes(llvm::ArrayRef<mlir::StringAttr> names, dist::MeshOp mesh);
MeshAxes meshAxes(mlir::ArrayAttr names, dist::MeshOp mesh);
/// Sorts axes whose order has no meaning, so that they can be compared.
void sortAxes(MeshAxes &axes);
MeshAxes sortedAxes(llvm::ArrayRef<mlir::StringAttr> axes);

/// Logits up to this value contribute nothing to a sum of exponentials.
inline constexpr double kAbsentLogit = -1e29;

/// Returns the number that all elements of a constant equal; nothing for other values.
std::optional<double> splatOf(mlir::Value value);

/// Returns the scalar that a value repeats: the operand of its broadcast, or a scalar itself. Null for other values.
mlir::Value scalarOf(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_PLACEMENT_H
