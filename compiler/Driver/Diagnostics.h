//===- Diagnostics.h - Diagnostics as a status
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_DIAGNOSTICS_H
#define BOWLINE_COMPILER_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace bowline {

/// Collects the diagnostics of a context during its own lifetime.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// Returns all errors with their notes, each on a line "place: message". The code is kUnavailable if one of them is a
  /// fault of the machine (Fault.h), else kInvalidArgument.
  absl::Status status() const;

  /// Returns the remarks so far, and the warnings with "warning: " in front, and forgets them.
  std::vector<std::string> takeRemarks() { return std::move(remarks); }

private:
  std::string errors;
  bool hasFault = false;
  std::vector<std::string> remarks;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_DIAGNOSTICS_H
