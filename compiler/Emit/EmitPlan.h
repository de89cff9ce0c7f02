//===- EmitPlan.h - From the plan dialect to the plan file and back
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_EMITPLAN_H
#define BOWLINE_COMPILER_EMIT_EMITPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace bowline {

/// Attribute of plan.entry: how many runs a session may start before it waits for the first, 1 (the default) or 2. For
/// 2 the plan has a second buffer for each port, behind the packed arena. The module does not show these.
inline constexpr llvm::StringLiteral kInFlightAttr = "plan.in_flight";
/// Attribute of plan.entry: pairs (output, input) of ports. The output is the next input unless the caller writes that.
inline constexpr llvm::StringLiteral kFeedsAttr = "plan.feeds";
/// Attribute of plan.image: the least processor that runs the code, in the form of the target's `cpu`. A module may
/// have several images; loaders prefer the first that runs.
inline constexpr llvm::StringLiteral kCodeTargetAttr = "plan.code_target";

/// Returns the plan of a module in the plan dialect whose buffers have offsets. WritePlan adds hashes and versions, and
/// the loader checks the certificates. Nested modules are roles (passes/Analysis/Roles.h). Equal kernels and images of
/// several roles are stored once. A role without a name gets no row in the plan's table. Fails with a diagnostic where
/// a role, a target, an offset or generated code is missing.
llvm::FailureOr<std::unique_ptr<fbs::PlanT>> emitPlan(mlir::ModuleOp module);

/// Returns the module of a verified plan. emitPlan of it gives an equal plan, without images that have no kernels and
/// in the order of roles. Fails with a diagnostic if the dialect cannot express the plan.
mlir::OwningOpRef<mlir::ModuleOp> importPlan(mlir::MLIRContext *context, const fbs::PlanT &plan);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITPLAN_H
