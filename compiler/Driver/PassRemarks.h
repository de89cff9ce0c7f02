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

/// Collects the optimisation remarks of the passes of a context (mlir/IR/Remarks.h) while it lives.
class PassRemarks {
public:
  /// \p pattern is a regular expression that "KIND CATEGORY/NAME", such as "passed fusion/GroupFusions", has to contain
  /// a match of; the empty one takes all. kInvalidArgument where it is none.
  static absl::StatusOr<std::unique_ptr<PassRemarks>> collect(mlir::MLIRContext &context, const std::string &pattern);

  ~PassRemarks();

  /// "PLACE: TEXT [KIND CATEGORY/NAME]" of each remark so far, in order and each once: a search compiles again.
  std::vector<std::string> take() { return std::move(*lines); }

private:
  explicit PassRemarks(mlir::MLIRContext &context)
      : context(context), lines(std::make_shared<std::vector<std::string>>()) {}

  mlir::MLIRContext &context;
  std::shared_ptr<std::vector<std::string>> lines;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_PASSREMARKS_H
