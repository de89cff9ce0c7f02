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

/// The plan file's element type; none where it has no such type.
std::optional<fbs::DType> toDType(mlir::Type elementType);
/// The MLIR type of a type in a plan that the semantic verifier accepted.
mlir::Type fromDType(mlir::MLIRContext *context, fbs::DType dtype);

/// A location as a person reads it: "gradient of model.layers.0.mlp.gate_proj", "model.mlir:3:7"; empty if unknown.
std::string describeLocation(mlir::Location location);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_PLANTYPES_H
