//===- ImportRole.h - From the part of a plan that a role has to its module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_IMPORTROLE_H
#define BOWLINE_COMPILER_EMIT_IMPORTROLE_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace bowline {

/// State shared by the importers of a role's parts. They insert operations at the insertion point of \p builder.
struct RoleScope {
  RoleScope(const fbs::PlanT &plan, mlir::OpBuilder &builder, uint32_t role);

  mlir::Location locationOf(uint32_t source) const;
  mlir::RankedTensorType tensorType(fbs::DType dtype, const std::vector<int64_t> &shape) const;
  mlir::ArrayAttr axisNames(const std::vector<uint8_t> &axes) const;
  /// Returns whether the kernel checks data before other launches. The dialect does not show launches of such kernels.
  bool isCheck(uint32_t kernel) const;

  const fbs::PlanT &plan;
  mlir::OpBuilder &builder;
  const uint32_t role;
  // Index: index in the plan; null for objects of other roles.
  /// Returns the buffer of that index. Fails with a diagnostic at \p loc for buffers that the dialect does not show:
  /// second buffers of ports, and buffers of fault words. emitPlan creates these again, so that no other command
  /// may use them.
  llvm::FailureOr<mlir::Value> findBuffer(mlir::Location loc, uint32_t index) const;

  std::vector<mlir::Value> buffers;
  std::vector<plan::CommunicatorOp> communicators;
  std::vector<std::string> kernelSymbols;
};

/// Fills \p module with the parts of the role; its arena in space Device has \p arenaBytes bytes. This function and the
/// two below fail with a diagnostic where the dialect cannot express the plan.
llvm::LogicalResult importRole(const fbs::PlanT &plan, mlir::OpBuilder &builder, uint32_t role, mlir::ModuleOp module,
                               uint64_t arenaBytes);

/// Imports the kernels that the role launches, and the images with their code.
llvm::LogicalResult importKernels(RoleScope &scope);

/// Imports a program of the role, whose buffers, kernels and communicators must have been imported.
llvm::LogicalResult importProgram(RoleScope &scope, const fbs::ProgramT &program);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_IMPORTROLE_H
