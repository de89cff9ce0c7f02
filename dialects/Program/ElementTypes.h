//===- ElementTypes.h - The table of element types, in MLIR's types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PROGRAM_ELEMENTTYPES_H
#define BOWLINE_DIALECTS_PROGRAM_ELEMENTTYPES_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Types.h"
#include "types/element_type.h"

#include <optional>
#include <string>

namespace bowline {

/// The plan's element type for an MLIR type (types/element_type.h); none if plans lack the type.
std::optional<ElementType> elementTypeOf(mlir::Type type);

/// The MLIR type of an element type; null where MLIR has none.
mlir::Type toMlirType(mlir::MLIRContext *context, ElementType type);

/// Returns whether kernels compute in the type, with sums in f32 (types/computed_types.h).
bool isComputedIn(mlir::Type type);

/// "f32, bf16, i1": the MLIR types of all element types for which `property` holds, for messages.
std::string mlirNamesOf(llvm::function_ref<bool(ElementType)> property);

/// Fails with a diagnostic that names \p type if plans have no such element type.
llvm::LogicalResult verifyPlanElements(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, mlir::Type type);

} // namespace bowline

#endif // BOWLINE_DIALECTS_PROGRAM_ELEMENTTYPES_H
