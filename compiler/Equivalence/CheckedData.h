//===- CheckedData.h - Bounds of row numbers and of offsets of groups of rows
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_CHECKEDDATA_H
#define BOWLINE_COMPILER_EQUIVALENCE_CHECKEDDATA_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace bowline {

/// Bounds that the direct readers of an integer tensor set. Such readers are kernels whose data may be invalid
/// (kernels/registry/data_check.h), and operations that these kernels compute. Operations that only compute new numbers
/// from the integers set no bounds.
struct CheckedData {
  std::optional<int64_t> limit; ///< for row numbers: they must be in [0, limit)
  std::optional<int64_t> rows;  ///< for offsets of groups of rows: they must ascend from 0 to this

  /// Keeps the stricter of both bounds, so that the data are valid for both readers.
  void restrict(const CheckedData &other);
};

/// Returns the bounds for a tensor of a graph function, also if it is moved, resharded or sent to other stages first.
CheckedData checkedDataOf(mlir::Value tensor);
/// Returns the bounds for a buffer that commands of `role` read.
CheckedData checkedDataOf(mlir::ModuleOp role, mlir::Value buffer);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_CHECKEDDATA_H
