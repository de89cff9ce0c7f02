//===- PlanTypes.h - Types and locations of the plan file and of MLIR
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_PLANTYPES_H
#define BOWLINE_COMPILER_EMIT_PLANTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "runtime/plan/plan_generated.h"

#include <optional>
#include <string>

namespace bowline {

/// Returns the plan's element type; nothing if plans have no such type.
std::optional<fbs::DType> toDType(mlir::Type elementType);
/// Returns the MLIR type for a type in a plan that passed VerifyPlan.
mlir::Type fromDType(mlir::MLIRContext *context, fbs::DType dtype);

/// Formats a location for people: "gradient of model.layers.0.mlp.gate_proj", "model.mlir:3:7"; empty if unknown.
std::string describeLocation(mlir::Location location);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_PLANTYPES_H
