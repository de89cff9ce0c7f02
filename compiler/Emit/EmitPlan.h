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
