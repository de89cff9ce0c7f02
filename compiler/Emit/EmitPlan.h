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

/// The plan of a module in the plan dialect whose buffers have offsets. Hashes and versions are left to WritePlan, and
/// whether certificates prove anything to the loader. Modules in the module are roles; equal kernels and images of
/// several roles are stored once. Fails with a diagnostic where something is missing: a target, an offset, generated
/// code.
llvm::FailureOr<std::unique_ptr<fbs::PlanT>> emitPlan(mlir::ModuleOp module);

/// The module of a verified plan: emitPlan of the result gives an equal plan, less images without kernels and in the
/// order of roles. Fails with a diagnostic if the plan uses what the dialect cannot say.
mlir::OwningOpRef<mlir::ModuleOp> importPlan(mlir::MLIRContext *context, const fbs::PlanT &plan);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITPLAN_H
