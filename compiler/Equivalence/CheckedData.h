//===- CheckedData.h - What numbers of rows and offsets may be
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

/// What integers have to be, as far as those who read them as they are say so: kernels with data that can be wrong
/// (kernels/registry/data_check.h), and operations that such kernels compute. What a program computes from them is not
/// looked at.
struct CheckedData {
  std::optional<int64_t> limit; ///< numbers of rows: from 0 to below this
  std::optional<int64_t> rows;  ///< offsets of groups of rows: they ascend from 0 to this

  /// What is right for both.
  void restrict(const CheckedData &other);
};

/// Of a tensor of a graph function, which may be moved, resharded and sent to other stages before it is read.
CheckedData checkedDataOf(mlir::Value tensor);
/// Of a buffer that commands of `role` read.
CheckedData checkedDataOf(mlir::ModuleOp role, mlir::Value buffer);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_CHECKEDDATA_H
