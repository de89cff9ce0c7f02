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

/// Attributes of plan.entry. Runs of it that a session may have begun and not waited for: 2, else 1. Of each port there
/// is then a second buffer, which the module does not show: it lies behind the arena that was packed.
inline constexpr llvm::StringLiteral kInFlightAttr = "plan.in_flight";
/// Pairs (output, input) of ports: the next run has the output's value as its input unless the caller writes that.
inline constexpr llvm::StringLiteral kFeedsAttr = "plan.feeds";
/// Attribute of plan.image, of which a module may have several: the least processor that runs it, as `cpu` of the
/// target. Those to prefer come first.
inline constexpr llvm::StringLiteral kCodeTargetAttr = "plan.code_target";

/// The plan of a module in the plan dialect whose buffers have offsets. WritePlan adds hashes and versions, and the
/// loader decides whether certificates prove anything. Modules in the module are roles (passes/Analysis/Roles.h); equal
/// kernels and images of several roles are stored once, and a role without a name is not in the plan's table. Fails
/// with a diagnostic where a part is missing: a role, a target, an offset, generated code.
llvm::FailureOr<std::unique_ptr<fbs::PlanT>> emitPlan(mlir::ModuleOp module);

/// The module of a verified plan: emitPlan of the result gives an equal plan, less images without kernels and in the
/// order of roles. Fails with a diagnostic if the dialect cannot express the plan.
mlir::OwningOpRef<mlir::ModuleOp> importPlan(mlir::MLIRContext *context, const fbs::PlanT &plan);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITPLAN_H
