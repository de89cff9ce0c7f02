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

/// Bounds that direct readers of a tensor of integers set: kernels with data that can be wrong
/// (kernels/registry/data_check.h), and operations that such kernels compute. Operations that compute other numbers
/// from the integers set no bounds.
struct CheckedData {
  std::optional<int64_t> limit; ///< numbers of rows: from 0 to below this
  std::optional<int64_t> rows;  ///< offsets of groups of rows: they ascend from 0 to this

  /// Takes the stricter of both bounds, so that the data are right for both readers.
  void restrict(const CheckedData &other);
};

/// The bounds for a tensor of a graph function, which operations may move, reshard and send to other stages first.
CheckedData checkedDataOf(mlir::Value tensor);
/// The bounds for a buffer that commands of `role` read.
CheckedData checkedDataOf(mlir::ModuleOp role, mlir::Value buffer);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_CHECKEDDATA_H
