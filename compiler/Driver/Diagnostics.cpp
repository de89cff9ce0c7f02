//===- Diagnostics.cpp - Diagnostics as a status
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Diagnostics.h"
#include "compiler/Emit/PlanTypes.h"
#include "compiler/Support/Fault.h"

using namespace mlir;
using namespace bowline;

static std::string formatted(Diagnostic &diagnostic) {
  std::string place = describeLocation(diagnostic.getLocation());
  return place.empty() ? diagnostic.str() : place + ": " + diagnostic.str();
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error) {
          bool warns = diagnostic.getSeverity() == DiagnosticSeverity::Warning;
          remarks.push_back((warns ? "warning: " : "") + formatted(diagnostic));
          return success();
        }
        hasFault |= isFault(diagnostic);
        if (!errors.empty())
          errors += "\n";
        errors += formatted(diagnostic);
        for (Diagnostic &note : diagnostic.getNotes())
          errors += "\n  note: " + formatted(note);
        return success();
      }) {
  // The place is in the message; whole operations behind it would bury it.
  context->printOpOnDiagnostic(false);
}

absl::Status DiagnosticCollector::status() const {
  if (errors.empty())
    return absl::InternalError("the compiler failed without saying why");
  return hasFault ? absl::UnavailableError(errors) : absl::InvalidArgumentError(errors);
}
