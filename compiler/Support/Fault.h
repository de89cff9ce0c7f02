//===- Fault.h - Errors that are not the input's
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_SUPPORT_FAULT_H
#define BOWLINE_COMPILER_SUPPORT_FAULT_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

namespace bowline {

inline constexpr llvm::StringLiteral kFault = "bowline.fault";

/// Emits an error of the machine that the input did not cause: no space, no memory, no linker. Tools exit with code 3.
inline mlir::InFlightDiagnostic emitFault(mlir::Location location, const llvm::Twine &message) {
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(location, message);
  diagnostic.getUnderlyingDiagnostic()->getMetadata().push_back(mlir::DiagnosticArgument(kFault));
  return diagnostic;
}

inline bool isFault(mlir::Diagnostic &diagnostic) {
  return llvm::any_of(diagnostic.getMetadata(), [](mlir::DiagnosticArgument &argument) {
    return argument.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == kFault;
  });
}

} // namespace bowline

#endif // BOWLINE_COMPILER_SUPPORT_FAULT_H
