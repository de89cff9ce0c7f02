//===- PassRemarks.h - Remarks of passes on their decisions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_PASSREMARKS_H
#define BOWLINE_COMPILER_DRIVER_PASSREMARKS_H

#include "runtime/base/status.h"

#include <memory>
#include <string>
#include <vector>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace bowline {

/// Collects the optimisation remarks of passes (mlir/IR/Remarks.h) from a context during its own lifetime.
class PassRemarks {
public:
  /// Collects the remarks whose "KIND CATEGORY/NAME", such as "passed fusion/GroupFusions", contains a match of the
  /// regular expression \p pattern; an empty one matches all. Returns kInvalidArgument for an invalid expression.
  static absl::StatusOr<std::unique_ptr<PassRemarks>> collect(mlir::MLIRContext &context, const std::string &pattern);

  ~PassRemarks();

  /// Returns each different remark so far once, in order: "PLACE: TEXT [KIND CATEGORY/NAME]". Searches repeat remarks.
  std::vector<std::string> take() { return std::move(*lines); }

private:
  explicit PassRemarks(mlir::MLIRContext &context)
      : context(context), lines(std::make_shared<std::vector<std::string>>()) {}

  mlir::MLIRContext &context;
  std::shared_ptr<std::vector<std::string>> lines;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_PASSREMARKS_H
